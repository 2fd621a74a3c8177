/**
 * Node parses all requests of one read of 64 KiB, more than a thousand, before anything can pause it. Each holds its
 * answer until those before it are read.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { LIMITS } from '@tacho/contract/limits.ts'

const queued = new WeakMap<Socket, number>()

/** Whether an earlier answer of this connection must be read first. */
export function isQueued(response: ServerResponse): boolean {
  return response.socket === null
}

/** Runs before the listeners that the server has. */
export function boundPipelines(server: Server, closed: () => void = () => undefined): void {
  const listeners = server.listeners('request')
  server.removeAllListeners('request')
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request
    // The rest of a read that closed its connection.
    if (socket.destroyed) return
    if (isQueued(response) && !enqueue(socket, response)) {
      // An answer would be one more that nobody reads.
      socket.destroy()
      closed()
      return
    }
    for (const listener of listeners) listener.call(server, request, response)
  })
}

function enqueue(socket: Socket, response: ServerResponse): boolean {
  const waiting = queued.get(socket) ?? 0
  if (waiting >= LIMITS.pipelinedRequests - 1) return false
  queued.set(socket, waiting + 1)
  response.once('close', () => queued.set(socket, (queued.get(socket) ?? 1) - 1))
  return true
}
