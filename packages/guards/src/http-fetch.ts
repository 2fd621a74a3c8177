/**
 * The part of `fetch` that the SDK, the clients and the commands use, built on node:http. The first use of the built-in fetch, and
 * even of `Headers`, costs half of the processor time of a short command.
 */
import type { IncomingMessage } from 'node:http'
import { pipeline, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setImmediate as turn } from 'node:timers/promises'

type Fetch = typeof globalThis.fetch

/** Replies that have no body. */
const EMPTY = new Set([204, 304])

/**
 * `target` must be an address, headers a record, a body a text or bytes. A redirect is an answer, as with `redirect: 'manual'`.
 */
export const httpFetch: Fetch = async (target, { method = 'GET', headers = {}, body, signal } = {}) => {
  // So that the agent does not use a connection that the server closed while this thread was busy. In the first turn, Node may
  // not ask the system for news.
  await turn()
  await turn()
  signal?.throwIfAborted()
  const url = new URL(typeof target === 'string' ? target : (target as URL).href)
  // An import would read all exports of node:http, and so load all of the built-in fetch.
  const { request: send } = process.getBuiltinModule(url.protocol === 'https:' ? 'node:https' : 'node:http')
  const { promise, resolve, reject } = Promise.withResolvers<Response>()
  const content = bytesOf(body)
  const options = {
    method,
    headers: {
      // As Node's fetch sends them: some firewalls refuse requests without them.
      accept: '*/*',
      'user-agent': 'node',
      ...(headers as Record<string, string>),
      'accept-encoding': 'gzip',
      ...(content && { 'content-length': content.length }),
    },
  }
  let received: IncomingMessage | undefined
  const request = send(url, options, (reply) => {
    received = reply
    void answerOf(reply).then(resolve, reject)
  })
  // Not the option `signal`: the error would be the same for each reason.
  const abort = (): unknown => (received ?? request).destroy(signal?.reason as Error)
  signal?.addEventListener('abort', abort)
  request.on('error', reject).once('close', () => {
    signal?.removeEventListener('abort', abort)
    // After `101 Switching Protocols` comes neither an error nor a reply.
    if (!received) reject(Object.assign(new Error('The server did not reply.'), { code: 'ECONNRESET' }))
  })
  request.end(content)
  return promise
}

function bytesOf(body: RequestInit['body']): Uint8Array | undefined {
  if (body === undefined || body === null) return undefined
  if (typeof body === 'string') return Buffer.from(body)
  if (body instanceof Uint8Array) return body
  throw new TypeError('The body of a request must be a text or bytes.')
}

async function answerOf(reply: IncomingMessage): Promise<Response> {
  const { statusCode: status = 0, headers } = reply
  if (EMPTY.has(status)) reply.resume()
  const body = EMPTY.has(status)
    ? null
    : (Readable.toWeb(await unpacked(reply)) as ReadableStream<Uint8Array<ArrayBuffer>>)
  const answer: Pick<Response, 'status' | 'ok' | 'body' | 'text'> & { headers: Pick<Headers, 'get'> } = {
    status,
    ok: status >= 200 && status < 300,
    headers: { get: (name) => String(headers[name.toLowerCase()] ?? '') || null },
    body,
    // Not of the reply: the body takes what arrives from it at once.
    text: async () => (body ? text(body) : ''),
  }
  return answer as Response
}

async function unpacked(reply: IncomingMessage): Promise<Readable> {
  if (reply.headers['content-encoding']?.toLowerCase() !== 'gzip') return reply
  const { createGunzip } = await import('node:zlib')
  // An error reaches the reader of the unpacked stream.
  return pipeline(reply, createGunzip(), () => undefined)
}
