/**
 * A client may send requests ahead (RFC 9112, 9.3.2). Each waits here until the answers before it have been sent: an
 * answer made earlier would be held for a client that may never read.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { LIMITS } from '@tacho/contract/limits.ts'

/** How many requests of a connection wait. */
const waiting = new WeakMap<Socket, number>()

/** Runs before the listeners that the server has. */
export function boundPipelines(server: Server, closed: () => void = () => undefined): void {
  const listeners = server.listeners('request')
  server.removeAllListeners('request')
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    for (const listener of listeners) listener.call(server, request, response)
  }
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request
    if (socket.destroyed) return
    if (response.socket !== null) return serve(request, response)
    const count = (waiting.get(socket) ?? 0) + 1
    if (count === LIMITS.pipelinedRequests) {
      skipRest(socket)
      socket.destroy()
      return closed()
    }
    waiting.set(socket, count)
    // Its turn: Node gives it the connection.
    response.once('socket', () => {
      waiting.set(socket, (waiting.get(socket) ?? 1) - 1)
      // Other connections get their turns in between.
      setImmediate(() => {
        if (!socket.destroyed) serve(request, response)
      })
    })
  })
}

/**
 * Node parses all of what it read, up to a thousand requests, and makes an error for each when the connection closes. Its
 * parser ends where a request says that another protocol follows.
 */
function skipRest(socket: Socket & { parser?: { onIncoming: () => number } | null }): void {
  if (socket.parser) socket.parser.onIncoming = () => UPGRADED
}

/** What llhttp's `on_headers_complete` answers for it. */
const UPGRADED = 2
