/** Everything the console asks of the server. The browser's session cookie says who asks. */
import type { Refusal } from '@tacho/client/call.ts'
import { createOperatorClient } from '@tacho/client/operator.ts'
import { CallError, throwing } from '@tacho/client/throwing.ts'

/**
 * The path below which a proxy serves the console, without a slash at its end. The server names it in the page's `<base>`,
 * which would also move links to `#content`, so it goes once it is read.
 */
export const BASE = takeBase()

/** Calls that never reject: forms show the refusal in place. */
export const operator = createOperatorClient({ url: BASE })
/** Calls that give the value or throw a CallError: for queries. */
export const api = throwing(operator)

function takeBase(): string {
  const { pathname } = new URL(document.baseURI)
  document.querySelector('base')?.remove()
  return pathname.replace(/\/[^/]*$/, '')
}

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
