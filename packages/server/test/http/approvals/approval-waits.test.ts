import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { CreatedApiKey } from '@tacho/contract/tenants/api-key.ts'
import { approvalCalls, CLIENT, type ApprovalCalls } from '../../setup/approval-service.ts'
import { startFromSources, startService, type Service } from '../../setup/service.ts'

let service: Service
let approvals: ApprovalCalls
let jump = 0
before(async () => {
  service = await startService({}, () => Date.now() + jump)
  approvals = approvalCalls(service)
})
after(() => service.close())

test('a long poll is answered as soon as a person decides', async () => {
  const { id } = (await approvals.ask()).body
  const waiting = approvals.read(id, '?wait=30')
  await approvals.untilFollowers(1)
  await approvals.decide(id, 'APPROVED', 'fine')
  const { status, body } = await waiting
  assert.deepEqual([status, body.status, body.decisionReason], [200, 'APPROVED', 'fine'])
  await approvals.untilFollowers(0)
})

test('a long poll is answered as soon as the request expires', async () => {
  const { id } = (await approvals.ask({ timeoutMs: 1_000 })).body
  const { status, body } = await approvals.read(id, '?wait=30')
  assert.deepEqual([status, body.status, body.decidedAt, body.decisionReason], [200, 'EXPIRED', null, null])
  await approvals.untilFollowers(0)
})

test('a long poll is answered PENDING when its time is up', async () => {
  const { id } = (await approvals.ask()).body
  const { status, body } = await approvals.read(id, '?wait=1')
  assert.deepEqual([status, body.status], [200, 'PENDING'])
  await approvals.untilFollowers(0)
})

test('a long poll of a decided approval does not wait', async () => {
  const { id } = (await approvals.ask()).body
  await approvals.decide(id, 'REJECTED')
  assert.equal((await approvals.read(id, '?wait=30')).body.status, 'REJECTED')
})

test('a key and a workspace hold their share of long polls; beyond it, they are answered at once', async (t) => {
  const limits: { approvalWaitsOfWorkspace: number } = LIMITS
  const { approvalWaitsOfWorkspace } = limits
  limits.approvalWaitsOfWorkspace = 6
  const small = await startFromSources().finally(() => (limits.approvalWaitsOfWorkspace = approvalWaitsOfWorkspace))
  t.after(() => small.close())
  const calls = approvalCalls(small)
  const keys = await Promise.all([1, 2, 3].map(() => small.newKey({ scopes: ['policies:read', 'events:write'] })))
  const asked = await Promise.all(keys.map((key) => calls.ask({}, { 'x-api-key': key })))
  const ids = asked.map(({ body }) => body.id)
  const read = (key: string, query = '?wait=30') =>
    small.api<{ status: string }>(`/firewall-approvals/${ids[keys.indexOf(key)]}${query}`, {
      headers: { 'x-api-key': key, 'x-service-client-id': CLIENT },
    })
  const waiting: Promise<{ body: { status: string } }>[] = []
  for (const [key = '', held] of [
    [keys[0], 3],
    [keys[1], 3],
    [keys[2], 0],
  ] as const) {
    waiting.push(...Array.from({ length: held }, () => read(key)))
    await calls.untilFollowers(waiting.length)
    const further = await read(key)
    assert.deepEqual([further.status, further.body.status], [200, 'PENDING'])
  }
  for (const id of ids) await calls.decide(id, 'APPROVED')
  for (const { body } of await Promise.all(waiting)) assert.equal(body.status, 'APPROVED')
  await calls.untilFollowers(0)
})

test('a key that is revoked or expires during a long poll gets no answer from it', async () => {
  const ways = {
    async revoked(keyId: string) {
      await service.operator(`/environments/${service.environmentId}/keys/${keyId}/revoke`, { method: 'POST' })
    },
    // The key expires while the client waits, even if the client started late.
    expired: () => Promise.resolve(void (jump = 120_000)),
  }
  for (const [way, end] of Object.entries(ways)) {
    const expiresAt = way === 'expired' ? new Date(Date.now() + 120_000).toISOString() : null
    const made = await service.operator<CreatedApiKey>(`/environments/${service.environmentId}/keys`, {
      body: { name: way, scopes: ['policies:read', 'events:write'], expiresAt },
    })
    const headers = { 'x-api-key': made.body.key, 'x-service-client-id': CLIENT }
    const { id } = (await approvals.ask({}, headers)).body
    const waiting = service.api(`/firewall-approvals/${id}?wait=30`, { headers })
    await approvals.untilFollowers(1)
    await end(made.body.id)
    // A revocation ends it, also while nobody decides.
    if (way === 'revoked') await approvals.untilFollowers(0)
    await approvals.decide(id, 'APPROVED', 'a secret reason')
    const { status, text } = await waiting
    assert.equal(status, 401, way)
    assert.ok(!text.includes('APPROVED') && !text.includes('reason'), text)
  }
  jump = 0
})

