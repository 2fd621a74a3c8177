/**
 * The requests of the client that are under way. A tool call:
 *
 *   judged, or waiting for a person --forwarded--> with the server --answered--> (recorded)
 *        \--cancelled, the client leaves, the server ends--> stopped
 *
 * Other requests only wait for the server (OpenRequests).
 */
import { ERRORS, errorReply, isObject, type Json, type Message } from './message.ts'
import { ToolFailure } from './tool-failure.ts'

/** Members of `_meta` that contain the model's id of a call: the last part of their names, as in `claudecode/toolUseId`. */
const NAMES: ReadonlySet<string> = new Set(['toolUseId', 'toolCallId', 'tool_use_id', 'tool_call_id'])
const CHARS_MAX = 255
const REQUESTS_MAX = 10_000

/** The model's id of a call if the client sends it in `_meta`, as Claude Code does; else the id of the request. */
export function callIdOf(id: unknown, params: Json): string {
  const meta = isObject(params['_meta']) ? params['_meta'] : {}
  const named = Object.entries(meta).find(([name]) => NAMES.has(name.slice(name.lastIndexOf('/') + 1)))?.[1]
  return typeof named === 'string' && named !== '' && named.length <= CHARS_MAX ? named : String(id).slice(0, CHARS_MAX)
}

export interface Call {
  readonly id: unknown
  readonly bytes: number
  /** Ends the wait for a person. */
  readonly cancel: AbortController
  isCancelled: boolean
  /** Receives the server's answer. Undefined before the call is forwarded, and after it ended. */
  forwarded?: { resolve(answer: Answer): void; reject(error: ToolFailure): void } | undefined
}

export interface Answer {
  readonly message: Message
  readonly line: string
}

/** Ends a call that its client cancelled. */
export function cancel(call: Call): void {
  call.isCancelled = true
  call.cancel.abort('cancelled')
  call.forwarded?.reject(new ToolFailure('cancelled', 'The client cancelled the call.'))
  call.forwarded = undefined
}

/** Ends a call that the server will not answer. The client still waits for an answer. */
export function abandon(call: Call, why: string): void {
  if (call.forwarded) call.forwarded.reject(new ToolFailure('connection_closed', why))
  else call.cancel.abort()
  call.forwarded = undefined
}

/** Requests other than tool calls that wait for the server. If the server ends first, each gets an error. */
export class OpenRequests {
  readonly #ids = new Map<string, unknown>()
  /** Why the server answers nothing more; null while it can. */
  #end: string | null = null

  get why(): string | null {
    return this.#end
  }

  /** The error for a request that arrives after the server ended; null while the server runs. */
  tooLate(id: unknown): string | null {
    return this.#end === null ? null : errorReply(id, ERRORS.server, this.#end)
  }

  /** Like `tooLate`, and notes that the request waits for its answer. */
  asked(key: string, id: unknown): string | null {
    if (this.#end === null && this.#ids.size < REQUESTS_MAX) this.#ids.set(key, id)
    return this.tooLate(id)
  }

  answered(key: string): void {
    this.#ids.delete(key)
  }

  /** Ends all waiting requests. Returns an error for each. */
  end(why: string): string[] {
    this.#end ??= why
    const errors = [...this.#ids.values()].map((id) => errorReply(id, ERRORS.server, why))
    this.#ids.clear()
    return errors
  }
}
