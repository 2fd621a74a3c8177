/** Connects to an MCP server at an address, over streamable HTTP with the official client's transport. */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { StreamableHTTPClientTransport, type JSONRPCMessage } from '@modelcontextprotocol/client'
import { parseExactly } from './exact-message.ts'
import type { ServerConnection } from './connection.ts'
import { LINE_BYTES_MAX } from './lines.ts'
import { ERRORS, errorReply, isModern, isObject, keyOf, type Message } from './message.ts'
import { createNumberMarks, markLines, type NumberMarks } from './number-marks.ts'

/** Longest queue of messages that the client has not read yet. */
const QUEUE_BYTES_MAX = 64 * 1_048_576
/** Maximum number of requests that are remembered, to answer them if the server does not. */
const OPEN_MAX = 10_000
/** Longest wait for the `initialize` answer of a restarted server. */
const RENEW_MS = 10_000
const LOST_SESSION = /session/i
/** Matches error codes of the system, of certificates and of undici. */
const SYSTEM_ERROR = /^(E[A-Z]+|CERT_\w+|UND_\w+|\w+_CERT\w*)$/

/** @param headers sent with every request, for example Authorization. */
export async function connectServer(
  url: URL,
  headers: Readonly<Record<string, string>>,
  warn: (message: string) => void,
): Promise<ServerConnection> {
  const marks = createNumberMarks()
  const queue = new LineQueue()
  /** Requests without an answer. */
  const open = new Map<string, { id: unknown; isModern: boolean; cancel: AbortController }>()
  /** Requests that are sent for the second time, in a new session. */
  const again = new Set<string>()
  let greeting: (JSONRPCMessage & Message) | undefined
  let renewing: Promise<boolean> | undefined
  let finish: (code: number) => void = () => undefined
  const ended = new Promise<number>((resolve) => (finish = resolve))
  void ended.then(() => queue.close())
  let transport = connected()
  await transport.start()

  function connected(): StreamableHTTPClientTransport {
    const made = new StreamableHTTPClientTransport(url, { requestInit: { headers }, fetch: fetcher(marks, again) })
    made.onmessage = (message) => receive(made, message)
    made.onerror = (error) => void reasonOf(error, url).then((why) => warn(`The MCP server: ${why}.`))
    made.onclose = () => finish(0)
    return made
  }

  function receive(from: StreamableHTTPClientTransport, message: Message): void {
    const { id, method, result } = message
    if (method === undefined) open.delete(keyOf(id) ?? '')
    if (greeting && keyOf(id) === keyOf(greeting.id) && isObject(result)) {
      if (typeof result['protocolVersion'] === 'string') from.setProtocolVersion(result['protocolVersion'])
    }
    if (queue.add(marks.restore(JSON.stringify(message)))) return
    warn('The client does not read what the server sends: the connection is closed.')
    finish(1)
  }

  /**
   * A restarted server does not know the session. Opens a new one with the client's own `initialize`, unnoticed by the
   * client.
   */
  async function renew(lost: StreamableHTTPClientTransport): Promise<boolean> {
    if (transport !== lost) return true
    if (!greeting) return false
    const made = connected()
    const greeted = Promise.withResolvers<boolean>()
    made.onmessage = ({ result }: Message) => {
      const version = isObject(result) ? result['protocolVersion'] : undefined
      if (typeof version === 'string') made.setProtocolVersion(version)
      greeted.resolve(typeof version === 'string')
    }
    const timer = setTimeout(() => greeted.resolve(false), RENEW_MS)
    try {
      await made.start()
      await made.send({ ...greeting, id: `renewed-${randomUUID()}` })
      if (!(await greeted.promise)) return false
      made.onmessage = (message) => receive(made, message)
      await made.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
    } catch {
      return false
    } finally {
      clearTimeout(timer)
    }
    transport = made
    lost.onclose = () => undefined
    void lost.close()
    warn('The MCP server lost the session, so the guard opened a new one.')
    return true
  }

  async function post(
    message: JSONRPCMessage & Message,
    signal: AbortSignal,
    fail: (why: string) => void,
  ): Promise<void> {
    const used = transport
    const key = keyOf(message.id) ?? ''
    try {
      // A client without an answer would wait for ever.
      const onRequestStreamEnd = () => fail('its stream ended without an answer')
      await used.send(message, { requestSignal: signal, onRequestStreamEnd })
    } catch (error) {
      if (!again.has(key) && used.sessionId !== undefined && isLostSession(error)) {
        renewing ??= renew(used).finally(() => (renewing = undefined))
        if (await renewing) {
          again.add(key)
          return post(message, signal, fail).finally(() => again.delete(key))
        }
      }
      fail(await reasonOf(error, url))
    }
  }

  return {
    async send(line) {
      const message = parseExactly(String(line)) as JSONRPCMessage & Message
      if (message.method === 'initialize') greeting = message
      if (isCancelled(message)) return
      const key = message.method === undefined ? undefined : keyOf(message.id)
      const cancel = new AbortController()
      if (key !== undefined && open.size < OPEN_MAX)
        open.set(key, { id: message.id, isModern: isModern(message.params), cancel })
      // Do not await: a request is answered only when its tool ends.
      void post(message, cancel.signal, (why) => {
        if (key === undefined || !open.delete(key)) return
        queue.add(errorReply(message.id, ERRORS.server, `The MCP server failed: ${why}.`))
      })
    },
    lines: queue,
    ended,
    signal: () => finish(0),
    close() {
      const closed = transport.terminateSession().catch(() => undefined)
      void closed.then(() => transport.close()).finally(() => finish(0))
    },
  }

  /** Since 2026-07-28 a request over HTTP is cancelled by closing its stream. */
  function isCancelled({ method, params }: Message): boolean {
    if (method !== 'notifications/cancelled' || !isObject(params)) return false
    const key = keyOf(params['requestId']) ?? ''
    const request = open.get(key)
    if (!request?.isModern) return false
    open.delete(key)
    request.cancel.abort()
    return true
  }
}

