/** Limits how clients can misuse a connection: not reading replies, idling, pipelining, or sending in tiny pieces. */
import type { Server, IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { LIMITS } from '@tacho/contract/engine/limits.ts'

/** Node's socket timeout does not disconnect clients that read nothing: every write restarts it. Pieces show how far the client has read. */
const PIECE_BYTES = 65_536
const CHECKS = 10

interface Progress {
  taken: number
  since: number
}

/** Bytes that a socket must accept within `stalledMs`. Sockets that are missing here must accept one byte. */
const paces = new WeakMap<Socket, number>()

export function demandPace(socket: Socket, bytes: number): () => void {
  paces.set(socket, bytes)
  return () => paces.delete(socket)
}

export function cutStalledReaders(server: Server, stalledMs: number, monotonicNow = () => performance.now()): void {
  const sockets = new Map<Socket, Progress>()
  const check = (): void => {
    const now = monotonicNow()
    for (const [socket, progress] of sockets) {
      const taken = socket.bytesWritten - socket.writableLength
      const isEnough = taken - progress.taken >= (paces.get(socket) ?? 1)
      if (socket.writableLength === 0 || isEnough) Object.assign(progress, { taken, since: now })
      else if (now - progress.since >= stalledMs) socket.destroy()
    }
  }
  server.on('connection', (socket: Socket) => {
    sockets.set(socket, { taken: 0, since: monotonicNow() })
    socket.once('close', () => sockets.delete(socket))
  })
  const timer = setInterval(check, stalledMs / CHECKS).unref()
  server.once('close', () => clearInterval(timer))
}

export function sendInPieces(reply: FastifyReply, body: string | Buffer): FastifyReply {
  if (body.length <= PIECE_BYTES) return reply.send(body)
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  return reply.header('content-length', bytes.length).send(Readable.from(pieces(bytes), { objectMode: false }))
}

function* pieces(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += PIECE_BYTES) yield body.subarray(at, at + PIECE_BYTES)
}

/** Unbounded, connections without a request could use up the files of the process, and the store could open none. */

export function boundIdleConnections(server: Server, most: number = LIMITS.idleConnections): void {
  const idle = new Set<Socket>()
  const underWay = new WeakMap<Socket, number>()

  function pauseSocket(socket: Socket): void {
    idle.add(socket)
    if (idle.size <= most) return
    const [longest] = idle
    longest?.destroy()
    if (longest) idle.delete(longest)
  }

  server.on('connection', (socket: Socket) => {
    pauseSocket(socket)
    socket.once('close', () => idle.delete(socket))
  })
  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    idle.delete(socket)
    underWay.set(socket, (underWay.get(socket) ?? 0) + 1)
    response.once('close', () => {
      const others = (underWay.get(socket) ?? 1) - 1
      underWay.set(socket, others)
      if (others === 0 && !socket.destroyed) pauseSocket(socket)
    })
  })
}

/**
 * A client may send requests ahead (RFC 9112, 9.3.2). Each waits here until the answers before it have been sent: an
 * answer made earlier would be stored for a client that may never read it.
 */

/**
 * `count`: waiting requests of a connection. `sentBefore`: bytes that the connection had sent when the first of them
 * began to wait.
 */
interface Waiting {
  count: number
  sentBefore: number
}

const connections = new WeakMap<Socket, Waiting>()
/**
 * The exchange in progress. It is deleted when it ends, because otherwise an idle connection would keep its last body
 * in memory.
 */
const latest = new WeakMap<Socket, { request: IncomingMessage; response: ServerResponse }>()
const ending = new WeakSet<Socket>()

/** Runs before the server's existing listeners. */
export function boundPipelines(server: Server, closed: () => void = () => undefined): void {
  const listeners = server.listeners('request')
  server.removeAllListeners('request')
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    for (const listener of listeners) listener.call(server, request, response)
  }
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request
    // The connection ends with the previous answer.
    if (!socket.writable) return
    boundPieces(request)
    const one = { request, response }
    latest.set(socket, one)
    response.once('close', () => {
      if (latest.get(socket) === one) latest.delete(socket)
    })
    if (response.socket !== null) return serve(request, response)
    const waiting = connections.get(socket) ?? watch(socket)
    if (waiting.count === 0) waiting.sentBefore = socket.bytesRead
    waiting.count += 1
    if (waiting.count === LIMITS.pipelinedRequests) {
      skipRequests(socket)
      socket.destroy()
      return closed()
    }
    if (isFull(socket, waiting)) socket.pause()
    // Node assigns the connection to this response when its turn comes.
    response.once('socket', () => {
      waiting.count -= 1
      if (waiting.count === 0) socket.resume()
      // Let other connections run in between.
      setImmediate(() => {
        if (socket.writable) serve(request, response)
      })
    })
  })
}

