/** A server at an address: MCP over streamable HTTP, spoken by the official client's transport. */
import { StreamableHTTPClientTransport, type JSONRPCMessage } from '@modelcontextprotocol/client'
import { parseExactly } from './exact-message.ts'
import type { ServerConnection } from './connection.ts'
import { LINE_BYTES_MAX } from './lines.ts'
import { errorReply, isObject, keyOf } from './message.ts'

/** Messages that the client has not read yet. */
const QUEUE_BYTES_MAX = 64 * 1_048_576
const SERVER_ERROR = -32_000

/** @param headers sent with every request, for example Authorization. */
export async function connectServer(
  url: URL,
  headers: Readonly<Record<string, string>>,
  warn: (message: string) => void,
): Promise<ServerConnection> {
  const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers }, fetch: boundedFetch })
  const queue = new LineQueue()
  let initialize: string | undefined
  let finish: (code: number) => void = () => undefined
  const ended = new Promise<number>((resolve) => (finish = resolve))
  void ended.then(() => queue.close())

  transport.onmessage = (message) => {
    const { id, result } = message as { id?: unknown; result?: unknown }
    if (keyOf(id) === initialize && isObject(result) && typeof result['protocolVersion'] === 'string') {
      transport.setProtocolVersion(result['protocolVersion'])
    }
    if (queue.add(JSON.stringify(message))) return
    warn('The client does not read what the server sends: the connection is closed.')
    finish(1)
  }
  transport.onerror = (error) => warn(`The MCP server: ${error.name}.`)
  transport.onclose = () => finish(0)
  await transport.start()

  return {
    async send(line) {
      const message = parseExactly(String(line)) as JSONRPCMessage & { id?: unknown; method?: unknown }
      if (message.method === 'initialize') initialize = keyOf(message.id)
      // Not awaited: the answer of a request can take as long as its tool.
      void transport.send(message).catch((error: { status?: unknown; data?: { status?: unknown } }) => {
        if (message.method === undefined || keyOf(message.id) === undefined) return
        // The text of the server's page is not repeated: it can hold anything.
        const status = error.status ?? error.data?.status
        const why = typeof status === 'number' ? `status ${status}` : 'no answer'
        queue.add(errorReply(message.id, SERVER_ERROR, `The MCP server failed: ${why}.`))
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

/** Fails a reply that is too long; in a stream, an event that is too long. */
async function boundedFetch(url: string | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init)
  if (!response.body) return response
  const isStream = response.headers.get('content-type')?.includes('text/event-stream') ?? false
  let bytes = 0
  const bound = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      const lineBreak = isStream ? chunk.lastIndexOf(0x0a) : -1
      bytes = lineBreak === -1 ? bytes + chunk.length : chunk.length - lineBreak
      if (bytes > LINE_BYTES_MAX) controller.error(new Error(`More than ${LINE_BYTES_MAX} bytes.`))
      else controller.enqueue(chunk)
    },
  })
  const { status, statusText, headers } = response
  return new Response(response.body.pipeThrough(bound), { status, statusText, headers })
}
