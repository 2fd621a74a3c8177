/** All requests of the console to the server. The browser's session cookie identifies the person. */
import type { Refusal } from '@tacho/client/call.ts'
import { createOperatorClient } from '@tacho/client/operator.ts'
import { CallError, throwing } from '@tacho/client/throwing.ts'

/**
 * The path below which a proxy serves the console, without a slash at its end. The server names it in the page's `<base>`,
 * which would also move links to `#content`, so it goes once it is read.
 */
export const BASE = takeBase()

/** A person waits for the answer of a change. Without one by then, it counts as lost. */
const CHANGE_MS = 10_000

/** When the service last answered, whatever it was asked. A refusal is an answer; 5xx is none: a proxy sends it too. */
export const lastAnswer = { at: Date.now(), isUnauthenticated: false }

/** A change that did not leave this device. */
class NotSent extends Error {}

/** Calls that never reject: forms show the refusal in place. */
export const operator = createOperatorClient({ url: BASE, fetch: fetchNow })
/** The names of calls that are over, since what they made stale was read again. */
export const endedCalls = new Set<string>()
/** Calls that give the value or throw a CallError: for queries. */
export const api = noting(throwing(operator))

function noting<Calls extends object>(calls: Calls): Calls {
  const noted = Object.entries(calls as Record<string, (...callArguments: unknown[]) => Promise<unknown>>).map(
    ([name, call]) => [
      name,
      (...callArguments: unknown[]) => call(...callArguments).finally(() => endedCalls.add(name)),
    ],
  )
  return Object.fromEntries(noted) as Calls
}

function takeBase(): string {
  // Tests import pure modules that import this one.
  if (typeof document === 'undefined') return ''
  const { pathname } = new URL(document.baseURI)
  // The manifest and the icons are read later.
  for (const link of document.querySelectorAll('link')) link.setAttribute('href', link.href)
  document.querySelector('base')?.remove()
  return pathname.replace(/\/[^/]*$/, '')
}

/** Sends a change now or never: nothing is queued for later. */
async function fetchNow(...[address, request = {}]: Parameters<typeof fetch>): Promise<Response> {
  const { method = 'GET', signal } = request
  if (method === 'GET') return noted(await fetch(address, request))
  if (!navigator.onLine) throw new NotSent()
  const late = AbortSignal.timeout(CHANGE_MS)
  return noted(await fetch(address, { ...request, signal: signal ? AbortSignal.any([signal, late]) : late }))
}

function noted(response: Response): Response {
  if (response.status < 500) lastAnswer.at = Date.now()
  if (response.status === 401) lastAnswer.isUnauthenticated = true
  return response
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

export function isNotSent(error: unknown): boolean {
  return error instanceof CallError && error.result.reason === 'no_answer' && error.result.cause instanceof NotSent
}

/** A change may have been stored without its answer. */
export function isLost(error: unknown): boolean {
  if (!(error instanceof CallError) || error.result.reason === 'no_address') return false
  return error.result.reason !== 'refused' || error.result.status >= 500
}
