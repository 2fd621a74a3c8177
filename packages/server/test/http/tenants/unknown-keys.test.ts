import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test, type TestContext } from 'node:test'
import { SCOPES } from '@tacho/contract/web/route.ts'
import { ROUTES } from '@tacho/contract/web/routes.ts'
import { fastify } from 'fastify'
import { newApiKey, parseApiKey } from '../../../src/domain/people/credential.ts'
import { apiKeyHook, type FoundApiKey, createUnknownKeys } from '../../../src/http/tenants/api-key.ts'
import { createCredentialCache } from '../../../src/http/tenants/credential-cache.ts'
import { createRateLimit } from '../../../src/http/tenants/rate-limit.ts'
import { NONE_LOST } from '../../../src/storage/tenants/tenants.ts'

const PER_SECOND = 3

/** A server with the hook on one route, and two valid keys. Counts how often the hook looks up a key. */
async function open(t: TestContext) {
  const clock = { ms: 0 }
  const monotonicNow = () => clock.ms
  const made = [newApiKey(randomBytes), newApiKey(randomBytes)]
  const none = {
    requestsPerSecond: null,
    expiresAt: null,
    revokedAt: null,
    replacedBy: null,
    creatorKind: null,
    creatorId: null,
    lastUsedAt: null,
    allowedAddresses: null,
    family: null,
    ...NONE_LOST,
  }
  const rows = made.map(({ id, hash }): FoundApiKey => {
    return { id, hash, environmentId: 'e', workspaceId: 'w', name: 'k', scopes: [...SCOPES], createdAt: 0, ...none }
  })
  let lookups = 0
  const keys = createCredentialCache<FoundApiKey>({
    parse: parseApiKey,
    async load(id) {
      lookups += 1
      return rows.find((row) => row.id === id) ?? null
    },
    monotonicNow,
  })
  keys.observeRevision(1, 0)
  const rateLimit = createRateLimit({ requestsPerSecond: 1_000, nodes: () => 1 })
  const unknownKeys = createUnknownKeys({ perSecond: PER_SECOND, monotonicNow })
  const app = fastify()
  t.after(() => app.close())
  app.get(
    '/',
    { onRequest: apiKeyHook(ROUTES.listRuns, keys, rateLimit, unknownKeys, () => undefined, Date.now) },
    () => 'ok',
  )
  const ask = async (key: string, remoteAddress = '192.0.2.1') => {
    const { statusCode, headers } = await app.inject({ url: '/', headers: { 'x-api-key': key }, remoteAddress })
    return [statusCode, headers['retry-after']]
  }
  return { ask, clock, lookups: () => lookups, valid: made.map(({ text }) => text) as [string, string] }
}

const stranger = () => newApiKey(randomBytes).text

test('an address gets its invalid keys looked up, and not one more within the second', async (t) => {
  const { ask, clock, lookups } = await open(t)
  for (let attempt = 0; attempt < PER_SECOND; attempt++) assert.deepEqual(await ask(stranger()), [401, undefined])
  for (let attempt = 0; attempt < 20; attempt++) assert.deepEqual(await ask(stranger()), [429, '1'])
  assert.equal(lookups(), PER_SECOND)
  assert.deepEqual(await ask(stranger(), '192.0.2.2'), [401, undefined])
  clock.ms = 1_000
  assert.deepEqual(await ask(stranger()), [401, undefined])
})

test('a key in use is served from an address over the limit; a key that needs a lookup waits', async (t) => {
  const { ask, valid } = await open(t)
  assert.deepEqual(await ask(valid[0]), [200, undefined])
  for (let attempt = 0; attempt < 20; attempt++) await ask(stranger())
  assert.deepEqual(await ask(valid[0]), [200, undefined])
  assert.deepEqual(await ask(valid[1]), [429, '1'])
  assert.deepEqual(await ask(valid[1], '192.0.2.2'), [200, undefined])
})

test('valid keys count for nothing, however many are looked up', async (t) => {
  const { ask, valid } = await open(t)
  for (let time = 0; time < 20; time++) for (const key of valid) assert.deepEqual(await ask(key), [200, undefined])
  assert.deepEqual(await ask(stranger()), [401, undefined])
})
