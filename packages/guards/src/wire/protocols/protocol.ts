/** Reads requests to models and their answers. */
import type { Method } from '../../../../sdk/src/integrations/client.ts'
import { fields, type Fields } from '../../../../sdk/src/integrations/host.ts'
import type { ModelRequest } from '../../../../sdk/src/integrations/model-call.ts'

export interface Protocol extends Pick<Method, 'result' | 'stream'> {
  readonly name: 'openai-chat' | 'openai-responses' | 'anthropic-messages' | 'gemini' | 'ollama' | 'openai-embeddings'
  /** @param path contains the model if the body does not. */
  request(body: Fields, path: string): ModelRequest
  /** The id of the answer that a request continues, if it does not repeat the earlier messages. */
  continues?(body: Fields): string | undefined
  /** Ids of calls whose results report a failure. */
  failedCalls?(body: Fields): ReadonlySet<string>
  /** How a guard replaces calls in an answer. Undefined: answers pass unjudged. */
  readonly refusing?: Refusing
}

/** Replaces the tool calls in an answer by texts. `refusals`: the texts, by `callKey`. */
export interface Refusing {
  whole(answer: Fields, refusals: ReadonlyMap<string, string>): Fields
  /** Returns an editor for one stream. For each event, it returns the replacement; undefined: keep the event. */
  stream(refusals: ReadonlyMap<string, string>): (event: Fields) => Fields[] | undefined
  /**
   * The calls that an event, or a whole answer, names anywhere a client may read them. Everything from the first one on
   * is sent only after these calls are judged. An unjudged call is never sent.
   */
  named(event: Fields): NamedCall[]
}

export interface NamedCall {
  readonly id: string | undefined
  readonly name: string
}

/** Undefined for a later piece of a call, without the name. */
export function namedCall(id: unknown, name: unknown): NamedCall | undefined {
  if (name === undefined || name === null || name === '') return undefined
  return {
    id: typeof id === 'string' && id !== '' ? id : undefined,
    name: typeof name === 'string' ? name : JSON.stringify(name),
  }
}

/** Identifies a call by its id or, because some servers send none, by its name. */
export function callKey(id: unknown, name: unknown): string {
  return typeof id === 'string' && id !== '' ? id : String(name)
}

export function listOf(rawList: unknown): Fields[] {
  return Array.isArray(rawList) ? (rawList as unknown[]).map(fields) : []
}
