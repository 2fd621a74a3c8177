/** Reads requests to models and their answers. */
import type { Method } from '../../../../sdk/src/integrations/client.ts'
import { fields, type Fields } from '../../../../sdk/src/integrations/host.ts'
import type { ModelRequest } from '../../../../sdk/src/integrations/model-call.ts'

export interface Protocol extends Pick<Method, 'result' | 'stream'> {
  readonly name: 'openai-chat' | 'openai-responses' | 'anthropic-messages' | 'gemini' | 'ollama' | 'openai-embeddings'
  /** @param path has the model where the body does not. */
  request(body: Fields, path: string): ModelRequest
  /** The answer that a request continues, where it does not repeat the messages before. */
  continues?(body: Fields): string | undefined
  /** Ids of the calls whose results say that they failed. */
  failedCalls?(body: Fields): ReadonlySet<string>
  /** How a guard replaces calls in an answer. Undefined: it passes unjudged. */
  readonly refusing?: Refusing
}

/** Replaces calls of tools in an answer by texts. `refusals`: by `callKey`. */
export interface Refusing {
  whole(answer: Fields, refusals: ReadonlyMap<string, string>): Fields
  /** Edits the events of one stream: returns each event's replacement. Undefined: the event itself. */
  stream(refusals: ReadonlyMap<string, string>): (event: Fields) => Fields[] | undefined
  /**
   * The calls that an event, or a whole answer, names at any place where a client may read one. Nothing from the first one on
   * is sent before the calls are judged, and none that nobody judged.
   */
  named(event: Fields): NamedCall[]
}

export interface NamedCall {
  readonly id: string | undefined
  readonly name: string
}

/** Undefined for the rest of a call whose name came before. */
export function namedCall(id: unknown, name: unknown): NamedCall | undefined {
  if (name === undefined || name === null || name === '') return undefined
  return {
    id: typeof id === 'string' && id !== '' ? id : undefined,
    name: typeof name === 'string' ? name : JSON.stringify(name),
  }
}

/** Some servers give their calls no ids. */
export function callKey(id: unknown, name: unknown): string {
  return typeof id === 'string' && id !== '' ? id : String(name)
}

export function listOf(rawList: unknown): Fields[] {
  return Array.isArray(rawList) ? (rawList as unknown[]).map(fields) : []
}
