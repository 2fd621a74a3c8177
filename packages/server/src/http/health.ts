import type { FastifyInstance } from 'fastify'
import { StorageError } from '../storage/store.ts'
import type { Deps } from './deps.ts'
import { refuse, replyError, type Refusal } from './reply-error.ts'
import { within } from './within.ts'

const PING_TIMEOUT_MS = 1_000

export function healthRoutes(app: FastifyInstance, { storage, draining }: Pick<Deps, 'storage' | 'draining'>): void {
  let pinging: Promise<Refusal | null> | null = null

  app.get('/healthz', () => ({ status: 'alive' }))

  app.get('/readyz', async (request, reply) => {
    const refusal = await notReady()
    if (refusal) return replyError(request, reply, refusal)
    return { status: 'ready' }
  })

  /** A full write queue does not count, because it drains within moments. */
  async function notReady(): Promise<Refusal | null> {
    if (draining()) return refuse('shutting_down')
    const damage = storage.damage()
    if (damage !== null) return refuse('storage_unavailable', damage)
    const refused = storage.writesRefused()
    if (refused === 'storage_full' || refused === 'storage_unavailable') return refuse(refused)
    // Shared, because anyone can ask.
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
