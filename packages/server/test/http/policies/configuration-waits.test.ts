import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { configurationCalls, type ConfigurationCalls } from '../../setup/configuration-service.ts'
import { eventually } from '../../setup/eventually.ts'
import { startFromSources, startService, type Service } from '../../setup/service.ts'

let service: Service
let calls: ConfigurationCalls
let policyId: string
before(async () => {
  service = await startService()
  calls = await configurationCalls(service)
  policyId = (await calls.newPolicy()).policyId
})
after(() => service.close())

const SCOPES = ['config:read', 'policies:read'] as const
const tagOf = async (of = service) => (await of.api('/runtime-config')).headers.get('etag') ?? ''
/** Both ways to wait: in front of the framework, and in its route, for a key with allowed addresses. */
const keys = async (): Promise<string[]> => [
  await service.newKey({ scopes: [...SCOPES] }),
  await service.newKey({ scopes: [...SCOPES], allowedAddresses: ['127.0.0.0/8', '::1'] }),
]

async function wait(seconds: number, headers: Record<string, string>, of = service) {
  const startedAt = performance.now()
  const { status, headers: replied, text } = await of.api(`/runtime-config?wait=${seconds}`, { headers })
  return {
    status,
    etag: replied.get('etag'),
    offers: replied.get('x-tacho-wait'),
    text,
    ms: performance.now() - startedAt,
  }
}

const waiting = async (of = service) => {
  const { text } = await of.call('/metrics')
  return Number(/^tacho_configuration_waits (\d+)/m.exec(text)?.[1])
}
const untilWaiting = (count: number, of = service) =>
  eventually(async () => (await waiting(of)) === count || null, `${count} requests wait`)

test('a request that waits is answered as soon as the configuration changes, and not by a change of another environment', async () => {
  for (const key of await keys()) {
    const etag = await tagOf()
    const reply = wait(25, { 'x-api-key': key, 'if-none-match': etag })
    await untilWaiting(1)
    const { policyId: other } = await calls.newPolicy()
    await calls.deploy([['policy', other, '1']], calls.staging)
    assert.equal(await waiting(), 1)
    await calls.deploy([['policy', policyId, etag === (await tagOf()) ? '1' : null]])
    const { status, text, offers, ms } = await reply
    assert.deepEqual([status, text.includes(policyId), offers], [200, true, '25'])
    assert.ok(ms < 20_000, `${ms}`)
    await untilWaiting(0)
    await calls.deploy([['policy', policyId, null]])
  }
})

test('it is 304 at the end of the wait; without a tag that matches, nothing waits', async () => {
  for (const key of await keys()) {
    const etag = await tagOf()
    const ended = await wait(1, { 'x-api-key': key, 'if-none-match': etag })
    assert.deepEqual([ended.status, ended.text, ended.etag, ended.offers], [304, '', etag, '25'])
    assert.ok(ended.ms > 900, `${ended.ms}`)
    for (const headers of [{}, { 'if-none-match': '"other"' }]) {
      const { status, ms } = await wait(25, { 'x-api-key': key, ...headers })
      assert.deepEqual([status, ms < 20_000], [200, true])
    }
  }
  const plain = await service.api('/runtime-config', { headers: { 'if-none-match': await tagOf() } })
  assert.equal(plain.status, 304)
  for (const seconds of ['0', '31', 'x', '1.5'])
    assert.equal((await service.api(`/runtime-config?wait=${seconds}`)).status, 400)
})

test('a key that is revoked during the wait gets 401 at once', async () => {
  for (const key of await keys()) {
    const reply = wait(25, { 'x-api-key': key, 'if-none-match': await tagOf() })
    const leaving = new AbortController()
    const others = { 'x-api-key': service.apiKey, 'if-none-match': await tagOf() }
    const other = fetch(`${service.url}/openapi/v1/runtime-config?wait=25`, { headers: others, signal: leaving.signal })
    await untilWaiting(2)
    const id = key.split('_')[1] ?? ''
    assert.equal(
      (await service.operator(`/environments/${service.environmentId}/keys/${id}/revoke`, { method: 'POST' })).status,
      200,
    )
    const { status, text, ms } = await reply
    assert.deepEqual([status, text.includes(policyId)], [401, false])
    // The reply comes at once, and other keys go on waiting.
    assert.ok(ms < 15_000, `${ms}`)
    await untilWaiting(1)
    leaving.abort()
    await assert.rejects(other)
    await untilWaiting(0)
  }
})

test('a client that goes away leaves no wait behind', async () => {
  for (const key of await keys()) {
    const controller = new AbortController()
    const headers = { 'x-api-key': key, 'if-none-match': await tagOf() }
    const reply = fetch(`${service.url}/openapi/v1/runtime-config?wait=25`, { headers, signal: controller.signal })
    await untilWaiting(1)
    controller.abort()
    await assert.rejects(reply)
    await untilWaiting(0)
  }
})

test('a workspace holds its share of waits; beyond it, requests are answered at once and no wait is offered', async (t) => {
  const limits: { configurationWaitsOfWorkspace: number } = LIMITS
  const { configurationWaitsOfWorkspace } = limits
  limits.configurationWaitsOfWorkspace = 2
  const small = await startFromSources().finally(
    () => (limits.configurationWaitsOfWorkspace = configurationWaitsOfWorkspace),
  )
  t.after(() => small.close())
  const headers = { 'if-none-match': await tagOf(small) }
  const held = [wait(25, headers, small), wait(25, headers, small)]
  await untilWaiting(2, small)
  const { status, offers, ms } = await wait(25, headers, small)
  assert.deepEqual([status, offers, ms < 20_000], [304, null, true])
  const stopped = small.stop()
  for (const reply of await Promise.all(held)) assert.deepEqual([reply.status, reply.ms < 24_000], [304, true])
  await stopped
})
