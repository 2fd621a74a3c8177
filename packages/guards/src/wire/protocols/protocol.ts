/** What requests to models and their answers say. */
import type { Method } from '../../../../sdk/src/integrations/client.ts'
import type { Fields } from '../../../../sdk/src/integrations/host.ts'
import type { ModelRequest } from '../../../../sdk/src/integrations/model-call.ts'

export interface Protocol extends Pick<Method, 'result' | 'stream'> {
  readonly name: 'openai-chat' | 'openai-responses' | 'anthropic-messages' | 'gemini' | 'openai-embeddings'
  /** @param path has the model where the body does not. */
  request(body: Fields, path: string): ModelRequest
  /** The answer that a request continues, where it does not repeat the messages before. */
  continues?(body: Fields): string | undefined
  /** Ids of the calls whose results say that they failed. */
  failedCalls?(body: Fields): ReadonlySet<string>
  /** How a guard replaces calls in an answer. Undefined: it asks for no tools. */
  readonly refusing?: Refusing
}

/** Replaces calls of tools in an answer by texts, whole or streamed. */
export interface Refusing {
  /** The same answer without the calls whose ids `refusals` has. */
  whole(answer: Fields, refusals: ReadonlyMap<string, string>): Fields
  /** The same for the events of a stream that have not been sent yet. */
  events(events: readonly Fields[], refusals: ReadonlyMap<string, string>): Fields[]
  /** Whether the event begins or goes on with a call: nothing after it is sent before the call is judged. */
  holds(event: Fields): boolean
}