test('a disconnected client leaves nothing behind', async () => {
  const { id } = (await approvals.ask()).body
  const leaving = new AbortController()
  const waiting = Array.from({ length: 20 }, () => approvals.read(id, '?wait=30', leaving.signal))
  await approvals.untilFollowers(20)
  leaving.abort()
  for (const { status } of await Promise.allSettled(waiting)) assert.equal(status, 'rejected')
  await approvals.untilFollowers(0)
})

test('many long polls wait at once, and each gets only its own approval', async () => {
  const asked = await Promise.all(Array.from({ length: 10 }, () => approvals.ask()))
  const ids = asked.map(({ body }) => body.id)
  const waiting = ids.flatMap((id) => Array.from({ length: 40 }, () => approvals.read(id, '?wait=30')))
  await approvals.untilFollowers(400)
  await Promise.all(ids.map((id, n) => approvals.decide(id, n % 2 ? 'APPROVED' : 'REJECTED', `${n}`)))
  for (const [at, { body }] of (await Promise.all(waiting)).entries()) {
    const n = Math.floor(at / 40)
    assert.deepEqual([body.id, body.status, body.decisionReason], [ids[n], n % 2 ? 'APPROVED' : 'REJECTED', `${n}`])
  }
})

test('a hundred requests with one deadline expire together, for long polls and reads', async () => {
  const asked = await Promise.all(Array.from({ length: 100 }, () => approvals.ask({ timeoutMs: 1_000 })))
  const answers = await Promise.all(asked.map(({ body }) => approvals.read(body.id, '?wait=30')))
  for (const { body } of answers) assert.equal(body.status, 'EXPIRED')
})

test('at drain a long poll is answered at once, and the server stops', async () => {
  const draining = await startService()
  const calls = approvalCalls(draining)
  const { id } = (await calls.ask()).body
  const waiting = Array.from({ length: 5 }, () => calls.read(id, '?wait=30'))
  await calls.untilFollowers(5)
  await draining.close()
  for (const { status, body } of await Promise.all(waiting)) assert.deepEqual([status, body.status], [200, 'PENDING'])
})

test('a clock jump never reverses an answer', async () => {
  let jump = 0
  const moved = await startService({}, () => Date.now() + jump)
  const calls = approvalCalls(moved)
  try {
    const [one, two, three] = await Promise.all([calls.ask(), calls.ask(), calls.ask()])
    const state = async (answer: typeof one) => (await calls.read(answer.body.id)).body.status
    // Set the clock to before the requests: they are pending, and can be decided.
    jump = -3_600_000
    assert.equal(await state(one), 'PENDING')
    assert.equal((await calls.decide(one.body.id, 'APPROVED')).status, 200)
    // Set the clock far ahead: decisions stay, and all other requests expire.
    jump = 3_600_000
    assert.equal(await state(one), 'APPROVED')
    assert.equal(await state(two), 'EXPIRED')
    const late = await calls.decide(three.body.id, 'APPROVED')
    const { code, current } = late.body as unknown as { code: string; current: { status: string } }
    assert.deepEqual([late.status, code, current.status], [409, 'conflict', 'EXPIRED'])
    // Set the clock right again.
    jump = 0
    assert.deepEqual(await Promise.all([one, two, three].map(state)), ['APPROVED', 'EXPIRED', 'EXPIRED'])
    assert.equal((await calls.decide(two.body.id, 'APPROVED')).status, 409)
  } finally {
    await moved.close()
  }
})

test('a clock that jumps over the deadline ends a long poll', async () => {
  let jump = 0
  const moved = await startService({}, () => Date.now() + jump)
  const calls = approvalCalls(moved)
  try {
    const { id } = (await calls.ask({ clientRequestId: randomUUID() })).body
    const waiting = calls.read(id, '?wait=30')
    await calls.untilFollowers(1)
    jump = 3_600_000
    assert.equal((await waiting).body.status, 'EXPIRED')
  } finally {
    await moved.close()
  }
})
