import type { IncomingMessage, Server } from 'node:http'
import { Server as TcpServer, type Socket } from 'node:net'
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import os from 'node:os'
import type { FastifyInstance } from 'fastify'

const LOOK_MS = 20
/**
 * Before it stops listening, the server accepts connections for this many turns of the event loop, at least one in each.
 * The kernel resets established connections that this process has not accepted.
 */
const ACCEPTING_TURNS = 16
/** How long a new connection may take to send its first request, which the balancer no longer sends to another node. */
const FIRST_REQUEST_MS = 500

/** Call this before the server listens, because it counts open requests. */
export function createDrain(app: FastifyInstance) {
  const server: Server = app.server
  const fresh = new Set<Socket>()
  let underWay = 0
  server.on('connection', (socket: Socket) => {
    fresh.add(socket)
    socket.once('close', () => fresh.delete(socket))
  })
  server.on('request', ({ socket }: IncomingMessage, response) => {
    fresh.delete(socket)
    underWay += 1
    response.once('close', () => (underWay -= 1))
  })

  return {
    async run(timeoutMs: number): Promise<void> {
      const start = performance.now()
      const isWithin = (ms: number) => performance.now() - start < ms
      for (let turn = 0; turn < ACCEPTING_TURNS; turn++) await nextTurn()
      // The HTTP server's own close would also end connections whose first request is arriving.
      TcpServer.prototype.close.call(server)
      while (fresh.size > 0 && isWithin(Math.min(FIRST_REQUEST_MS, timeoutMs))) await wait(LOOK_MS)
      const closed = app.close()
      while (underWay > 0 && isWithin(timeoutMs)) {
        server.closeIdleConnections()
        await wait(LOOK_MS)
      }
      server.closeAllConnections()
      await closed
    },
  }
}

/**
 * A repeat within this time counts as the same signal, because process groups, npm and a parent process deliver it
 * twice.
 */
const SAME_SIGNAL_MS = 1_000

/** On any healthy machine, jobs, threads and the store end within this time. */
export const CLOSE_MS = 5_000

export function nextSignal(leave: (code: number) => void): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>()
  let firstAt: number | null = null
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.on(signal, () => {
      const now = performance.now()
      if (firstAt !== null && now - firstAt > SAME_SIGNAL_MS) leave(128 + os.constants.signals[signal])
      firstAt ??= now
      resolve(signal)
    })
  }
  return promise
}
