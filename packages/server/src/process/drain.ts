import type { Server } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'

const LOOK_MS = 20

/** Create it before the server listens, because it counts open requests. */
export function createDrain(app: FastifyInstance) {
  const server: Server = app.server
  let underWay = 0
  server.on('request', (_request, response) => {
    underWay += 1
    response.once('close', () => (underWay -= 1))
  })

  return {
    async run(timeoutMs: number): Promise<void> {
      const deadline = performance.now() + timeoutMs
      const closed = app.close()
      while (underWay > 0 && performance.now() < deadline) {
        server.closeIdleConnections()
        await wait(LOOK_MS)
      }
      // Connections that never sent a request do not count as idle and would block the close.
      server.closeAllConnections()
      await closed
    },
  }
}
