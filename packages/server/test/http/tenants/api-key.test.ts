import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { SCOPES, type Scope } from '@tacho/contract/web/route.ts'
import { ROUTES } from '@tacho/contract/web/routes.ts'
import { eventually } from '../../setup/eventually.ts'
import { event, startService, type Service } from '../../setup/service.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

const pathOf = (path: string) => `/openapi/v1${path.replace(/\{\w+\}/, 'x')}`

test('every endpoint rejects a request without a valid key', async () => {
  const changed = service.apiKey.replace(/.$/, (last) => (last === '0' ? '1' : '0'))
  for (const { method, path } of Object.values(ROUTES)) {
    const body = method === 'POST' ? { body: '[]' } : {}
    for (const key of [undefined, '', 'x', changed, `${service.apiKey} `.repeat(2), service.operatorToken]) {
      const headers: Record<string, string> = key === undefined ? {} : { 'x-api-key': key }
      const answer = await service.call<{ code: string }>(pathOf(path), { method, headers, ...body })
      assert.deepEqual([answer.status, answer.body.code], [401, 'unauthenticated'], `${path} ${key}`)
    }
  }
})

test('every endpoint needs each of its scopes', async () => {
  for (const { method, path, scopes } of Object.values(ROUTES)) {
    for (const missing of scopes) {
      const key = await service.newKey({ scopes: SCOPES.filter((scope) => scope !== missing) as Scope[] })
      const body = method === 'POST' ? { body: '[]' } : {}
      const answer = await service.call(pathOf(path), { method, headers: { 'x-api-key': key }, ...body })
      assert.equal(answer.status, 403, `${path} without ${missing}`)
    }
    const key = await service.newKey({ scopes: [...scopes] })
    const body = method === 'POST' ? { body: '[]' } : {}
    const answer = await service.call(pathOf(path), { method, headers: { 'x-api-key': key }, ...body })
    assert.ok(![401, 403].includes(answer.status), `${path} with its scopes`)
  }
})

test('a Bearer token beside the key is ignored', async () => {
  const authorization = 'Bearer something'
  assert.equal((await service.api('/runs', { headers: { authorization } })).status, 200)
  assert.equal((await service.call('/openapi/v1/runs', { headers: { authorization } })).status, 401)
})

test('two keys in one request are rejected', async () => {
  const headers = new Headers({ 'x-api-key': service.apiKey })
  headers.append('x-api-key', service.apiKey)
  assert.equal((await fetch(`${service.url}/openapi/v1/runs`, { headers })).status, 401)
})

test('the checks come in the order 401, 403, 429, 413, 415, 400', async () => {
  const large = 'x'.repeat(1_048_577)
  const read = await service.newKey({ scopes: ['usage:read'] })
  const slow = await service.newKey({ scopes: ['events:write'], requestsPerSecond: 1 })
  const post = (key: string, body: string, type: string) =>
    service.call('/openapi/v1/events/batch', { body, headers: { 'x-api-key': key, 'content-type': type } })
  assert.equal((await post('x', large, 'text/plain')).status, 401)
  assert.equal((await post(read, large, 'text/plain')).status, 403)
  const statuses = await Promise.all(Array.from({ length: 20 }, () => post(slow, large, 'text/plain')))
  assert.ok(statuses.some(({ status }) => status === 429))
  assert.equal((await post(service.apiKey, large, 'text/plain')).status, 413)
  assert.equal((await post(service.apiKey, 'x', 'text/plain')).status, 415)
  assert.equal((await post(service.apiKey, 'x', 'application/json')).status, 400)
})

test('a key over its rate limit gets 429 with Retry-After, other keys are not affected', async () => {
  const key = await service.newKey({ scopes: ['events:write'], requestsPerSecond: 3 })
  const begun = performance.now()
  // Send so many that the server refuses some of them even if a busy machine needs many seconds.
  const sent = 90
  const answers = await Promise.all(Array.from({ length: sent }, () => service.record([event()], key)))
  const seconds = Math.ceil((performance.now() - begun) / 1_000) + 1
  const refused = answers.filter(({ status }) => status === 429)
  assert.ok(refused.length >= Math.max(1, sent - 3 * seconds) && refused.length <= sent - 3)
  assert.equal(refused[0]?.headers.get('retry-after'), '1')
  assert.equal(refused[0]?.headers.get('ratelimit-limit'), '3')
  assert.equal(refused[0]?.headers.get('ratelimit-remaining'), '0')
  assert.equal((await service.record([event()])).status, 200)
})

test('a revoked key is rejected within five seconds', async () => {
  const key = await service.newKey({ scopes: ['usage:read'] })
  const read = async () => (await service.api('/runs', { headers: { 'x-api-key': key } })).status
  assert.equal(await read(), 200)
  const [, id] = key.split('_')
  await service.operator(`/environments/${service.environmentId}/keys/${id}/revoke`, { method: 'POST' })
  await eventually(async () => (await read()) === 401, 'a rejected key', 5_000)
})

test('an operator token in the header of API keys is named as one', async () => {
  const { status, body } = await service.api<{ detail: string }>('/runs', {
    headers: { 'x-api-key': service.operatorToken },
  })
  assert.equal(status, 401)
  assert.equal(body.detail, 'This is an operator token; send it as Authorization: Bearer')
})
