/**
 * A server in front of models. Forwards the bytes of requests and answers unchanged, and shows copies to an observer.
 *
 *   received --no secret, or another path--> 404
 *      |--the answerer has an answer--> answered without the upstream
 *      |--forwarded as its bytes come--> answered by the upstream, as its bytes come --> whole
 *      |                                     |--the upstream breaks--> the client's connection breaks too
 *      |--the client leaves------------------+--> the upstream's connection is closed
 *      \--the upstream cannot be reached--> 502, which clients retry
 */
import { timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { areAnswersFull, BodyCopy, decoded } from './body-copy.ts'
import { answerHeaders, requestHeaders } from './forwarded-headers.ts'
import { StaleConnection, Upstream, writePiece } from './upstream.ts'

export interface WireRequest {
  readonly method: string
  /** The name of its upstream, such as `openai`. */
  readonly route: string
  /** The path after the route, with its query. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
}

/** Observes copies of one exchange. Its exceptions are ignored. */
export interface Observer {
  /** Undefined: the answer passes unchanged. */
  readonly editor?: Editor | undefined
  /** Set if the request must not pass: the reason. */
  readonly refusal?: string | undefined
  /** @param body undefined: the body is larger than the copy may be. */
  asked(body: Buffer | undefined): void
  answered(status: number, headers: IncomingHttpHeaders): void
  piece(bytes: Buffer): void
  /** Records the answer so far. Resolves when that is done. */
  record(): Promise<unknown>
  /** Whether the answer is complete, according to its content. */
  readonly isOver: boolean
  /** Called last, when the exchange ends. `left`: the client disconnected first; `broken`: the upstream failed. */
  ended(how: 'whole' | 'left' | 'broken', why?: string): void
}

export interface WireAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Readable | Buffer
}

/** Answers in place of the upstream, for example from a tape. */
export interface Answerer {
  /** @param body undefined: the body is larger than the copy may be. */
  answer(request: WireRequest, body: Buffer | undefined): Promise<'upstream' | WireAnswer> | 'upstream' | WireAnswer
}

/** Changes an upstream's answer, for example for a guard. */
export interface Editor {
  /** Yields the bytes for the client. @param body already decoded. @param signal aborts when the client leaves. */
  edit(
    body: AsyncIterable<Buffer>,
    answer: { status: number; headers: IncomingHttpHeaders },
    signal: AbortSignal,
  ): AsyncIterable<Buffer>
}

/** Upstreams and handlers for a request that may pass. */
export interface Door {
  /** Addresses of the upstreams, by route. The client's path contains the upstream's path. */
  readonly routes: ReadonlyMap<string, URL>
  /** Completes the client's path: some clients omit a part that others send. */
  readonly completePath?: (route: string, path: string) => string
  readonly observe?: (request: WireRequest) => Observer | undefined
  readonly answerer?: Answerer | undefined
  /** Send the end of an answer to the client only after it is recorded. */
  readonly isDurable?: boolean
  /** Rewrite redirects, which could lead the client past this proxy. */
  readonly isGuarded?: boolean
  /** Called when the request is over. */
  readonly leave?: () => void
}

export interface ProxyOptions {
  /** @param key the first part of the path. A returned number refuses the request with this status. */
  readonly enter: (key: string, headers: IncomingHttpHeaders) => Door | number | Promise<Door | number>
  readonly host?: string
  readonly port?: number
}

export interface Proxy {
  /** Origin of the proxy, such as `http://127.0.0.1:40123`. */
  readonly origin: string
  /** Ends requests under way after `graceMs`. */
  close(graceMs?: number): Promise<void>
}

const HEADER_BYTES_MAX = 65_536

export async function startProxy({ enter, host = '127.0.0.1', port = 0 }: ProxyOptions): Promise<Proxy> {
  const upstream = new Upstream()
  const settings = { keepAliveTimeout: 65_000, requestTimeout: 0, maxHeaderSize: HEADER_BYTES_MAX }
  const server = createServer(settings, (request, response) => {
    pass(enter, upstream, request, response).catch(() => response.destroy())
  })
  server.listen(port, host)
  await once(server, 'listening')
  let closing: Promise<void> | undefined
  const { port: bound } = server.address() as AddressInfo
  return {
    origin: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    close: (graceMs = 0) => (closing ??= close(server, upstream, graceMs)),
  }
}

async function close(server: Server, upstream: Upstream, graceMs: number): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  server.closeIdleConnections()
  const timer = setTimeout(() => server.closeAllConnections(), graceMs)
  await closed
  clearTimeout(timer)
  upstream.close()
}

