/** A server at an address: MCP over streamable HTTP, spoken by the official client's transport. */
import { StreamableHTTPClientTransport, type JSONRPCMessage } from '@modelcontextprotocol/client'
import { parseExactly } from './exact-message.ts'
import type { ServerConnection } from './connection.ts'
import { LINE_BYTES_MAX } from './lines.ts'
import { errorReply, isModern, isObject, keyOf, type Message } from './message.ts'
import { createNumberMarks, markLines, type NumberMarks } from './number-marks.ts'

/** Messages that the client has not read yet. */
const QUEUE_BYTES_MAX = 64 * 1_048_576
/** Requests that are remembered to answer them if the server does not. */
const OPEN_MAX = 10_000
const SERVER_ERROR = -32_000

/** @param headers sent with every request, for example Authorization. */
export async function connectServer(
  url: URL,
  headers: Readonly<Record<string, string>>,
  warn: (message: string) => void,
): Promise<ServerConnection> {
  const marks = createNumberMarks()
  const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers }, fetch: fetcher(marks) })
  const queue = new LineQueue()
  /** Requests without an answer. */
  const open = new Map<string, { id: unknown; isModern: boolean; cancel: AbortController }>()
  let initialize: string | undefined
  let finish: (code: number) => void = () => undefined
  const ended = new Promise<number>((resolve) => (finish = resolve))
  void ended.then(() => queue.close())

  transport.onmessage = (message) => {
    const { id, method, result } = message as Message
    if (method === undefined) open.delete(keyOf(id) ?? '')
    if (keyOf(id) === initialize && isObject(result) && typeof result['protocolVersion'] === 'string') {
      transport.setProtocolVersion(result['protocolVersion'])
    }
    if (queue.add(marks.restore(JSON.stringify(message)))) return
    warn('The client does not read what the server sends: the connection is closed.')
    finish(1)
  }
  transport.onerror = (error) => warn(`The MCP server: ${error.name}.`)
  transport.onclose = () => finish(0)
  await transport.start()

  return {
    async send(line) {
      const message = parseExactly(String(line)) as JSONRPCMessage & Message
      if (message.method === 'initialize') initialize = keyOf(message.id)
      if (isCancelled(message)) return
      const key = message.method === undefined ? undefined : keyOf(message.id)
      const cancel = new AbortController()
      if (key !== undefined && open.size < OPEN_MAX)
        open.set(key, { id: message.id, isModern: isModern(message.params), cancel })
      const fail = (why: string): void => {
        if (key === undefined || !open.delete(key)) return
        queue.add(errorReply(message.id, SERVER_ERROR, `The MCP server failed: ${why}.`))
      }
      // Not awaited: the answer of a request can take as long as its tool.
      void transport
        .send(message, {
          requestSignal: cancel.signal,
          // Without an answer, its client would wait for ever.
          onRequestStreamEnd: () => fail('its stream ended without an answer'),
        })
        .catch((error: { status?: unknown; data?: { status?: unknown } }) => {
          // The text of the server's page is not repeated: it can hold anything.
          const status = error.status ?? error.data?.status
          fail(typeof status === 'number' ? `status ${status}` : 'no answer')
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

/** Bounds replies, keeps their numbers, and takes an error of JSON-RPC from a reply of any status. */
function fetcher(marks: NumberMarks) {
  return async (url: string | URL, init?: RequestInit): Promise<Response> => {
    const response = await fetch(url, init)
    if (!response.body) return response
    const isStream = response.headers.get('content-type')?.includes('text/event-stream') ?? false
    const body = response.body.pipeThrough(bounded(isStream)).pipeThrough(markLines(marks, isStream))
    const { status, statusText, headers } = response
    if (response.ok || !isJson(headers)) return new Response(body, { status, statusText, headers })
    const text = await new Response(body).text()
    // The transport drops the error's code and text if the status is not 200.
    const isAnswer = isErrorOf(text, init?.body)
    return new Response(text, isAnswer ? { status: 200, headers } : { status, statusText, headers })
  }
}

function isJson(headers: Headers): boolean {
  return /^application\/json\b/i.test(headers.get('content-type') ?? '')
}

/** Whether the text is the error that answers this request. */
function isErrorOf(text: string, request: unknown): boolean {
  try {
    const { id, error } = JSON.parse(text) as Message
    return (
      isObject(error) && keyOf(id) !== undefined && keyOf(id) === keyOf((JSON.parse(String(request)) as Message).id)
    )
  } catch {
    return false
  }
}

/** Fails a reply that is too long; in a stream, an event that is too long. */
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
