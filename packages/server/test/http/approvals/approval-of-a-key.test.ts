/** An approval belongs to the client and the API key that asked. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import type { CreatedApiKey } from '@tacho/contract/tenants/api-key.ts'
import type { ApprovalDetail } from '@tacho/contract/approvals/operator-approval.ts'
import { inputHash } from '@tacho/policy/input/input-hash.ts'
import { approvalCalls, CLIENT, HASH, type ApprovalCalls } from '../../setup/approval-service.ts'
import { event, startService, type Service } from '../../setup/service.ts'

let service: Service
let calls: ApprovalCalls
let jump = 0
before(async () => {
  service = await startService({}, () => Date.now() + jump)
  calls = approvalCalls(service)
})
after(() => service.close())

const SCOPES = ['policies:read', 'events:write']
const INPUT = { amount: 99_999, to: 'attacker' }

const environment = (rest: string) => `/environments/${service.environmentId}${rest}`
const detail = async (id: string) => (await service.operator<ApprovalDetail>(environment(`/approvals/${id}`))).body

async function newKey(): Promise<CreatedApiKey> {
  return (await service.operator<CreatedApiKey>(environment('/keys'), { body: { name: 'k', scopes: SCOPES } })).body
}
const withKey = (key: string) => ({ 'x-api-key': key, 'x-service-client-id': CLIENT })

/** Records an event about an approval, as the client that asked unless `given` says otherwise. */
async function record(
  approvalId: string,
  runId: string,
  payload: object,
  given: { key?: string } & Partial<Record<'clientId' | 'eventType' | 'eventId', string>> = {},
) {
  const { key = service.apiKey, ...more } = given
  const about = { toolName: 'transfer', inputHash: inputHash('transfer', INPUT), approvalId, ...payload }
  const body = [event({ runId, clientId: CLIENT, eventType: 'POLICY_DECISION', payload: about, ...more })]
  const { status } = await service.api('/events/batch', { body, headers: { 'x-api-key': key } })
  assert.equal(status, 200)
}

async function ask(fields: object = {}, headers: Record<string, string> = {}) {
  const runId = randomUUID()
  const { body } = await calls.ask({ runId, inputHash: inputHash('transfer', INPUT), ...fields }, headers)
  return { id: body.id, runId }
}

type Claimed = Partial<Record<'sdkInstanceId' | 'clientRecordId' | 'detectionType', string>> & { evidence?: object }
const claim = (id: string, { key = service.apiKey, ...given }: Claimed & { key?: string } = {}) =>
  service.api<{ isNew: boolean; isSame?: boolean; detail: string }>('/issue-records', {
    headers: { 'x-api-key': key },
    body: {
      sdkInstanceId: CLIENT,
      clientRecordId: `run-${id}`,
      recordKind: 'RECOVERY',
      detectionType: 'APPROVAL_PENDING',
      agentId: 'a',
      detectedAt: Date.now(),
      ...given,
    },
  })

test('another key learns nothing of an approval, whatever client it names; the successor of the key does', async () => {
  const [first, other] = [await newKey(), await newKey()]
  const clientRequestId = randomUUID()
  const { id } = await ask({ clientRequestId }, withKey(first.key))
  const read = async (key: string, query = '') => {
    const { status, text } = await service.api(`/firewall-approvals/${id}${query}`, { headers: withKey(key) })
    return [status, text.includes('The approval does not exist')]
  }
  assert.deepEqual(
    [await read(other.key), await read(other.key, '?wait=1')],
    [
      [404, true],
      [404, true],
    ],
  )
  const retry = await ask({ clientRequestId }, withKey(other.key))
  assert.notEqual(retry.id, id)
  const oldValidUntil = new Date(Date.now() + 3_600_000).toISOString()
  const rotation = environment(`/keys/${first.id}/rotate`)
  const rotated = await service.operator<CreatedApiKey>(rotation, { body: { oldValidUntil } })
  assert.equal(rotated.status, 201, rotated.text)
  assert.deepEqual(
    [await read(first.key), await read(rotated.body.key)],
    [
      [200, false],
      [200, false],
    ],
  )
  assert.equal((await ask({ clientRequestId }, withKey(rotated.body.key))).id, id)
})

