import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { SCOPES } from '@tacho/contract/web/route.ts'
import { event, startService, type Service } from '../../setup/service.ts'
import { refusalOf, replyOf, UNKNOWN_ID } from '../web/contract.ts'

let service: Service
let jump = 0
before(async () => {
  service = await startService({}, () => Date.now() + jump)
})
after(() => service.close())

const keysOf = (environmentId: string) => `/environments/${environmentId}/keys`
const create = (body: object, environmentId = service.environmentId) =>
  service.operator(keysOf(environmentId), { body: { name: 'k', scopes: ['events:write'], ...body } })
const list = async () => replyOf('listApiKeys', await service.operator(keysOf(service.environmentId)))
const later = (ms: number) => new Date(Date.now() + ms).toISOString()

test('a new key is shown once, works at once, and is stored without its secret', async () => {
  const answer = await create({ name: 'ingest', scopes: [...SCOPES], requestsPerSecond: 7 })
  const { key, ...kept } = replyOf('createApiKey', answer)
  assert.match(key, new RegExp(`^tacho_${kept.id}_[0-9a-f]{64}$`))
  assert.equal(answer.headers.get('cache-control'), 'no-store')
  assert.deepEqual([kept.requestsPerSecond, kept.expiresAt, kept.revokedAt, kept.lastUsedAt], [7, null, null, null])
  assert.equal((await service.record([event()], key)).status, 200)
  assert.deepEqual(
    (await list()).items.find(({ id }) => id === kept.id),
    kept,
  )
  assert.ok(!JSON.stringify(await list()).includes(key.slice(-64)))
})

test('a key has scopes that exist, each once', async () => {
  for (const scopes of [[], ['admin'], ['events:write', 'events:write'], 'events:write', null, undefined]) {
    assert.deepEqual(refusalOf(await create({ scopes })), [400, 'invalid_request'], JSON.stringify(scopes))
  }
})

test('a rate limit is from 1 to 1,000,000 requests a second, or the default', async () => {
  for (const requestsPerSecond of [1, LIMITS.requestsPerSecondMax, null]) {
    assert.equal(replyOf('createApiKey', await create({ requestsPerSecond })).requestsPerSecond, requestsPerSecond)
  }
  for (const requestsPerSecond of [0, LIMITS.requestsPerSecondMax + 1, 1.5, '5']) {
    assert.deepEqual(
      refusalOf(await create({ requestsPerSecond })),
      [400, 'invalid_request'],
      String(requestsPerSecond),
    )
  }
})

test('a key expires at its time, and cannot be created expired', async () => {
  const { key, expiresAt } = replyOf('createApiKey', await create({ expiresAt: later(120_000) }))
  assert.equal((await service.record([event()], key)).status, 200)
  jump = Date.parse(expiresAt ?? '') - Date.now()
  assert.equal((await service.record([event()], key)).status, 401)
  jump = 0
  assert.equal(
    replyOf('createApiKey', await create({ expiresAt: '2100-01-01T00:00:00+01:00' })).expiresAt,
    '2099-12-31T23:00:00.000Z',
  )
  for (const wrong of [later(-1000), '2100-12-31T23:59:60Z', 'tomorrow', '2100-01-01', 4_102_444_800_000]) {
    assert.deepEqual(refusalOf(await create({ expiresAt: wrong })), [400, 'invalid_request'], String(wrong))
  }
})

test('a revoked key is rejected at once on this node, and revoking again keeps the first time', async () => {
  const { key, id } = replyOf('createApiKey', await create({}))
  assert.equal((await service.record([event()], key)).status, 200)
  const revoke = () => service.operator(`${keysOf(service.environmentId)}/${id}/revoke`, { method: 'POST' })
  const { revokedAt } = replyOf('revokeApiKey', await revoke())
  assert.notEqual(revokedAt, null)
  assert.equal((await service.record([event()], key)).status, 401)
  assert.equal(replyOf('revokeApiKey', await revoke()).revokedAt, revokedAt)
})

test('keys belong to one environment: unknown and foreign ids get the same 404', async () => {
  const { id } = replyOf('createApiKey', await create({}))
  const foreign = await service.newTenant('foreign')
  const revoke = (environmentId: string, keyId: string) =>
    service.operator(`${keysOf(environmentId)}/${keyId}/revoke`, { method: 'POST' })
  const refusals = await Promise.all([
    revoke(foreign.environmentId, id),
    revoke(service.environmentId, 'ffffffffffffffff'),
  ])
  for (const refused of refusals) {
    assert.deepEqual(refusalOf(refused), [404, 'not_found'])
    assert.equal((refused.body as { detail: string }).detail, (refusals[0].body as { detail: string }).detail)
  }
  assert.deepEqual(refusalOf(await revoke(service.environmentId, '%00')), [404, 'not_found'])
  assert.deepEqual(refusalOf(await create({}, UNKNOWN_ID)), [404, 'not_found'])
  assert.deepEqual(refusalOf(await service.operator(keysOf(UNKNOWN_ID))), [404, 'not_found'])
})

test('paging by cursor returns every key of the environment once', async () => {
  const walk = async (limit: number) => {
    const ids: string[] = []
    let cursor = ''
    do {
      const query = `?limit=${limit}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`
      const page = replyOf('listApiKeys', await service.operator(`${keysOf(service.environmentId)}${query}`))
      ids.push(...page.items.map(({ id }) => id))
      cursor = page.nextCursor ?? ''
    } while (cursor)
    return ids
  }
  assert.deepEqual(await walk(2), await walk(200))
})
