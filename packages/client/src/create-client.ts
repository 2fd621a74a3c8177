/** Makes a client from a table of endpoints: an object with one call per endpoint. */
import type { IDEMPOTENCY_KEY_HEADER } from '@tacho/contract/web/fields.ts'
import type { Route } from '@tacho/contract/web/route.ts'
import type { CallOptions, Client, Failure, Refusal } from './call.ts'
import type { Connection } from './connection.ts'
import type { Endpoint } from './endpoint.ts'
import { JsonText } from './json-text.ts'
import { failure, readRefusal, readReply, type Reply } from './read-reply.ts'
import { startWait } from './wait.ts'

/** The arguments of a call, untyped. */
interface Given {
  params?: Readonly<Record<string, string>>
  query?: Readonly<Record<string, string | number | undefined>>
  headers?: Readonly<Record<string, string | undefined>>
  body?: unknown
}

const IDEMPOTENCY_KEY: typeof IDEMPOTENCY_KEY_HEADER = 'Idempotency-Key'
/** Pause before the second attempt: the service may notice a lost connection later than the client. */
const REPEAT_PAUSE_MS = 250

export function createClient<Routes extends Record<string, Route>>(
  endpoints: Readonly<Record<keyof Client<Routes>, Endpoint>>,
  connection: Connection,
): Client<Routes> {
  const calls = Object.entries<Endpoint>(endpoints).map(([name, endpoint]) => [
    name,
    (callInput: Given = {}, options: CallOptions = {}) => call(connection, endpoint, callInput, options),
  ])
  return Object.fromEntries(calls) as Client<Routes>
}

async function call(
  connection: Connection,
  endpoint: Endpoint,
  callInput: Given,
  { signal, timeoutMs = connection.timeoutMs }: CallOptions,
): Promise<Reply | Refusal | Failure> {
  const path = pathOf(endpoint.path, callInput.params ?? {})
  if (path === null) return failure('no_address', null)
  const { maxReplyBytes } = connection
  const wait = startWait(timeoutMs, signal)
  const request = requestOf(connection, endpoint, callInput, wait.signal)
  const send = () =>
    connection.fetch(connection.url + connection.prefix + path + queryOf(callInput.query ?? {}), request)
  let response: Response | null = null
  try {
    response = await (endpoint.creates ? sendTwice(send, wait.signal) : send())
    const isExpected = response.status === (endpoint.status ?? 200) || response.status === 304
    return isExpected
      ? await readReply(response, endpoint.reply ?? 'json', maxReplyBytes, wait)
      : await readRefusal(response, maxReplyBytes)
  } catch (cause) {
    const reason = signal?.aborted ? 'aborted' : wait.signal.aborted ? 'timeout' : 'no_answer'
    return failure(reason, cause, response)
  } finally {
    // Stop the timeout, for bytes when they start. Only a stream keeps it, for each message.
    if (endpoint.reply !== 'events' || !response?.ok) wait.end()
  }
}

/** Retries a creation after a lost connection. With the same key, the service creates nothing twice. */
async function sendTwice(send: () => Promise<Response>, signal: AbortSignal): Promise<Response> {
  try {
    return await send()
  } catch (error) {
    if (signal.aborted) throw error
    await new Promise((resolve) => setTimeout(resolve, REPEAT_PAUSE_MS))
    return send()
  }
}

function requestOf(connection: Connection, endpoint: Endpoint, callInput: Given, signal: AbortSignal): RequestInit {
  const { body } = callInput
  // A record, because the first `new Headers()` loads all of Node's fetch.
  const headers: Record<string, string> = { ...connection.headers }
  if (endpoint.creates) headers[IDEMPOTENCY_KEY] = newKey()
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  for (const [name, value] of Object.entries(callInput.headers ?? {})) if (value !== undefined) headers[name] = value
  return {
    method: endpoint.method ?? 'GET',
    headers,
    signal,
    body: body === undefined ? null : body instanceof JsonText ? body.text : JSON.stringify(body),
    credentials: 'same-origin',
    // The service never redirects a call, so a redirect comes from something else.
    redirect: 'manual',
  }
}

/** 128 random bits. A page without https has no crypto.randomUUID. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** The path with its parameters; null if a parameter cannot be part of an address. */
function pathOf(template: string, params: Readonly<Record<string, string>>): string | null {
  let fits = true
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = params[name] ?? ''
    // fetch would resolve dots like folders in a file path.
    if (/^\.{0,2}$/.test(value)) fits = false
    return encodeURIComponent(value)
  })
  return fits ? path : null
}

function queryOf(query: NonNullable<Given['query']>): string {
  const givenQuery = Object.entries(query).filter(([, value]) => value !== undefined)
  const text = new URLSearchParams(givenQuery.map(([name, value]) => [name, String(value)])).toString()
  return text === '' ? '' : `?${text}`
}