test('nobody else puts an input beside a request, and none is shown for a client that records none', async () => {
  const other = await newKey()
  const lie = { input: { amount: 5, to: 'ada' } }
  const silent = await ask({ recordsInput: false })
  await record(silent.id, silent.runId, lie, { key: other.key })
  await record(silent.id, silent.runId, lie)
  assert.equal((await detail(silent.id)).inputPreview, null)
  const { id, runId } = await ask()
  await record(id, runId, lie, { key: other.key })
  await record(id, runId, lie, { clientId: 'another' })
  assert.deepEqual([(await detail(id)).inputPreview, (await detail(id)).inputCheck?.reason], [null, 'not_recorded'])
  await record(id, runId, { input: INPUT })
  assert.equal((await detail(id)).inputPreview?.check.result, 'matches')
})

test('an input that is not the approved one is said, and is approved in a second step only', async () => {
  const { id, runId } = await ask()
  await record(id, runId, { input: { amount: 5, to: 'ada' } })
  assert.equal((await detail(id)).inputPreview?.check.result, 'does_not_match')
  const path = environment(`/approvals/${id}/decision`)
  assert.equal((await service.operator(path, { body: { decision: 'APPROVED' } })).status, 409)
  const many = await service.operator<{ items: { outcome: string }[] }>(environment('/approvals/decisions'), {
    body: { decision: 'APPROVED', ids: [id] },
  })
  assert.deepEqual(
    many.body.items.map(({ outcome }) => outcome),
    ['mismatch'],
  )
  assert.equal((await detail(id)).status, 'PENDING')
  const second = await service.operator(path, { body: { decision: 'APPROVED', confirmMismatch: true } })
  assert.equal(second.status, 200)
  const another = await ask()
  await record(another.id, another.runId, { input: { amount: 5 } })
  assert.equal((await calls.decide(another.id, 'REJECTED')).status, 200, 'rejecting needs no second step')
})

test('only the client and key that asked claim an approval, approved, once, and before its end', async () => {
  const other = await newKey()
  const { id } = await ask()
  assert.equal((await claim(id)).status, 409)
  await calls.decide(id, 'APPROVED')
  assert.equal((await claim(id, { key: other.key })).status, 404)
  assert.equal((await claim(id, { key: other.key, detectionType: 'TOOL_BLOCKED' })).status, 404)
  assert.equal((await claim(id, { sdkInstanceId: 'another' })).status, 404)
  assert.equal((await claim(id, { clientRecordId: `run-${id.toUpperCase()}` })).status, 404)
  assert.equal((await claim(randomUUID())).status, 404)
  assert.deepEqual([(await claim(id)).body.isNew, (await claim(id)).body.isNew], [true, false])
  const late = await ask({ timeoutMs: 60_000 })
  await calls.decide(late.id, 'APPROVED')
  jump += 60_001
  const { status, body } = await claim(late.id)
  assert.deepEqual([status, /expired at/.test(body.detail)], [409, true])
})

test('a client whose claim got no answer finds that the stored claim is its own, by a random value in it', async () => {
  const own = { evidence: { claimId: randomUUID() } }
  const { id } = await ask()
  await calls.decide(id, 'APPROVED')
  const [first, again] = [await claim(id, own), await claim(id, own)]
  assert.deepEqual([first.body.isNew, first.body.isSame], [true, undefined])
  assert.deepEqual([again.body.isNew, again.body.isSame], [false, true])
  assert.equal((await claim(id, { evidence: { claimId: randomUUID() } })).body.isSame, false)
  assert.equal((await claim(id)).body.isSame, false)
  const left = { ...own, clientRecordId: `withdrawn-${id}` }
  assert.deepEqual([(await claim(id, left)).body.isNew, (await claim(id, left)).body.isSame], [true, true])
  const bare = await ask()
  await calls.decide(bare.id, 'APPROVED')
  assert.equal((await claim(bare.id)).body.isNew, true)
  assert.equal((await claim(bare.id)).body.isSame, false, 'nobody knows whose it is')
})

test('many large inputs that do not match are not approved in one step either', async () => {
  const asked = await Promise.all(Array.from({ length: 6 }, () => ask()))
  const text = 'x'.repeat(240_000)
  for (const { id, runId } of asked) await record(id, runId, { input: { amount: 5, text } })
  const body = { ids: asked.map(({ id }) => id), decision: 'APPROVED' }
  const { body: decided } = await service.operator<{ items: { outcome: string }[] }>(
    environment('/approvals/decisions'),
    { body },
  )
  assert.deepEqual(
    decided.items.map(({ outcome }) => outcome),
    asked.map(() => 'mismatch'),
  )
})

