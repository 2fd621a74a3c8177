import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig } from '@tacho/server/config/config.ts'
import { parseApiKey } from '@tacho/server/domain/people/credential.ts'
import { startServer } from '../../setup/start-server.ts'
import { configurationCalls } from '../../setup/configuration-service.ts'
import { event, startService } from '../../setup/service.ts'
import { replyOf } from '../web/contract.ts'

const SCOPES = ['config:read', 'policies:read'] as const

test('the polls of clients say which revision each has, after a restart too; other tenants see nothing', async (t) => {
  const service = await startService()
  t.after(() => service.close())
  const calls = await configurationCalls(service)
  const keys = [await service.newKey({ scopes: [...SCOPES] }), await service.newKey({ scopes: [...SCOPES] })]
  const other = await service.newTenant('other')
  const [first = '', second = ''] = keys
  const load = async (key: string, headers: Record<string, string> = {}) => calls.load({ 'x-api-key': key, ...headers })

  const old = (await load(first, { 'x-service-client-id': 'slow' })).headers.get('etag') ?? ''
  await calls.deploy([['policy', (await calls.newPolicy()).policyId, '1']])
  const now = (await load(second)).headers.get('etag') ?? ''
  assert.notEqual(old, now)
  assert.equal((await load(first, { 'x-service-client-id': 'slow', 'if-none-match': old })).status, 200)
  // The first request is answered in front of the framework, the second one by its route.
  const given = { 'x-service-client-id': 'quick', 'if-none-match': now }
  assert.equal((await load(first, given)).status, 304)
  const byRoute = { 'x-api-key': first, ...given, 'x-service-client-id': 'route' }
  assert.equal((await service.api('/runtime-config?unknown=1', { headers: byRoute })).status, 304)

  // This client cannot load the configuration. Its decisions name the old revision.
  const revision = old.replaceAll(/[W/"]/g, '')
  const judged = (payload: object, clientId = 'frozen') =>
    event({ clientId, eventType: 'POLICY_DECISION', payload: { action: 'ALLOW', toolName: 'refund', ...payload } })
  const decisions = [
    judged({ policyAgeMs: 400_000, revision }),
    judged({ revision }, 'fresh'),
    judged({ policyAgeMs: 'x' }, 'odd'),
  ]
  assert.deepEqual((await service.record(decisions)).body.accepted, 3)

  // These two clients report their end: one in front of the framework, one to its route.
  for (const path of ['/runtime-config', '/runtime-config?unknown=1']) {
    const ending = { 'x-api-key': first, ...given, 'x-service-client-id': `ended ${path}` }
    assert.equal((await service.api(path, { headers: ending })).status, 304)
    assert.equal((await service.api(path, { headers: { ...ending, 'x-tacho-closing': 'true' } })).status, 304)
  }

  await service.stop()
  const read = readConfig({ port: '0', dataDir: service.directory, logLevel: 'silent' }, {})
  assert.ok(read.ok)
  const again = await startServer(read.config)
  t.after(() => again.close())
  const list = async (environmentId: string, query = '') => {
    const reply = await fetch(`${again.url}/operator/v1/environments/${environmentId}/clients${query}`, {
      headers: { authorization: `Bearer ${service.operatorToken}` },
    })
    return replyOf('listConfigurationClients', {
      status: reply.status,
      headers: reply.headers,
      text: '',
      body: await reply.json(),
    })
  }
  const whole = await list(service.environmentId)
  const secondId = parseApiKey(second)?.id
  assert.deepEqual(
    whole.items.map(({ clientId, identifiedBy, revision, standing }) => [
      clientId,
      identifiedBy,
      `W/"${revision}"`,
      standing,
    ]),
    [
      ['frozen', 'client', old, 'UPDATING'],
      ['quick', 'client', now, 'CURRENT'],
      ['route', 'client', now, 'CURRENT'],
      ['slow', 'client', old, 'UPDATING'],
      [secondId, 'key', now, 'CURRENT'],
    ],
  )
  assert.equal(whole.items[4]?.keyId, secondId)
  assert.deepEqual(whole.counts, { current: 3, updating: 2, behind: 0, silent: 0 })
  const page = await list(service.environmentId, '?limit=1&standing=CURRENT')
  const rest = await list(service.environmentId, `?standing=CURRENT&cursor=${page.nextCursor}`)
  assert.deepEqual(
    [...page.items, ...rest.items],
    whole.items.filter(({ standing }) => standing === 'CURRENT'),
  )
  assert.deepEqual(rest.nextCursor, null)
  assert.deepEqual((await list(other.environmentId)).items, [])
  assert.deepEqual((await list(calls.staging)).items, [])
})
