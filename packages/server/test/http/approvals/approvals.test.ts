import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { Approval } from '@tacho/contract/approvals/approval.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { Compile } from 'typebox/compile'
import { startService, type Answer, type Service } from '../../setup/service.ts'

const HASH = 'ab'.repeat(32)
const CLIENT = 'client-1'
const approval = Compile(Approval)

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

type Fields = Record<string, unknown>

const ask = (fields: Fields = {}, headers: Record<string, string> = {}) =>
  service.api<Approval>('/firewall-approvals', {
    body: { clientRequestId: randomUUID(), toolName: 'transfer', inputHash: HASH, ...fields },
    headers: { 'x-service-client-id': CLIENT, ...headers },
  })

const read = (id: string, headers: Record<string, string> = {}, query = '') =>
  service.api<Approval>(`/firewall-approvals/${id}${query}`, {
    headers: { 'x-service-client-id': CLIENT, ...headers },
  })

function problemOf({ status, body }: Answer): [number, string] {
  return [status, (body as { code: string }).code]
}

/** The rejection of one field, which the error must name. */
function assertRefused(answer: Answer, field: string): void {
  assert.deepEqual(problemOf(answer), [400, 'invalid_request'], answer.text)
  assert.ok(answer.text.includes(field), answer.text)
}

test('a request is answered 201 with exactly the documented fields, PENDING and undecided', async () => {
  const before = Date.now()
  const { status, body } = await ask({ timeoutMs: 60_000 })
  assert.equal(status, 201)
  assert.ok(approval.Check(body), JSON.stringify(approval.Errors(body)))
  assert.deepEqual(Object.keys(body).sort(), ['decidedAt', 'decisionReason', 'expiresAt', 'id', 'status'])
  assert.deepEqual([body.status, body.decidedAt, body.decisionReason], ['PENDING', null, null])
  const lasts = Date.parse(body.expiresAt) - before
  assert.ok(lasts >= 60_000 && lasts < 120_000)
  const found = await read(body.id)
  assert.deepEqual([found.status, found.body], [200, body])
})

test('both endpoints require the header that identifies the client instance', async () => {
  const { id } = (await ask()).body
  const body = { clientRequestId: 'x', toolName: 't', inputHash: HASH }
  for (const headers of [{}, { 'x-service-client-id': '' }]) {
    assertRefused(await service.api('/firewall-approvals', { body, headers }), 'X-Service-Client-ID')
    assertRefused(await service.api(`/firewall-approvals/${id}`, { headers }), 'X-Service-Client-ID')
  }
})

test('each endpoint requires a key with its scope', async () => {
  const { id } = (await ask()).body
  const reader = await service.newKey({ scopes: ['policies:read'] })
  const writer = await service.newKey({ scopes: ['events:write'] })
  const others = await service.newKey({ scopes: ['config:read', 'usage:read'] })
  assert.equal((await ask({}, { 'x-api-key': writer })).status, 201)
  assert.equal((await read(id)).status, 200)
  for (const key of [reader, others])
    assert.deepEqual(problemOf(await ask({}, { 'x-api-key': key })), [403, 'forbidden'])
  for (const key of [writer, others]) {
    assert.deepEqual(problemOf(await read(id, { 'x-api-key': key })), [403, 'forbidden'])
  }
  assert.equal((await ask({}, { 'x-api-key': 'tacho_none' })).status, 401)
  assert.equal((await read(id, { 'x-api-key': 'tacho_none' })).status, 401)
})

test('a retry gets the same 201 and the same approval, whatever its other fields', async () => {
  const clientRequestId = randomUUID()
  const first = await ask({ clientRequestId, reason: 'one', timeoutMs: 60_000 })
  const retry = await ask({
    clientRequestId,
    reason: 'two',
    timeoutMs: 90_000,
    runId: 'r',
    inputHash: HASH.toUpperCase(),
  })
  assert.deepEqual([retry.status, retry.body], [201, first.body])
})

test('a retry gets the approval in its current state', async () => {
  const clientRequestId = randomUUID()
  const { id } = (await ask({ clientRequestId })).body
  await service.operator(`/environments/${service.environmentId}/approvals/${id}/decision`, {
    body: { decision: 'REJECTED', reason: 'not today' },
  })
  const { status, body } = await ask({ clientRequestId })
  assert.deepEqual([status, body.id, body.status, body.decisionReason], [201, id, 'REJECTED', 'not today'])
  assert.ok(body.decidedAt)
})

