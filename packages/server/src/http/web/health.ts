/** `/healthz`: the process is running. `/readyz`: it can serve requests. */
import type { FastifyInstance } from 'fastify'
import { StorageError } from '../../storage/engine/store.ts'
import type { Deps } from './deps.ts'
import { refuse, replyError, type Refusal } from './reply-error.ts'
import { within } from './turns.ts'

const PING_TIMEOUT_MS = 800

export function healthRoutes(app: FastifyInstance, { storage, draining }: Pick<Deps, 'storage' | 'draining'>): void {
  let pinging: Promise<Refusal | null> | null = null

  app.get('/healthz', () => ({ status: 'alive' }))

  app.get('/readyz', async (request, reply) => {
    const refusal = await notReady()
    if (refusal) return replyError(request, reply, refusal)
    return { status: 'ready' }
  })

  async function notReady(): Promise<Refusal | null> {
    if (draining()) return refuse('shutting_down')
    const trouble = storage.trouble()
    if (trouble !== null) return refuse(trouble.code, trouble.reason)
    // Concurrent requests share one ping, because anyone can send them.
    pinging ??= pingStore().finally(() => (pinging = null))
    return pinging
  }

  async function pingStore(): Promise<Refusal | null> {
    const answered = storage.ping().then(
      () => null,
      (error: unknown) => refuse(error instanceof StorageError ? error.code : 'storage_unavailable'),
    )
    const late = refuse('storage_unavailable', `The store did not answer within ${PING_TIMEOUT_MS} ms`)
    return within(answered, PING_TIMEOUT_MS, late)
  }
}