test('no record of another key takes the ids by which processes learn of a claim or a withdrawal', async () => {
  const other = await newKey()
  const { id } = await ask()
  for (const clientRecordId of [`run-${id}`, `withdrawn-${id}`]) {
    const { status } = await claim(id, { key: other.key, clientRecordId })
    assert.equal(status, 404, clientRecordId)
  }
  // A claim before the approval is refused for every `detectionType`.
  assert.equal((await claim(id, { detectionType: 'TOOL_RUN' })).status, 409)
  assert.equal((await claim(id, { clientRecordId: `withdrawn-${id}` })).body.isNew, true)
})

test('an unknown approval and one of another client get the same answer, whatever the record is', async () => {
  const other = await newKey()
  const { id } = await ask()
  await calls.decide(id, 'APPROVED')
  for (const detectionType of ['APPROVAL_PENDING', 'TOOL_BLOCKED', 'LOOP_DETECTED']) {
    for (const name of ['run', 'withdrawn']) {
      const answers = await Promise.all([
        claim(randomUUID(), { detectionType, clientRecordId: `${name}-${randomUUID()}` }),
        claim(id, { detectionType, clientRecordId: `${name}-${id}`, key: other.key }),
        claim(id, { detectionType, clientRecordId: `${name}-${id}`, sdkInstanceId: 'another' }),
      ])
      const told = answers.map(({ status, body }) => [status, body.detail])
      assert.deepEqual(told, Array(3).fill([404, 'The approval does not exist']), `${name} ${detectionType}`)
    }
  }
  assert.equal((await claim(id, { clientRecordId: 'run-7' })).status, 202, 'other ids are free')
})

test('a claimed approval cannot be withdrawn: the answer to its client stays', async () => {
  const { id, runId } = await ask()
  await calls.decide(id, 'APPROVED')
  assert.equal((await claim(id)).body.isNew, true)
  await record(id, runId, { reason: 'cancelled' }, { eventType: 'APPROVAL_WITHDRAWN' })
  assert.notEqual((await detail(id)).waiting.state, 'withdrawn')
  assert.equal((await calls.read(id)).body.status, 'APPROVED')
})

test('an input that came after the look is not approved unseen, alone and together', async () => {
  const [one, two] = [await ask(), await ask()]
  const eventId = randomUUID()
  for (const { id, runId } of [one, two]) await record(id, runId, { input: INPUT }, { eventId })
  const decide = (body: object) => service.operator(environment(`/approvals/${one.id}/decision`), { body })
  const unseen = await decide({ decision: 'APPROVED', seenInput: null })
  assert.deepEqual([unseen.status, /not the one that was shown/.test(unseen.text)], [409, true])
  assert.equal((await decide({ decision: 'APPROVED', seenInput: null, confirmMismatch: true })).status, 409)
  const together = await service.operator<{ items: { outcome: string }[] }>(environment('/approvals/decisions'), {
    body: { decision: 'APPROVED', ids: [two.id], seenInputs: [{ id: two.id, eventId: null }] },
  })
  assert.deepEqual(
    together.body.items.map(({ outcome }) => outcome),
    ['changed'],
  )
  assert.deepEqual([(await detail(one.id)).status, (await detail(two.id)).status], ['PENDING', 'PENDING'])
  assert.equal((await decide({ decision: 'APPROVED', seenInput: eventId })).status, 200)
  const rejected = await calls.ask({ runId: randomUUID(), inputHash: HASH })
  const path = environment(`/approvals/${rejected.body.id}/decision`)
  assert.equal((await service.operator(path, { body: { decision: 'REJECTED', seenInput: 'another' } })).status, 200)
})

test('a decision without seenInput compares an input that is recorded meanwhile', async () => {
  const outcomes = new Set<number>()
  for (let round = 0; round < 40; round++) {
    const { id, runId } = await ask()
    const path = environment(`/approvals/${id}/decision`)
    const decide = () => service.operator(path, { body: { decision: 'APPROVED' } })
    const [{ status }] = await Promise.all([decide(), record(id, runId, { input: INPUT })])
    outcomes.add(status)
  }
  assert.deepEqual([...outcomes], [200])
})

test('the line of a list has numbers as they were recorded', async () => {
  const { id, runId } = await ask()
  const sent = event({ runId, clientId: CLIENT, eventType: 'POLICY_DECISION', payload: 'PAYLOAD' })
  const about = `"toolName":"transfer","inputHash":"${inputHash('transfer', INPUT)}","approvalId":"${id}"`
  const input = '{"account": 9007199254740993, "amount":1.0,"most":1e400, "to": [-0, 5e-1]}'
  const body = JSON.stringify([sent]).replace('"PAYLOAD"', `{${about},"input":${input}}`)
  assert.equal((await service.record(body)).status, 200)
  assert.equal((await detail(id)).inputInShort, input.replaceAll(': ', ':').replaceAll(', ', ','))
})

