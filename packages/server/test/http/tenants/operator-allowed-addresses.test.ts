import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { SCOPES } from '@tacho/contract/web/route.ts'
import { eventually } from '../../setup/eventually.ts'
import { event, startService, type Service } from '../../setup/service.ts'
import { refusalOf, replyOf } from '../web/contract.ts'

let service: Service
before(async () => {
  service = await startService({ trustProxy: '127.0.0.1' })
})
after(() => service.close())

const HOME = '192.0.2.9'
const ELSEWHERE = '203.0.113.5'
const from = (address: string) => ({ 'x-forwarded-for': address })
const keys = () => `/environments/${service.environmentId}/keys`
const newKey = async (allowedAddresses?: unknown) =>
  service.operator(keys(), { body: { name: 'k', scopes: [...SCOPES], allowedAddresses } })
const send = (key: string, address: string) =>
  service.api('/events/batch', { body: [event()], headers: { 'x-api-key': key, ...from(address) } })

test('a key is valid from its networks alone, whatever the client claims before the proxy', async () => {
  const { key, id, allowedAddresses } = replyOf(
    'createApiKey',
    await newKey(['192.0.2.7/24', '2001:db8::/32', '192.0.2.0/24']),
  )
  assert.deepEqual(allowedAddresses, ['192.0.2.0/24', '2001:db8::/32'])
  for (const address of [HOME, '2001:db8::7', `${ELSEWHERE}, ${HOME}`]) {
    assert.equal((await send(key, address)).status, 200, address)
  }
  for (const address of [ELSEWHERE, '2001:db9::7', `${HOME}, ${ELSEWHERE}`, 'nonsense']) {
    const answer = await send(key, address)
    assert.deepEqual(refusalOf(answer), [401, 'unauthenticated'], address)
  }
  assert.match((await send(key, ELSEWHERE)).text, /not valid from your address, 203\.0\.113\.5/)
  // Without the header, the proxy itself is the client.
  assert.equal((await service.record([event()], key)).status, 401)
  const listed = replyOf('listApiKeys', await service.operator(keys())).items.find((one) => one.id === id)
  assert.deepEqual(listed?.allowedAddresses, allowedAddresses)
})

test('an unchanged configuration is not confirmed to a wrong address', async () => {
  const { key } = replyOf('createApiKey', await newKey([HOME]))
  const ask = (address: string, headers: Record<string, string> = {}) =>
    service.api('/runtime-config', { headers: { 'x-api-key': key, ...from(address), ...headers } })
  const etag = (await ask(HOME)).headers.get('etag') ?? ''
  for (let times = 0; times < 2; times++) {
    assert.equal((await ask(HOME, { 'if-none-match': etag })).status, 304)
    assert.equal((await ask(ELSEWHERE, { 'if-none-match': etag })).status, 401)
  }
})

test('the list of a key changes, and its rotation keeps it', async () => {
  const { key, id } = replyOf('createApiKey', await newKey())
  assert.equal((await send(key, ELSEWHERE)).status, 200)
  const change = async (allowedAddresses: unknown) =>
    replyOf('changeApiKey', await service.operator(`${keys()}/${id}/change`, { body: { allowedAddresses } }))
      .allowedAddresses
  assert.deepEqual(await change([HOME]), [HOME])
  assert.equal((await send(key, ELSEWHERE)).status, 401)
  const renamed = await service.operator(`${keys()}/${id}/change`, { body: { name: 'n' } })
  assert.deepEqual(replyOf('changeApiKey', renamed).allowedAddresses, [HOME])
  const body = { oldValidUntil: new Date(Date.now() + 60_000).toISOString() }
  const rotated = replyOf('rotateApiKey', await service.operator(`${keys()}/${id}/rotate`, { body }))
  assert.deepEqual(rotated.allowedAddresses, [HOME])
  assert.deepEqual([(await send(rotated.key, HOME)).status, (await send(rotated.key, ELSEWHERE)).status], [200, 401])
})

test('a list has 1 to 50 addresses or networks', async () => {
  const many = Array.from({ length: LIMITS.allowedAddresses + 1 }, (_, index) => `10.0.0.${index}`)
  assert.equal((await newKey(null)).status, 201)
  assert.equal((await newKey(many.slice(1))).status, 201)
  for (const wrong of [many, [], [''], ['localhost'], ['10.0.0.0/33'], [7], '10.0.0.0/8', ['10.0.0.1\u0000']]) {
    assert.deepEqual(refusalOf(await newKey(wrong)), [400, 'invalid_request'], JSON.stringify(wrong).slice(0, 40))
  }
  assert.match((await newKey(['10.0.0.1', '127.1'])).text, /allowedAddresses\/1 must be an address or a network/)
})

test('an operator token is valid from its networks alone, and says who made it', async () => {
  const body = { name: 'ci', role: 'admin', allowedAddresses: [HOME] }
  const { token, id, createdBy } = replyOf('createInstallationToken', await service.operator('/tokens', { body }))
  const me = (address: string) =>
    service.call('/operator/v1/me', { headers: { authorization: `Bearer ${token}`, ...from(address) } })
  assert.equal((await me(HOME)).status, 200)
  const refused = await me(ELSEWHERE)
  assert.deepEqual(refusalOf(refused), [401, 'unauthenticated'])
  assert.match(refused.headers.get('www-authenticate') ?? '', /^Bearer /)
  const { items } = replyOf('listInstallationTokens', await service.operator('/tokens'))
  const maker = replyOf('readMe', await service.operator('/me'))
  assert.deepEqual(createdBy, { kind: 'token', id: maker.id, name: maker.name })
  assert.deepEqual(items.find((one) => one.id === id)?.createdBy, createdBy)
  assert.equal(items.find((one) => one.id === maker.id)?.createdBy, null)
})

test('a wrong address is in the audit log once for each network', async () => {
  const { key, id } = replyOf('createApiKey', await newKey([HOME]))
  for (let times = 0; times < 3; times++) await send(key, ELSEWHERE)
  await send(key, '198.51.100.1')
  const path = `/audit?action=api_key.use.refused&targetKind=api_key&targetId=${id}`
  const addresses = async () => {
    const { items } = replyOf('listInstallationAudit', await service.operator(path))
    return items.filter(({ target }) => target.id === id).map(({ address }) => address)
  }
  await eventually(async () => (await addresses()).length >= 2, 'two entries')
  assert.deepEqual(new Set(await addresses()), new Set(['198.51.100.1', ELSEWHERE]))
  assert.equal((await addresses()).length, 2)
})