test('the same clientRequestId for another tool or input is a conflict and changes nothing', async () => {
  const clientRequestId = randomUUID()
  const first = (await ask({ clientRequestId })).body
  for (const other of [{ toolName: 'Transfer' }, { inputHash: 'cd'.repeat(32) }]) {
    assert.deepEqual(problemOf(await ask({ clientRequestId, ...other })), [409, 'conflict'])
  }
  assert.deepEqual((await read(first.id)).body, first)
})

test('another client instance may use the same clientRequestId for its own call', async () => {
  const clientRequestId = randomUUID()
  const mine = await ask({ clientRequestId })
  const theirs = await ask({ clientRequestId, toolName: 'other' }, { 'x-service-client-id': 'client-2' })
  assert.equal(theirs.status, 201)
  assert.notEqual(theirs.body.id, mine.body.id)
})

test('unknown ids, other clients, other tenants and damaged ids get one and the same 404', async () => {
  const { id } = (await ask()).body
  const { environmentId } = await service.newTenant('other tenant')
  const foreign = await service.newKey({ scopes: ['policies:read', 'events:write'], environmentId })
  const answers = [
    await read(randomUUID()),
    await read(id, { 'x-service-client-id': 'client-2' }),
    await read(id, { 'x-service-client-id': CLIENT.toUpperCase() }),
    await read(id, { 'x-api-key': foreign }),
    await read('not-an-id'),
    await read(`${id}0`),
    await read(id, { 'x-api-key': foreign }, '?wait=1'),
    await read(randomUUID(), {}, '?wait=30'),
  ]
  const withoutId = answers.map(({ status, body }) => ({ status, ...(body as object), requestId: '' }))
  assert.deepEqual(new Set(withoutId.map((each) => JSON.stringify(each))).size, 1, JSON.stringify(withoutId))
  assert.deepEqual(problemOf(answers[0] as Answer), [404, 'not_found'])
  assert.equal((await read(id.toUpperCase())).status, 200)
})

test('clientRequestId, toolName and inputHash are required, and null is rejected', async () => {
  for (const field of ['clientRequestId', 'toolName', 'inputHash']) {
    for (const value of [undefined, null, '', 7]) assertRefused(await ask({ [field]: value }), field)
  }
})

test('optional fields may be absent or null; runId is never empty, the other texts may be', async () => {
  const names = ['runId', 'sessionId', 'agentId', 'policyId', 'reason', 'timeoutMs']
  assert.equal((await ask(Object.fromEntries(names.map((name) => [name, null])))).status, 201)
  for (const name of names.slice(1, 5)) assert.equal((await ask({ [name]: '' })).status, 201, name)
  assertRefused(await ask({ runId: '' }), 'runId')
  for (const name of names) assertRefused(await ask({ [name]: {} }), name)
})

test('unknown fields are ignored', async () => {
  const { status, body } = await ask({ status: 'APPROVED', environmentId: randomUUID(), decidedBy: 'me', id: 'x' })
  assert.deepEqual([status, body.status], [201, 'PENDING'])
})

test('an input hash has 32 to 128 hex digits', async () => {
  const { inputHashDigitsMin: least, inputHashDigitsMax: most } = LIMITS
  for (const digits of [least, least + 1, most]) {
    assert.equal((await ask({ inputHash: 'aF3'.repeat(43).slice(0, digits) })).status, 201, `${digits}`)
  }
  const wrong = ['a'.repeat(least - 1), 'a'.repeat(most + 1), 'g'.repeat(64), `0x${HASH}`, ` ${HASH}`, `${HASH}\n`]
  for (const inputHash of wrong) assertRefused(await ask({ inputHash }), 'inputHash')
})

test('a timeout is a whole number from 1 second to 24 hours', async () => {
  for (const timeoutMs of [1_000, 86_400_000]) {
    const before = Date.now()
    const { status, body } = await ask({ timeoutMs })
    assert.equal(status, 201)
    assert.ok(Date.parse(body.expiresAt) >= before + timeoutMs)
  }
  for (const timeoutMs of [999, 86_400_001, 0, -1, 1_000.5, '1000', true]) {
    assertRefused(await ask({ timeoutMs }), 'timeoutMs')
  }
})

