/** Everything the console asks of the server. The browser's session cookie says who asks. */
import type { Refusal } from '@tacho/client/call.ts'
import { createOperatorClient } from '@tacho/client/operator.ts'
import { CallError, throwing } from '@tacho/client/throwing.ts'

/** Calls that never reject: forms show the refusal in place. */
export const operator = createOperatorClient({ url: '' })
/** Calls that give the value or throw a CallError: for queries. */
export const api = throwing(operator)

/** The problem that the server answered; null without an answer. */
export function refusalOf(error: unknown): Refusal | null {
  return error instanceof CallError && error.result.reason === 'refused' ? error.result : null
}

export function isSignedOut(error: unknown): boolean {
  return refusalOf(error)?.status === 401
}

/** Worth asking again by itself: the server may answer next time. */
export function isTemporary(error: unknown): boolean {
  return error instanceof CallError && error.result.temporary
}