/** Answers once a request that the parser refused, when its turn comes: never before another answer, or inside one. */
export function answerLast(socket: Socket, answer: () => void): void {
  if (ending.has(socket)) return
  ending.add(socket)
  const last = latest.get(socket)
  if (last === undefined) answer()
  else if (last.request.complete) last.response.once('close', answer)
  // The parser refused the body of the last request.
  else if (last.response.socket === null) last.response.once('socket', answer)
  else if (last.response.headersSent) socket.destroy()
  else answer()
}

function watch(socket: Socket): Waiting {
  const waiting = { count: 0, sentBefore: 0 }
  connections.set(socket, waiting)
  // Pause again: Node resumes a connection whenever its client has read an answer.
  socket.on('resume', () => {
    if (isFull(socket, waiting)) socket.pause()
  })
  return waiting
}

/** Limits the bytes of waiting requests, because their bodies are in memory before anything counts them. */
function isFull(socket: Socket, { count, sentBefore }: Waiting): boolean {
  return count > 0 && socket.bytesRead - sentBefore > LIMITS.pipelinedBytes
}

/**
 * Node's HTTP parser has no public way to skip what it has read, so this file sets its internal properties. If Node
 * changes these, the server does more work but gives the same answers.
 */

type Parser = Record<number, unknown> & { constructor: { kOnBody?: number }; onIncoming: () => number }

/** The return value of llhttp's `on_headers_complete` for a request that upgrades to another protocol: parsing ends. */
const UPGRADED = 2

/**
 * Node parses everything that it has read, up to a thousand requests, and makes an error for each when the connection
 * closes. This ends its parser at the next request.
 */
function skipRequests(socket: Socket): void {
  const parser = parserOf(socket)
  if (parser) parser.onIncoming = () => UPGRADED
}

/**
 * Node makes a Buffer for each chunk that it has read: ten thousand for 64 KiB. This makes it skip the rest of this
 * read.
 */
function skipBody(socket: Socket): void {
  const parser = parserOf(socket)
  const onBody = parser?.constructor.kOnBody
  if (!parser || onBody === undefined || parser[onBody] === null) return
  const take = parser[onBody]
  parser[onBody] = null
  // Restored later: Node gives this parser to another connection only after this one has closed.
  setImmediate(() => {
    parser[onBody] = take
  })
}

function parserOf(socket: Socket & { parser?: Parser | null }): Parser | null {
  return socket.parser ?? null
}

/**
 * Limits the pieces in which the body of a request arrives. Each costs as much as many bytes, and one read of a
 * connection can contain ten thousand, before anything reads the body.
 */

/** A body may have this many pieces, and one more for each of these bytes. Buffered writers need far fewer. */
const PIECES = 4_096
const BYTES_PER_PIECE = 16

/** Requests with incomplete bodies. Their connection must not be used again. */
const cut = new WeakSet<IncomingMessage>()

/** Call this before anything reads the request. A request with too many pieces emits `cut`. */
export function boundPieces(request: IncomingMessage): void {
  const { 'transfer-encoding': encoding, 'content-length': length } = request.headers
  if (encoding === undefined && length === undefined) return
  let [bytes, pieces] = [0, 0]
  const { push } = request
  request.push = (chunk: Buffer | null, ...otherArguments) => {
    if (cut.has(request)) {
      skipBody(request.socket)
      return true
    }
    if (chunk !== null) {
      bytes += chunk.length
      pieces += 1
    }
    if (pieces <= PIECES + bytes / BYTES_PER_PIECE) return push.call(request, chunk, ...otherArguments)
    cutBody(request)
    return request.emit('cut')
  }
}

function cutBody(request: IncomingMessage): void {
  cut.add(request)
  skipBody(request.socket)
}

export const isCut = (request: IncomingMessage): boolean => cut.has(request)

/** Closes the connection of a large unread body, because parsing the rest would be work for a refused client. */

/** A client may continue to send until it notices the answer. Closing at once could lose the answer. */
const LINGER_MS = 2_000
const LINGER_BYTES = LIMITS.importBodyBytes

/** Call this before the headers of the answer are written. */
export function closeIfUnread(request: IncomingMessage, response: ServerResponse): void {
  if (!isCut(request) && (request.complete || !isLong(request))) return
  response.setHeader('connection', 'close')
  cutBody(request)
  lingerAtEnd(request.socket)
}

function isLong({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > LIMITS.batchBytes
}

/** Node calls `destroySoon` after the last answer of a connection. */
function lingerAtEnd(socket: Socket): void {
  socket.destroySoon = () => {
    if (socket.destroyed) return
    socket.end()
    // Takes further bytes away from Node's parser.
    socket.on('data', () => undefined).removeAllListeners('data')
    let left = LINGER_BYTES
    socket.on('data', ({ length }: Buffer) => {
      left -= length
      if (left < 0) socket.destroy()
    })
    socket.resume()
    setTimeout(() => socket.destroy(), LINGER_MS).unref()
  }
}