test('without a timeout a request expires after 5 minutes', async () => {
  const before = Date.now()
  const { body } = await ask()
  const lasts = Date.parse(body.expiresAt) - before
  assert.ok(lasts >= 300_000 && lasts < 360_000)
})

test('a runId has at most 255 characters, counted in code points', async () => {
  assert.equal((await ask({ runId: '🚀'.repeat(255) })).status, 201)
  assertRefused(await ask({ runId: '🚀'.repeat(256) }), 'runId')
})

test('every text is well-formed Unicode without NUL', async () => {
  for (const field of ['clientRequestId', 'runId', 'sessionId', 'agentId', 'policyId', 'toolName', 'reason']) {
    for (const text of ['a\0b', 'a\ud800']) assertRefused(await ask({ [field]: text }), field)
    assert.equal((await ask({ [field]: `${randomUUID()} é 🚀 \u202e ` })).status, 201, field)
  }
})

test('the reason is stored unchanged, up to the body limit of 64 KiB', async () => {
  const body = (reason: string) =>
    JSON.stringify({ clientRequestId: randomUUID(), toolName: 't', inputHash: HASH, reason })
  const send = (text: string) =>
    service.api<Approval>('/firewall-approvals', { body: text, headers: { 'x-service-client-id': CLIENT } })
  const room = LIMITS.approvalBodyBytes - body('').length
  const reason = `${'x'.repeat(room - 2)}  `
  const fits = await send(body('y'.repeat(room)))
  assert.equal(fits.status, 201)
  assert.deepEqual(problemOf(await send(body('y'.repeat(room + 1)))), [413, 'body_too_large'])
  const { id } = (await send(body(reason))).body
  const card = await service.operator<{ reason: string }>(`/environments/${service.environmentId}/approvals/${id}`)
  assert.equal(card.body.reason, reason)
})

test('anything but a JSON object is rejected', async () => {
  const headers = { 'x-service-client-id': CLIENT }
  const send = (body: unknown, more: Record<string, string> = {}) =>
    service.api('/firewall-approvals', { body, headers: { ...headers, ...more } })
  assert.deepEqual(problemOf(await send('{')), [400, 'invalid_json'])
  assert.deepEqual(problemOf(await send('')), [400, 'invalid_json'])
  for (const body of [[], 'null', '"text"']) assert.deepEqual(problemOf(await send(body)), [400, 'invalid_request'])
  assert.deepEqual(problemOf(await send(Buffer.from([0x22, 0xff, 0x22]))), [400, 'invalid_utf8'])
  assert.deepEqual(problemOf(await send('{}', { 'content-type': 'text/plain' })), [415, 'unsupported_media_type'])
})

test('wait is a whole number of seconds from 1 to 30', async () => {
  const { id } = (await ask()).body
  await service.operator(`/environments/${service.environmentId}/approvals/${id}/decision`, {
    body: { decision: 'APPROVED' },
  })
  for (const wait of ['1', '30']) assert.equal((await read(id, {}, `?wait=${wait}`)).status, 200)
  for (const wait of ['0', '31', '-1', '1.5', '01', 'x', '']) assertRefused(await read(id, {}, `?wait=${wait}`), 'wait')
  assertRefused(await read(id, {}, '?wait=1&wait=2'), 'wait')
})

test('on a nearly full disk a request gets 503 with Retry-After, and stored approvals can be read', async () => {
  const full = await startService({ minFreeDisk: '1TiB' })
  try {
    const body = { clientRequestId: 'x', toolName: 't', inputHash: HASH }
    const headers = { 'x-service-client-id': CLIENT }
    const refused = await full.api('/firewall-approvals', { body, headers })
    assert.deepEqual(problemOf(refused), [503, 'storage_full'])
    assert.ok(Number(refused.headers.get('retry-after')) >= 1)
    assert.equal((await full.api(`/firewall-approvals/${randomUUID()}`, { headers })).status, 404)
  } finally {
    await full.close()
  }
})

test('a request with keys named like our own refusals is a request like any other', async () => {
  const spoofed = { refusal: 'not_found', code: 'not_found', detail: 'spoofed', errors: [], json: '{}' }
  const answer = await ask(spoofed)
  assert.equal(answer.status, 201, answer.text)
})
