/**
 * A call of a tool under way.
 *
 *   held or judged --forwarded--> with the server --answered--> (recorded)
 *        \--cancelled, the client leaves, the server ends--> stopped
 */
import type { Message } from './message.ts'
import { ToolFailure } from './tool-failure.ts'

export interface Call {
  readonly id: unknown
  readonly bytes: number
  /** Ends the wait for a person. */
  readonly cancel: AbortController
  isCancelled: boolean
  /** Takes the server's answer, once. Undefined while the server does not have the call. */
  forwarded?: { resolve(answer: Answer): void; reject(error: ToolFailure): void } | undefined
}

export interface Answer {
  readonly message: Message
  readonly line: string
}

/** The client does not wait for it any more. */
export function cancel(call: Call): void {
  call.isCancelled = true
  call.cancel.abort('cancelled')
  call.forwarded?.reject(new ToolFailure('cancelled', 'The client cancelled the call.'))
  call.forwarded = undefined
}

/** The server answers nothing any more. The client still waits. */
export function abandon(call: Call, why: string): void {
  if (call.forwarded) call.forwarded.reject(new ToolFailure('connection_closed', why))
  else call.cancel.abort()
  call.forwarded = undefined
}
