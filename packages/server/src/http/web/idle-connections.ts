/** Unbounded, connections without a request could use up the files of the process, and the store could open none. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { LIMITS } from '@tacho/contract/engine/limits.ts'

export function boundIdleConnections(server: Server, most: number = LIMITS.idleConnections): void {
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
