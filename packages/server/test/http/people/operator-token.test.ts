import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { OPERATOR_PREFIX, OPERATOR_ROUTES } from '@tacho/contract/web/operator-routes.ts'
import { startService, type Service } from '../../setup/service.ts'
import { UNKNOWN_ID } from '../web/contract.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

test('every row of the operator API asks for a token before anything else', async () => {
  for (const [name, route] of Object.entries(OPERATOR_ROUTES)) {
    if (route.access === 'anyone') continue
    const path = route.path.replaceAll(/\{\w+\}/g, UNKNOWN_ID)
    const { status, headers, body } = await service.call(`${OPERATOR_PREFIX}${path}?limit=0`, { method: route.method })
    assert.deepEqual([status, (body as { code: string }).code], [401, 'unauthenticated'], name)
    assert.equal(headers.get('www-authenticate'), 'Bearer realm="tacho"')
  }
})

test('a wrong token is rejected without saying what is wrong with it', async () => {
  const good = service.operatorToken
  const wrong = [
    `Bearer ${good.slice(0, -1)}${good.endsWith('0') ? '1' : '0'}`,
    `Bearer tacho-operator_${'0'.repeat(16)}_${'0'.repeat(64)}`,
    `Bearer ${service.apiKey}`,
    'Bearer x',
  ]
  const details = new Set<string>()
  for (const authorization of wrong) {
    const { status, headers, body } = await service.operator('/workspaces', { headers: { authorization } })
    assert.equal(status, 401, authorization)
    assert.equal(headers.get('www-authenticate'), 'Bearer realm="tacho", error="invalid_token"')
    details.add((body as { detail: string }).detail)
  }
  assert.equal(details.size, 1)
})

test('the scheme is case-insensitive; other schemes and bare tokens are rejected', async () => {
  const status = async (authorization: string) =>
    (await service.operator('/workspaces', { headers: { authorization } })).status
  assert.equal(await status(`bearer  ${service.operatorToken}`), 200)
  assert.equal(await status(service.operatorToken), 401)
  assert.equal(await status(`Basic ${service.operatorToken}`), 401)
  assert.equal(await status(`Bearer ${service.operatorToken} x`), 401)
})

test('an operator token is not valid in the public interface', async () => {
  const { status } = await service.call('/openapi/v1/runs', { headers: { 'x-api-key': service.operatorToken } })
  assert.equal(status, 401)
})
