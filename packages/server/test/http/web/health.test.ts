import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fastify } from 'fastify'
import { healthRoutes } from '@tacho/server/http/web/health.ts'
import type { Storage } from '@tacho/server/storage/storage.ts'
import { StorageError, type StorageErrorCode } from '@tacho/server/storage/engine/store.ts'
import { startService } from '../../setup/service.ts'

/** The two routes over a store with failures that a real one cannot produce on demand. */
function open(state: {
  draining?: boolean
  damage?: string | null
  refused?: StorageErrorCode | null
  ping?: () => Promise<void>
}) {
  const app = fastify()
  const { draining = false, damage = null, refused = null, ping = async () => undefined } = state
  const full = { code: 'storage_full', reason: 'The disk is nearly full' } as const
  const trouble = () =>
    damage !== null
      ? ({ code: 'storage_unavailable', reason: damage } as const)
      : refused === 'storage_full'
        ? full
        : null
  const storage = { ping, trouble } as Partial<Storage> as Storage
  healthRoutes(app, { storage, draining: () => draining })
  return app
}

async function ready(state: Parameters<typeof open>[0]): Promise<[number, string]> {
  const app = open(state)
  const answer = await app.inject('/readyz')
  const { code, status } = answer.json<{ code?: string; status: string }>()
  await app.close()
  return [answer.statusCode, code ?? status]
}

test('a server on a real store is alive and ready, without a key, also for HEAD', async () => {
  const service = await startService()
  try {
    for (const path of ['/healthz', '/readyz']) {
      assert.equal((await service.call(path)).status, 200)
      const { status, text } = await service.call(path, { method: 'HEAD' })
      assert.deepEqual([status, text], [200, ''])
    }
  } finally {
    await service.close()
  }
})

test('readiness ends with draining, a full disk or a store that does not answer, and names the reason', async () => {
  assert.deepEqual(await ready({}), [200, 'ready'])
  assert.deepEqual(await ready({ draining: true }), [503, 'shutting_down'])
  assert.deepEqual(await ready({ refused: 'storage_full' }), [503, 'storage_full'])
  assert.deepEqual(await ready({ damage: 'The store is damaged' }), [503, 'storage_unavailable'])
  const fail = (error: Error) => () => Promise.reject(error)
  assert.deepEqual(await ready({ ping: fail(new StorageError('storage_unavailable', 'x')) }), [
    503,
    'storage_unavailable',
  ])
  assert.deepEqual(await ready({ ping: fail(new Error('bug')) }), [503, 'storage_unavailable'])
})

test('a full write queue is temporary and does not end readiness', async () => {
  assert.deepEqual(await ready({ refused: 'overloaded' }), [200, 'ready'])
})

test('readiness waits at most a second for a store that never answers', async () => {
  assert.deepEqual(await ready({ ping: () => new Promise(() => undefined) }), [503, 'storage_unavailable'])
})

test('liveness does not depend on the store', async () => {
  const app = open({ draining: true, ping: () => new Promise(() => undefined) })
  assert.equal((await app.inject('/healthz')).statusCode, 200)
  await app.close()
})

test('any number of concurrent checks query the store once', async () => {
  let asked = 0
  const app = open({
    async ping() {
      asked += 1
      await new Promise((resolve) => setTimeout(resolve, 20))
    },
  })
  await Promise.all(Array.from({ length: 20 }, () => app.inject('/readyz')))
  assert.equal(asked, 1)
  await app.inject('/readyz')
  assert.equal(asked, 2)
  await app.close()
})