interface Failed {
  readonly status?: unknown
  readonly data?: { readonly status?: unknown }
  readonly message?: unknown
  readonly code?: unknown
  readonly address?: unknown
  readonly port?: unknown
  readonly cause?: unknown
  readonly errors?: readonly unknown[]
}

/** The protocol says 404; servers based on the official examples answer 400. */
function isLostSession(error: unknown): boolean {
  const { status, data, message } = error as Failed
  const its = status ?? data?.status
  return its === 404 || (its === 400 && LOST_SESSION.test(String(message)))
}

/**
 * The status, or the system's error and the address. The text of the server's page is left out, because it can contain
 * anything.
 */
async function reasonOf(error: unknown, { host, hostname, port, protocol }: URL): Promise<string> {
  const { status, data } = error as Failed
  const its = status ?? data?.status
  if (typeof its === 'number') return `status ${its}`
  for (let each = error as Failed | undefined; each; each = (each.cause ?? each.errors?.[0]) as Failed | undefined) {
    if (each.message === 'bad port')
      each = await connectionError(Number(port || (protocol === 'https:' ? 443 : 80)), hostname)
    const { code, address, port: at } = each
    if (typeof code === 'string' && SYSTEM_ERROR.test(code) && !each.errors)
      return typeof address === 'string' ? `${code} ${address}:${String(at)}` : `${code} ${host}`
  }
  return `no answer of ${host}`
}

/** fetch refuses some ports of other protocols without a reason. Checks whether a program listens on the port. */
async function connectionError(port: number, host: string): Promise<Failed> {
  const socket = connect(port, host)
  try {
    await once(socket, 'connect')
    return { code: 'EBADPORT' }
  } catch (error) {
    return error as Failed
  } finally {
    socket.destroy()
  }
}

class LineQueue {
  readonly #lines: Buffer[] = []
  #bytes = 0
  #isClosed = false
  #wake: () => void = () => undefined

  /** False if the queue is full. */
  add(line: string): boolean {
    const buffer = Buffer.from(line)
    if (this.#bytes + buffer.length > QUEUE_BYTES_MAX) return false
    this.#bytes += buffer.length
    this.#lines.push(buffer)
    this.#wake()
    return true
  }

  close(): void {
    this.#isClosed = true
    this.#wake()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void, undefined> {
    for (;;) {
      const line = this.#lines.shift()
      if (line) {
        this.#bytes -= line.length
        yield line
      } else if (this.#isClosed) return
      else await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }
}

/** A fetch that bounds replies, preserves large numbers, and accepts a JSON-RPC error in a reply of any status. */
function fetcher(marks: NumberMarks, again: ReadonlySet<string>) {
  return async (url: string | URL, init?: RequestInit): Promise<Response> => {
    const response = await fetch(url, init)
    if (!response.body) return response
    const isStream = response.headers.get('content-type')?.includes('text/event-stream') ?? false
    const body = response.body.pipeThrough(bounded(isStream)).pipeThrough(markLines(marks, isStream))
    const { status, statusText, headers } = response
    if (response.ok || !isJson(headers)) return new Response(body, { status, statusText, headers })
    const text = await new Response(body).text()
    // The transport drops a JSON-RPC error if the status is not 200, so pass it on here. The guard handles a lost
    // session.
    const key = keyAnsweredBy(text, init?.body)
    const isLost = new Headers(init?.headers).has('mcp-session-id') && LOST_SESSION.test(text) && !again.has(key ?? '')
    const isAnswer = key !== null && !isLost
    return new Response(text, isAnswer ? { status: 200, headers } : { status, statusText, headers })
  }
}

function isJson(headers: Headers): boolean {
  return /^application\/json\b/i.test(headers.get('content-type') ?? '')
}

/** The id of the request, if the reply is a JSON-RPC error that answers it. */
function keyAnsweredBy(text: string, request: unknown): string | null {
  try {
    const { id, error } = JSON.parse(text) as Message
    const key = keyOf(id)
    return isObject(error) && key === keyOf((JSON.parse(String(request)) as Message).id) ? (key ?? null) : null
  } catch {
    return null
  }
}

/** Fails if the reply is too long, or in a stream, if one event is. */
function bounded(isStream: boolean): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0
  return new TransformStream({
    transform(chunk, controller) {
      const lineBreak = isStream ? chunk.lastIndexOf(0x0a) : -1
      bytes = lineBreak === -1 ? bytes + chunk.length : chunk.length - lineBreak
      if (bytes > LINE_BYTES_MAX) controller.error(new Error(`More than ${LINE_BYTES_MAX} bytes.`))
      else controller.enqueue(chunk)
    },
  })
}
