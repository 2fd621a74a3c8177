/**
 * A client may send requests ahead (RFC 9112, 9.3.2). Each waits here until the answers before it have been sent: an
 * answer made earlier would be held for a client that may never read.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { boundPieces } from './body-pieces.ts'
import { skipRequests } from './parser.ts'

/** Requests of a connection that wait, and what the connection had sent when the first of them began to. */
interface Waiting {
  count: number
  sentBefore: number
}

const connections = new WeakMap<Socket, Waiting>()
/** Only while it is under way: kept longer, an idle connection would hold its last body. */
const latest = new WeakMap<Socket, { request: IncomingMessage; response: ServerResponse }>()
const ending = new WeakSet<Socket>()

/** Runs before the listeners that the server has. */
export function boundPipelines(server: Server, closed: () => void = () => undefined): void {
  const listeners = server.listeners('request')
  server.removeAllListeners('request')
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    for (const listener of listeners) listener.call(server, request, response)
  }
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request
    // The connection ends with the answer before this.
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
    // Its turn: Node gives it the connection.
    response.once('socket', () => {
      waiting.count -= 1
      if (waiting.count === 0) socket.resume()
      // Other connections get their turns in between.
      setImmediate(() => {
        if (socket.writable) serve(request, response)
      })
    })
  })
}

/** Once, when it is the turn of an answer to what the parser refused: never before another answer, or inside of it. */
export function answerLast(socket: Socket, answer: () => void): void {
  if (ending.has(socket)) return
  ending.add(socket)
  const last = latest.get(socket)
  if (last === undefined) answer()
  else if (last.request.complete) last.response.once('close', answer)
  // The body of the last request is what the parser refused.
  else if (last.response.socket === null) last.response.once('socket', answer)
  else if (last.response.headersSent) socket.destroy()
  else answer()
}

function watch(socket: Socket): Waiting {
  const waiting = { count: 0, sentBefore: 0 }
  connections.set(socket, waiting)
  // Node resumes a connection whenever its client has read an answer.
  socket.on('resume', () => {
    if (isFull(socket, waiting)) socket.pause()
  })
  return waiting
}

/** Bodies of waiting requests are in memory before anything counts them. */
function isFull(socket: Socket, { count, sentBefore }: Waiting): boolean {
  return count > 0 && socket.bytesRead - sentBefore > LIMITS.pipelinedBytes
}
