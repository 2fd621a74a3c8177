import type { FastifyInstance } from 'fastify'

/** While the process drains, each reply closes its connection, so that clients reconnect elsewhere. */
export function drainingHooks(app: FastifyInstance, { draining }: { draining: () => boolean }): void {
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (draining()) void reply.header('connection', 'close')
    done()
  })
}
