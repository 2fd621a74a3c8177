/** Reads a reply. Only replies with the service's own shape count as answers. */
import type { Problem } from '@tacho/contract/web/errors.ts'
import type { Failure, Refusal } from './call.ts'
import type { Endpoint } from './endpoint.ts'
import { readMessages } from './messages.ts'
import type { Wait } from './wait.ts'

/** A success, untyped. */
export interface Reply {
  readonly ok: true
  readonly status: number
  readonly value: unknown
  readonly text: string
  readonly headers: Headers
}

const LONGEST_RETRY_AFTER_MS = 5 * 60_000

/** Keeps responses in memory: when Node collects one, its fetch cancels a body that is not being read yet. */
const responses = new WeakMap<ReadableStream, Response>()

export async function readReply(
  response: Response,
  kind: NonNullable<Endpoint['reply']> | 'json',
  maxBytes: number,
  wait: Wait,
): Promise<Reply | Failure> {
  const { status, headers, body } = response
  const reply = (value: unknown, text = ''): Reply => ({ ok: true, status, value, text, headers })
  if (status === 304) return reply(null)
  if (kind !== 'json') {
    if (body === null) return failure('not_tacho', null, response)
    responses.set(body, response)
    return reply(kind === 'bytes' ? body : readMessages(body, maxBytes, wait))
  }
  const text = await readText(response, maxBytes)
  if (text === null) return failure('too_large', null, response)
  const value = parseObject(text)
  return value === null ? failure('not_tacho', null, response) : reply(value, text)
}

export async function readRefusal(response: Response, maxBytes: number): Promise<Refusal | Failure> {
  const text = await readText(response, maxBytes)
  const problem = text === null ? null : (parseObject(text) as Partial<Problem> | null)
  const { code, title, requestId } = problem ?? {}
  const isProblem = [code, title, requestId].every((member) => typeof member === 'string')
  if (!isProblem) return failure(text === null ? 'too_large' : 'not_tacho', null, response)
  return { ok: false, reason: 'refused', code: code as string, problem: problem as Problem, ...failed(response) }
}

/** The failure of a call that the service did not answer. */
export function failure(reason: Failure['reason'], cause: unknown, response: Response | null = null): Failure {
  const status = response === null ? { status: null, retryAfterMs: null, temporary: false } : failed(response)
  const temporary = reason === 'no_answer' || reason === 'timeout' || status.temporary
  return { ok: false, reason, code: null, cause, ...status, temporary }
}

function failed({ status, headers }: Response): Pick<Refusal, 'status' | 'retryAfterMs' | 'temporary'> {
  const temporary = status === 408 || status === 429 || status >= 500
  return { status, retryAfterMs: retryAfterMs(headers.get('Retry-After'), Date.now()), temporary }
}

/**
 * Milliseconds of a Retry-After header (seconds or an HTTP date), at most five minutes; null if absent or malformed.
 */
export function retryAfterMs(header: string | null, now: number): number | null {
  if (header === null) return null
  const text = header.trim()
  const wait = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now
  return Number.isNaN(wait) ? null : Math.min(Math.max(wait, 0), LONGEST_RETRY_AFTER_MS)
}

/** The body as text; null if it is larger than `maxBytes`. */
async function readText({ body }: Response, maxBytes: number): Promise<string | null> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  const reader = body?.getReader()
  while (reader) {
    const { done, value } = await reader.read()
    if (done) break
    bytes += value.length
    if (bytes > maxBytes) {
      // The result is not needed, so a failure does not matter.
      reader.cancel().catch(() => undefined)
      return null
    }
    text += decoder.decode(value, { stream: true })
  }
  return text + decoder.decode()
}

/** Every reply of the service is an object. */
function parseObject(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && !Array.isArray(value) ? value : null
  } catch {
    return null
  }
}
