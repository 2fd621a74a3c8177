import type { FastifyInstance } from 'fastify'

/** While the process drains, each answer tells its client to come back on another connection. */
export function drainingHooks(app: FastifyInstance, { draining }: { draining: () => boolean }): void {
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (draining()) void reply.header('connection', 'close')
    done()
  })
}