/** Whether the given secret is that of this run. The comparison takes the same time for every guess. */
export function isSecret(given: string, secret: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(secret)]
  return a.length === b.length && timingSafeEqual(a, b)
}

const PATH = /^\/([^/?]{1,512})\/([a-z][a-z0-9-]{0,40})(\/.*|\?.*)?$/s

async function pass(
  enter: ProxyOptions['enter'],
  upstream: Upstream,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  request.on('error', () => undefined)
  response.on('error', () => undefined)
  // Refuse WebSockets: their messages cannot be recorded, and Codex continues without one. Accept other values of the
  // header: Java offers h2c in it.
  if (request.headers.upgrade?.toLowerCase() === 'websocket') return refuse(response, 426, 'No WebSocket here.')
  const [, key = '', route = '', path = '/'] = PATH.exec(request.url ?? '') ?? []
  const door = key === '' ? 404 : await enter(key, request.headers)
  if (typeof door === 'number') return refuse(response, door, REFUSALS.get(door) ?? 'There is nothing here.')
  const target = door.routes.get(route)
  if (!target) door.leave?.()
  if (!target) return refuse(response, 404, 'No model has this address.')
  const whole = door.completePath?.(route, path) ?? path
  const asked: WireRequest = { method: request.method ?? 'GET', route, path: whole, headers: request.headers }
  try {
    await new Exchange(door, upstream, target, asked, request, response).run()
  } finally {
    door.leave?.()
  }
}

const REFUSALS = new Map([
  [401, 'This is no valid key of Tacho.'],
  [403, 'The key of Tacho may not read policies, so nothing can be guarded.'],
  [429, 'Too many requests of this key are under way.'],
  [503, 'The gateway is busy.'],
])

/** The error has fields of all providers, so that every client can show its message. */
function refuse(response: ServerResponse, status: number, message: string): void {
  if (response.headersSent || response.destroyed) return void response.destroy()
  const body = JSON.stringify({ type: 'error', error: { type: 'tacho_proxy', code: 'tacho_proxy', message } })
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...((status === 429 || status === 503) && { 'retry-after': '1' }),
  })
  response.end(body)
}

class Exchange {
  readonly #door: Door
  readonly #upstream: Upstream
  readonly #target: URL
  readonly #asked: WireRequest
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #observer: Observer | undefined
  readonly #copy = new BodyCopy()
  #isAsked = false
  #isEnded = false

  constructor(
    door: Door,
    upstream: Upstream,
    target: URL,
    asked: WireRequest,
    request: IncomingMessage,
    response: ServerResponse,
  ) {
    this.#door = door
    this.#upstream = upstream
    this.#target = target
    this.#asked = asked
    this.#request = request
    this.#response = response
    this.#observer = safely(() => door.observe?.(asked))
  }

