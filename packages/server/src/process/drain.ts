import type { Server } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'

export interface Drain {
  /** Lets nothing new in, and resolves when all requests under way are answered, or cut after `timeoutMs`. */
  run(timeoutMs: number): Promise<void>
}

const LOOK_MS = 20

/** Must be made before the server listens: it counts the requests under way. */
export function createDrain(app: FastifyInstance): Drain {
  const server: Server = app.server
  let underWay = 0
  server.on('request', (_request, response) => {
    underWay += 1
    response.once('close', () => (underWay -= 1))
  })

  return {
    async run(timeoutMs) {
      const deadline = performance.now() + timeoutMs
      const closed = app.close()
      while (underWay > 0 && performance.now() < deadline) {
        server.closeIdleConnections()
        await wait(LOOK_MS)
      }
      // Connections that never sent anything do not count as idle; they would be waited for.
      server.closeAllConnections()
      await closed
    },
  }
}
