/**
 * Bounds the connections that wait for a request. Each is small, but their number would otherwise be bounded only by how
 * many files the process may open, and then the store could open none.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { LIMITS } from '@tacho/contract/limits.ts'

/** Beyond `most`, closes the connection that has waited longest. Clients open another one with their next request. */
export function boundIdleConnections(server: Server, most: number = LIMITS.idleConnections): void {
  /** In the order in which they began to wait. */
  const idle = new Set<Socket>()
  const underWay = new WeakMap<Socket, number>()

  function rest(socket: Socket): void {
    idle.add(socket)
    if (idle.size <= most) return
    const [longest] = idle
    longest?.destroy()
    if (longest) idle.delete(longest)
  }

  server.on('connection', (socket: Socket) => {
    rest(socket)
    socket.once('close', () => idle.delete(socket))
  })
  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    idle.delete(socket)
    underWay.set(socket, (underWay.get(socket) ?? 0) + 1)
    response.once('close', () => {
      const others = (underWay.get(socket) ?? 1) - 1
      underWay.set(socket, others)
      if (others === 0 && !socket.destroyed) rest(socket)
    })
  })
}