  async run(): Promise<void> {
    const left = new AbortController()
    this.#response.once('close', () => {
      if (this.#response.writableFinished) return
      left.abort()
      this.#end('left')
    })
    try {
      const { refusal } = this.#observer ?? {}
      if (refusal !== undefined) return refuse(this.#response, 403, refusal)
      const { answerer } = this.#door
      if (answerer) {
        for await (const piece of this.#request) this.#copy.add(piece as Buffer)
        const answer = await answerer.answer(this.#asked, this.#body())
        if (answer !== 'upstream') return await this.#answer(answer)
        if (!this.#copy.isWhole) return refuse(this.#response, 413, 'The request is too large here.')
      }
      await this.#forward(left.signal)
      this.#end('whole')
    } catch (error) {
      const why = (error as NodeJS.ErrnoException).code ?? 'it failed'
      this.#end(left.signal.aborted ? 'left' : 'broken', why)
      // Break the connection: a partial answer must not look complete.
      if (left.signal.aborted || this.#response.headersSent) this.#response.destroy()
      else refuse(this.#response, 502, `The model at ${this.#target.host} cannot be reached (${why}).`)
    } finally {
      this.#copy.release()
    }
  }

  /** Shows the request body to the observer. Undefined if the body is larger than the copy may be. */
  #body(): Buffer | undefined {
    const body = this.#copy.whole()
    if (!this.#isAsked) this.#tell((observer) => observer.asked(body))
    this.#isAsked = true
    return body
  }

  /** The body as it arrives. A second attempt starts at its beginning, if the copy has it all. */
  async *#sending(): AsyncGenerator<Buffer> {
    yield* this.#copy.pieces()
    // Do not destroy the request: when the upstream stops reading, the client still gets an answer.
    for await (const piece of this.#request.iterator({ destroyOnReturn: false })) {
      this.#copy.add(piece as Buffer)
      yield piece as Buffer
    }
    // Later, so that the upstream does not wait for the end of the request.
    setImmediate(() => this.#body())
  }

  async #send(signal: AbortSignal): Promise<IncomingMessage> {
    const { method, path } = this.#asked
    const headers = requestHeaders(this.#request, this.#target.host, this.#observer?.editor !== undefined)
    const send = () => this.#upstream.send(this.#target, { method, path, headers, signal }, this.#sending())
    try {
      return await send()
    } catch (error) {
      // The upstream closed an idle connection before it read the request: send it again.
      const isStale = error instanceof StaleConnection && this.#copy.isWhole && !signal.aborted
      if (!isStale) throw error
      return send()
    }
  }

  async #answer({ status, headers, body }: WireAnswer): Promise<void> {
    this.#tell((observer) => observer.answered(status, headers))
    this.#response.writeHead(status, headers)
    for await (const piece of this.#observed(Buffer.isBuffer(body) ? Readable.from([body]) : body)) {
      await writePiece(this.#response, piece)
    }
    this.#response.end()
    this.#end('whole')
  }

  async #forward(signal: AbortSignal): Promise<void> {
    const answer = await this.#send(signal)
    const status = answer.statusCode ?? 502
    this.#tell((observer) => observer.answered(status, answer.headers))
    const location = this.#location(status, answer.headers.location)
    if (location === null) {
      answer.destroy()
      return refuse(this.#response, 502, 'The model redirects to an address that Tacho does not guard.')
    }
    if (this.#observer?.editor && areAnswersFull()) {
      answer.destroy()
      return refuse(this.#response, 503, 'The proxy has no room to judge the answer now.')
    }
    const editor = status < 300 ? this.#observer?.editor : undefined
    this.#response.sendDate = false
    this.#response.writeHead(status, answer.statusMessage, answerHeaders(answer, editor !== undefined, location))
    this.#response.flushHeaders()
    const observed = this.#observed(answer)
    const pieces = editor ? decoded(observed, answer.headers['content-encoding']) : observed
    const { isDurable = false } = this.#door
    const record = () => (isDurable ? this.#observer?.record().catch(() => undefined) : undefined)
    let left = Number(answer.headers['content-length'] ?? NaN)
    for await (const piece of editor ? editor.edit(pieces, { status, headers: answer.headers }, signal) : pieces) {
      left -= piece.length
      if (left <= 0 || this.#observer?.isOver) await record()
      await writePiece(this.#response, piece)
    }
    if (!answer.complete) throw Object.assign(new Error('The answer broke.'), { code: 'ECONNRESET' })
    await record()
    if (answer.rawTrailers.length > 0) this.#response.addTrailers(answer.trailers as Record<string, string>)
    this.#response.end()
  }

  /** The address of a redirection: while guarding, behind this proxy. Undefined: unchanged. Null: it leads past the proxy. */
  #location(status: number, location: string | undefined): string | null | undefined {
    const { method, path, route } = this.#asked
    const isSafe = this.#observer?.editor === undefined && (method === 'GET' || method === 'HEAD')
    if (!this.#door.isGuarded || status < 300 || location === undefined || isSafe) return undefined
    const url = URL.parse(location, URL.parse(path, this.#target)?.href)
    const routes = [[route, this.#target] as const, ...this.#door.routes]
    const [known] = routes.find(([, { origin }]) => origin === url?.origin) ?? []
    if (!url || known === undefined) return null
    const [, key = ''] = (this.#request.url ?? '').split('/')
    return `/${key}/${known}${url.pathname}${url.search}`
  }

  async *#observed(answer: Readable): AsyncGenerator<Buffer> {
    for await (const piece of answer as AsyncIterable<Buffer>) {
      this.#tell((observer) => observer.piece(piece))
      yield piece
    }
  }

  #end(how: 'whole' | 'left' | 'broken', why?: string): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#tell((observer) => observer.ended(how, why))
  }

  #tell(act: (observer: Observer) => void): void {
    const observer = this.#observer
    if (observer) safely(() => act(observer))
  }
}

/** Runs recording code and ignores its errors: recording never changes the traffic. */
function safely<T>(act: () => T): T | undefined {
  try {
    return act()
  } catch {
    return undefined
  }
}
