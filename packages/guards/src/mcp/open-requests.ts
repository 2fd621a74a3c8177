/** The client's requests that wait for the server: each gets an error if the server ends first. */
import { ERRORS, errorReply } from './message.ts'

const OPEN_MAX = 10_000

export class OpenRequests {
  readonly #ids = new Map<string, unknown>()
  /** Why no answer comes any more. */
  #end: string | null = null

  /** The error of a request that comes too late; null if it can pass. */
  asked(key: string, id: unknown): string | null {
    if (this.#end !== null) return errorReply(id, ERRORS.server, this.#end)
    if (this.#ids.size < OPEN_MAX) this.#ids.set(key, id)
    return null
  }

  answered(key: string): void {
    this.#ids.delete(key)
  }

  /** The errors of all that wait. */
  end(why: string): string[] {
    this.#end ??= why
    const errors = [...this.#ids.values()].map((id) => errorReply(id, ERRORS.server, why))
    this.#ids.clear()
    return errors
  }
}
