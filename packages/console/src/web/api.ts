/** All requests of the console to the server. The browser's session cookie authenticates the person. */
import type { Refusal } from '@tacho/client/call.ts'
import { createOperatorClient } from '@tacho/client/operator.ts'
import { CallError, throwing } from '@tacho/client/throwing.ts'

/**
 * The path at which a proxy serves the console, without a final slash. The server writes it to the page's `<base>`.
 * That element would also change links to `#content`, so it is removed after reading.
 */
export const BASE = takeBase()

/** Timeout of a change, because a person waits for the reply. After it, the reply counts as lost. */
const CHANGE_MS = 10_000

/**
 * Time of the service's last reply to any request. A refusal counts; a 5xx does not, because a proxy may have sent it.
 */
export const lastAnswer = { at: Date.now(), isUnauthenticated: false }

/** A change that was not sent, because the browser is offline. */
class NotSent extends Error {}

/** Calls that never reject, because forms show a refusal in place. */
export const operator = createOperatorClient({ url: BASE, fetch: fetchNow })
/** Names of the calls that ended since stale queries were last read again. */
export const endedCalls = new Set<string>()
/** Calls that return the value or throw a CallError, for queries. */
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
  // Tests have no document: they import pure modules that import this one.
  if (typeof document === 'undefined') return ''
  const { pathname } = new URL(document.baseURI)
  // Make addresses absolute, because the browser reads the manifest and the icons later.
  for (const link of document.querySelectorAll('link')) link.setAttribute('href', link.href)
  document.querySelector('base')?.remove()
  return pathname.replace(/\/[^/]*$/, '')
}

/** Sends a change at once, or rejects while offline: nothing is queued. */
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

/** The server's refusal; null if there was no reply. */
export function refusalOf(error: unknown): Refusal | null {
  return error instanceof CallError && error.result.reason === 'refused' ? error.result : null
}

export function isSignedOut(error: unknown): boolean {
  return refusalOf(error)?.status === 401
}

/** Whether a retry may succeed. */
export function isTemporary(error: unknown): boolean {
  return error instanceof CallError && error.result.temporary
}

export function isNotSent(error: unknown): boolean {
  return error instanceof CallError && error.result.reason === 'no_answer' && error.result.cause instanceof NotSent
}

/** Whether a change may have been stored although its reply was lost. */
export function isLost(error: unknown): boolean {
  if (!(error instanceof CallError) || error.result.reason === 'no_address') return false
  return error.result.reason !== 'refused' || error.result.status >= 500
}