test('an input that is recorded after the decision is not what the person saw', async () => {
  const { id, runId } = await ask()
  await calls.decide(id, 'APPROVED')
  jump += 1_000
  await record(id, runId, { input: INPUT })
  assert.equal((await detail(id)).inputPreview, null)
})

test('a withdrawn request can be decided, and the service never says APPROVED of it', async () => {
  const other = await newKey()
  const { id, runId } = await ask()
  const withdraw = (key?: string) =>
    record(id, runId, { reason: 'cancelled' }, { eventType: 'APPROVAL_WITHDRAWN', ...(key && { key }) })
  await withdraw(other.key)
  assert.equal((await detail(id)).waiting.state, 'unknown')
  await withdraw()
  const { waiting, status } = await detail(id)
  assert.deepEqual([status, waiting.state, waiting.reason], ['PENDING', 'withdrawn', 'cancelled'])
  const decided = await calls.decide(id, 'APPROVED')
  assert.deepEqual([decided.body.status, decided.body.waiting.state], ['APPROVED', 'withdrawn'])
  const { body } = await calls.read(id)
  assert.equal(body.status, 'REJECTED')
  assert.match(body.decisionReason ?? '', /withdrawn/)
  assert.equal((await claim(id)).status, 409)
  const audit = await service.operator('/audit?action=approval.approve')
  assert.match(audit.text, /"nothingRuns":"withdrawn"/)
})

test('a request says whether its client waits: not yet, waiting, stopped', async () => {
  const { id } = await ask()
  await calls.read(id)
  assert.equal((await detail(id)).waiting.state, 'unknown', 'one question is no wait')
  const leaving = new AbortController()
  const poll = calls.read(id, '?wait=30', leaving.signal).catch(() => null)
  const until = async (state: string, of = id) => {
    for (let tries = 0; tries < 100; tries++) {
      if ((await detail(of)).waiting.state === state) return true
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    return false
  }
  assert.ok(await until('waiting'))
  leaving.abort()
  await poll
  jump += 40_000
  const { waiting } = await detail(id)
  assert.equal(waiting.state, 'stopped')
  assert.ok(waiting.lastSeenAt)
  await calls.decide(id, 'APPROVED')
  assert.equal((await detail(id)).waiting.state, 'stopped', 'a decision for which nobody waited says so afterwards')
  const awaited = await ask()
  const answered = calls.read(awaited.id, '?wait=30')
  assert.ok(await until('waiting', awaited.id))
  await calls.decide(awaited.id, 'APPROVED')
  await answered
  assert.equal((await detail(awaited.id)).waiting.state, 'unknown')
})

test('a request that names no agent has the name of its run, in lists, too', async () => {
  const { id, runId } = await ask()
  assert.equal((await detail(id)).agentId, null)
  await service.record([event({ runId, agentName: 'assistant', agentId: undefined })])
  assert.equal((await detail(id)).agentName, 'assistant')
  const { body } = await service.operator<{ items: { id: string; agentName: string | null }[] }>(
    `/environments/${service.environmentId}/approvals`,
  )
  assert.equal(body.items.find((item) => item.id === id)?.agentName, 'assistant')
})

test('the next request for the very call that ran says so, and lists of inputs have their check', async () => {
  const { id, runId } = await ask({ toolCallId: 'call-1' })
  await calls.decide(id, 'APPROVED')
  await record(id, runId, { toolCallId: 'call-1', output: 'ok' }, { eventType: 'TOOL_CALL' })
  const next = await calls.ask({ runId, inputHash: inputHash('transfer', INPUT), toolCallId: 'call-1' })
  assert.deepEqual(
    [(await detail(next.body.id)).ranBefore?.approvalId, (await detail(next.body.id)).ranBefore?.status],
    [id, 'returned'],
  )
  assert.equal((await detail(id)).ranBefore, null)
})

test('requests that nobody answered are counted by policy', async () => {
  const policyId = randomUUID()
  await ask({ policyId, timeoutMs: 1_000 })
  jump += 1_001
  await calls.read((await calls.ask({ inputHash: HASH })).body.id)
  const { body } = await service.operator<{ items: { policyId: string; expired: number }[] }>(
    environment(`/approvals/unanswered?policyId=${policyId}`),
  )
  // The query itself must expire them: the job may run later than this request.
  assert.ok(body.items.every((item) => item.policyId === policyId && item.expired === 1))
})
