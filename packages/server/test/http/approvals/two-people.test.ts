/** Policies that need two different people, over HTTP on both engines. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { OperatorApproval } from '@tacho/contract/approvals/operator-approval.ts'
import type { CreatedApiKey } from '@tacho/contract/tenants/api-key.ts'
import type { CreatedOperatorToken } from '@tacho/contract/people/token.ts'
import { approvalCalls, CLIENT, HASH, type ApprovalCalls } from '../../setup/approval-service.ts'
import { startOnBothEngines, type EngineService } from '../../setup/both-engines.ts'
import { event } from '../../setup/service.ts'
import { newPerson, type Browser } from '../people/browser.ts'
import { refusalOf, replyOf } from '../web/contract.ts'

interface House extends EngineService {
  calls: ApprovalCalls
  workspaceId: string
  ada: Browser
  ben: Browser
  cleo: Browser
}

const houses = startOnBothEngines({}, async (started): Promise<House> => {
  const { service } = started
  const { items } = (await service.operator<{ items: { id: string }[] }>('/workspaces')).body
  const workspaceId = items[0]?.id ?? ''
  const [ada, ben, cleo] = await Promise.all(
    ['ada', 'ben', 'cleo'].map((name) => newPerson(service, `${name}@example.com`, 'owner', workspaceId)),
  )
  assert.ok(ada && ben && cleo)
  return { ...started, calls: approvalCalls(service), workspaceId, ada, ben, cleo }
})

function onBoth(name: string, run: (house: House) => Promise<void>): void {
  test(name, async (t) => {
    for (const house of houses) await t.test(house.engine, () => run(house))
  })
}

const base = ({ service }: House) => `/environments/${service.environmentId}`

async function writePolicy(house: House, given: object = {}, policyId = `p-${randomUUID()}`) {
  const policy = { condition: 'tool.name == "transfer"', severity: 'HIGH', action: 'REQUIRE_APPROVAL', ...given }
  const path = `/workspaces/${house.workspaceId}/policies`
  const known = await house.service.operator(`${path}/${policyId}`)
  const answer = await house.service.operator(known.status === 200 ? `${path}/${policyId}/versions` : path, {
    body: known.status === 200 ? policy : { policyId, ...policy },
  })
  assert.equal(answer.status, 201, answer.text)
  return policyId
}

async function deploy(house: House, id: string, version: string | null) {
  const items = [{ kind: 'policy', id, version }]
  const answer = await house.service.operator(`${base(house)}/deployments`, { body: { items } })
  assert.equal(answer.status, 200, answer.text)
}

async function forTwo(house: House): Promise<string> {
  const id = await writePolicy(house, { approvers: 2 })
  await deploy(house, id, '1')
  return id
}

async function ask(house: House, fields: Record<string, unknown>, key?: string): Promise<string> {
  const { status, body } = await house.calls.ask(fields, key === undefined ? {} : { 'x-api-key': key })
  assert.equal(status, 201)
  return body.id
}

/** A request whose client has recorded which policy asked. */
async function recorded(house: House, policyId: string, fields: Record<string, unknown> = {}): Promise<string> {
  const asked = { toolName: 'transfer', inputHash: HASH, runId: `run-${randomUUID()}`, ...fields, policyId }
  const id = await ask(house, asked)
  const { toolName, inputHash, runId } = asked
  const payload = {
    action: 'REQUIRE_APPROVAL',
    approvalId: id,
    toolName,
    inputHash,
    policyVersions: { [policyId]: '1' },
  }
  const decision = { runId, clientId: CLIENT, eventType: 'POLICY_DECISION', payload }
  assert.equal((await house.service.record([event(decision)])).body.success, true)
  return id
}

const decide = (house: House, by: Browser, id: string, more: object = {}) =>
  by.post<OperatorApproval>(`${base(house)}/approvals/${id}/decision`, { decision: 'APPROVED', ...more })

const detailOf = async (house: House, id: string) =>
  replyOf('readApproval', await house.service.operator(`${base(house)}/approvals/${id}`))

onBoth('the first approval is shown and answers nobody, and a second person decides', async (house) => {
  const { calls, ada, ben } = house
  const id = await ask(house, { policyId: await forTwo(house) })
  assert.deepEqual([(await detailOf(house, id)).approvers, (await detailOf(house, id)).firstApproval], [2, null])
  const waits = calls.read(id, '?wait=5')
  const first = replyOf('decideApproval', await decide(house, ada, id, { reason: 'known customer' }))
  assert.deepEqual([first.status, first.decidedBy, first.firstApproval?.by.name], ['PENDING', null, 'ada@example.com'])
  assert.equal(first.firstApproval?.reason, 'known customer')
  const { status, decidedAt, decisionReason } = (await calls.read(id)).body
  assert.deepEqual([status, decidedAt, decisionReason], ['PENDING', null, null])
  const again = await decide(house, ada, id)
  assert.deepEqual(refusalOf(again), [409, 'conflict'])
  assert.match(again.text, /somebody else must approve/)
  const shown = await detailOf(house, id)
  const names = shown.deciders?.people.map(({ name }) => name) ?? []
  assert.ok(names.includes('ben@example.com') && !names.includes('ada@example.com'), names.join())
  const second = replyOf('decideApproval', await decide(house, ben, id))
  assert.deepEqual(
    [second.status, second.decidedBy?.name, second.firstApproval?.by.name],
    ['APPROVED', 'ben@example.com', 'ada@example.com'],
  )
  assert.equal((await waits).body.status, 'APPROVED')
  const log = await house.service.operator<{ items: { action: string; target: { id: string } }[] }>(
    `/workspaces/${house.workspaceId}/audit?limit=200`,
  )
  const actions = log.body.items.flatMap(({ action, target }) => (target.id === id ? [action] : []))
  assert.deepEqual(actions, ['approval.approve', 'approval.approve.refused', 'approval.approve.first'])
})

onBoth('a rejection by either rejects at once, also by the first', async (house) => {
  const policyId = await forTwo(house)
  for (const by of [house.ada, house.ben]) {
    const id = await ask(house, { policyId })
    await decide(house, house.ada, id)
    replyOf('decideApproval', await decide(house, by, id, { decision: 'REJECTED' }))
    assert.equal((await house.calls.read(id)).body.status, 'REJECTED')
  }
})

onBoth('a token is the person who made it, and one that nobody made is nobody', async (house) => {
  const { service, ada, ben } = house
  const id = await ask(house, { policyId: await forTwo(house) })
  const path = `/workspaces/${house.workspaceId}/tokens`
  const made = replyOf('createToken', await ada.post(path, { name: 'ci', role: 'owner' }))
  const withToken = (token: string) => ({ authorization: `Bearer ${token}` })
  const further = await service.operator<CreatedOperatorToken>(path, {
    body: { name: 'robot', role: 'approver' },
    headers: withToken(made.token),
  })
  const byToken = (token: string) =>
    service.operator<OperatorApproval>(`${base(house)}/approvals/${id}/decision`, {
      body: { decision: 'APPROVED' },
      headers: withToken(token),
    })
  assert.match((await byToken(service.operatorToken)).text, /no person made this token/)
  assert.equal((await byToken(further.body.token)).body.firstApproval?.by.kind, 'token')
  for (const answer of [await decide(house, ada, id), await byToken(made.token)]) {
    assert.deepEqual(refusalOf(answer), [409, 'conflict'])
  }
  // An approval with a token that was revoked later does not count.
  await ada.post(`${path}/${further.body.id}/revoke`, {})
  assert.equal((await decide(house, ben, id)).body.status, 'PENDING')
  assert.equal((await decide(house, ada, id)).body.status, 'APPROVED')
})

onBoth('the one who runs the agent approves nothing of it: maker of the key, and end user', async (house) => {
  const { service, ada, ben, cleo } = house
  const policyId = await forTwo(house)
  const keys = `${base(house)}/keys`
  const scopes = ['events:write', 'policies:read']
  const key = (await ada.post<CreatedApiKey>(keys, { name: 'agent', scopes })).body
  const until = new Date(Date.now() + 60_000).toISOString()
  const rotated = await ben.post<CreatedApiKey>(`${keys}/${key.id}/rotate`, { oldValidUntil: until })
  const id = await ask(house, { policyId }, rotated.body.key)
  for (const by of [ada, ben]) {
    const answer = await decide(house, by, id)
    assert.deepEqual(refusalOf(answer), [409, 'conflict'])
    assert.match(answer.text, /runs the agent/)
  }
  assert.equal((await decide(house, cleo, id)).body.status, 'PENDING')
  const runId = `run-${randomUUID()}`
  await service.record([event({ runId, clientId: CLIENT, payload: { userId: 'Ada@Example.com' } })])
  const ofUser = await ask(house, { policyId, runId })
  assert.match((await decide(house, ada, ofUser)).text, /end user/)
  assert.equal((await decide(house, ada, ofUser, { decision: 'REJECTED' })).body.status, 'REJECTED')
})

onBoth('a run without an end user has those of its session', async (house) => {
  const { service, ada, ben } = house
  const [first, inner, sessionId] = [`run-${randomUUID()}`, `run-${randomUUID()}`, `session-${randomUUID()}`]
  await service.record([
    event({ runId: first, sessionId, clientId: CLIENT, payload: { userId: 'ada@example.com' } }),
    event({ runId: inner, sessionId, clientId: CLIENT }),
  ])
  const id = await ask(house, { policyId: await forTwo(house), runId: inner })
  assert.match((await decide(house, ada, id)).text, /end user/)
  assert.equal((await decide(house, ben, id)).body.status, 'PENDING')
})

onBoth('the first approval ends when its person turns out to be the end user of the run', async (house) => {
  const { service, ada, ben, cleo } = house
  const runId = `run-${randomUUID()}`
  const id = await ask(house, { policyId: await forTwo(house), runId })
  assert.equal((await decide(house, ada, id)).body.firstApproval?.by.name, 'ada@example.com')
  await service.record([event({ runId, clientId: CLIENT, payload: { userId: 'ada@example.com' } })])
  const next = (await decide(house, ben, id)).body
  assert.deepEqual([next.status, next.firstApproval?.by.name], ['PENDING', 'ben@example.com'])
  assert.equal((await decide(house, cleo, id)).body.status, 'APPROVED')
})

onBoth('two at the same time decide it, and one person in two tabs does not', async (house) => {
  const policyId = await forTwo(house)
  for (let round = 0; round < 5; round++) {
    const id = await ask(house, { policyId })
    const answers = await Promise.all([decide(house, house.ada, id), decide(house, house.ben, id)])
    assert.deepEqual(answers.map(({ body }) => body.status).toSorted(), ['APPROVED', 'PENDING'])
    const same = await ask(house, { policyId })
    const tabs = await Promise.all([decide(house, house.ada, same), decide(house, house.ada, same)])
    assert.deepEqual(
      tabs.map(({ status }) => status).toSorted((a, b) => a - b),
      [200, 409],
    )
    assert.equal((await house.calls.read(same)).body.status, 'PENDING')
  }
})

onBoth('the first approval counts only while its person may decide', async (house) => {
  const { service, ben, ada } = house
  const policyId = await forTwo(house)
  const dora = await newPerson(service, `${randomUUID()}@example.com`, 'approver', house.workspaceId)
  const me = replyOf('readMe', await dora.get('/me'))
  const [one, two] = [await ask(house, { policyId }), await ask(house, { policyId })]
  await decide(house, dora, one)
  await decide(house, dora, two)
  const role = `/workspaces/${house.workspaceId}/operators/${me.id}/role`
  assert.equal((await ben.post(role, { role: 'viewer' })).status, 200)
  const after = replyOf('decideApproval', await decide(house, ben, one))
  assert.deepEqual([after.status, after.firstApproval?.by.name], ['PENDING', 'ben@example.com'])
  assert.equal((await service.operator(`/operators/${me.id}/remove`, { method: 'POST' })).status, 200)
  assert.equal((await decide(house, ben, two)).body.status, 'PENDING')
  assert.equal((await decide(house, ada, two)).body.status, 'APPROVED')
})

onBoth('a token of a person who may not decide any more is no second person', async (house) => {
  const { service, ben, workspaceId } = house
  const policyId = await forTwo(house)
  const dan = await newPerson(service, `${randomUUID()}@example.com`, 'owner', workspaceId)
  const tokens = `/workspaces/${workspaceId}/tokens`
  const { token } = replyOf('createToken', await dan.post(tokens, { name: 'ci', role: 'approver' }))
  const me = (await dan.get<{ id: string }>('/me')).body
  const role = await ben.post(`/workspaces/${workspaceId}/operators/${me.id}/role`, { role: 'viewer' })
  assert.equal(role.status, 200, role.text)
  const id = await ask(house, { policyId })
  await decide(house, ben, id)
  const second = await service.operator(`${base(house)}/approvals/${id}/decision`, {
    body: { decision: 'APPROVED' },
    headers: { authorization: `Bearer ${token}` },
  })
  assert.deepEqual(refusalOf(second), [409, 'conflict'])
  assert.equal((await house.calls.read(id)).body.status, 'PENDING')
})

onBoth('the service counts by the versions that it knows, whatever the client names', async (house) => {
  const { ada } = house
  const policyId = await writePolicy(house)
  await writePolicy(house, { approvers: 2, note: 'two people' }, policyId)
  await deploy(house, policyId, '2')
  const named = await ask(house, { policyId, policyVersion: '1' })
  assert.equal((await decide(house, ada, named)).body.status, 'PENDING')
  // The version in force needs one person at the request and two at the decision. Then the reverse.
  await deploy(house, policyId, '1')
  const before = await ask(house, { policyId })
  const stillTwo = await ask(house, { policyId, policyVersion: '2' })
  await deploy(house, policyId, '2')
  assert.equal((await decide(house, ada, before)).body.status, 'PENDING')
  await deploy(house, policyId, null)
  assert.equal((await decide(house, ada, stillTwo)).body.status, 'PENDING')
  const removed = await ask(house, { policyId })
  assert.equal((await decide(house, ada, removed)).body.status, 'PENDING', 'the last version in force')
  const runId = `run-${randomUUID()}`
  const one = await writePolicy(house)
  await deploy(house, one, '1')
  const held = await ask(house, { policyId: one, runId })
  const payload = { action: 'REQUIRE_APPROVAL', approvalId: held, toolName: 'transfer', inputHash: HASH }
  const policyVersions = { [one]: '1', [policyId]: '2' }
  const decision = { runId, clientId: CLIENT, eventType: 'POLICY_DECISION', payload: { ...payload, policyVersions } }
  assert.equal((await house.service.record([event(decision)])).body.success, true)
  assert.equal((await detailOf(house, held)).approvers, 2, 'the client named one policy, and the decision both')
  assert.equal((await decide(house, ada, held)).body.status, 'PENDING')
})

onBoth('until it is known which policies asked, each for two that can mean the tool counts', async (house) => {
  const { ada, ben } = house
  const toolName = `tool-${randomUUID()}`
  const condition = `tool.name == "${toolName}" && tool.input.amount > 100.0`
  const two = await writePolicy(house, { condition, approvers: 2, severity: 'LOW' })
  await deploy(house, two, '1')
  const one = await writePolicy(house, { condition: `tool.name == "${toolName}"` })
  await deploy(house, one, '1')
  const asked = { policyId: one, policyVersion: '1', toolName, inputHash: HASH }
  const early = await ask(house, { ...asked, runId: `run-${randomUUID()}` })
  assert.equal((await detailOf(house, early)).approvers, 2)
  assert.equal((await decide(house, ada, early)).body.status, 'PENDING')
  assert.equal((await decide(house, ben, early)).body.status, 'APPROVED')
  // The recorded decision, or the request itself, names only the policy that needs one person.
  const known = await recorded(house, one, { ...asked, runId: `run-${randomUUID()}` })
  const named = await ask(house, { ...asked, policyVersions: { [one]: '1' } })
  for (const id of [known, named]) {
    assert.equal((await detailOf(house, id)).approvers, 1)
    assert.equal((await decide(house, ada, id)).body.status, 'APPROVED')
  }
  const both = await ask(house, { ...asked, policyVersions: { [one]: '1', [two]: '1' } })
  assert.equal((await decide(house, ada, both)).body.status, 'PENDING')
  // A decision on several requests and a grant do not bypass the second person.
  const ids = [await ask(house, asked), await ask(house, asked)]
  const many = await ada.post<{ items: { outcome: string }[] }>(`${base(house)}/approvals/decisions`, {
    ids,
    decision: 'APPROVED',
  })
  assert.deepEqual(
    many.body.items.map(({ outcome }) => outcome),
    ['first', 'first'],
  )
  const granting = await ask(house, { ...asked, runId: `run-${randomUUID()}` })
  assert.match((await decide(house, ada, granting, { grant: { scope: 'tool' } })).text, /two people/)
  // The policy for two people is deployed while the request waits.
  await deploy(house, two, null)
  const before = await ask(house, asked)
  assert.equal((await detailOf(house, before)).approvers, 1)
  await deploy(house, two, '1')
  assert.equal((await decide(house, ada, before)).body.status, 'PENDING')
})

onBoth('an input that arrives between the two needs the first approval again', async (house) => {
  const { ada, ben } = house
  const runId = `run-${randomUUID()}`
  const id = await ask(house, { policyId: await forTwo(house), runId, inputHashScheme: 'own' })
  await decide(house, ada, id)
  const payload = {
    action: 'REQUIRE_APPROVAL',
    approvalId: id,
    toolName: 'transfer',
    inputHash: HASH,
    input: { to: 'x' },
  }
  await house.service.record([event({ runId, clientId: CLIENT, eventType: 'POLICY_DECISION', payload })])
  const next = replyOf('decideApproval', await decide(house, ben, id))
  assert.deepEqual([next.status, next.firstApproval?.by.name], ['PENDING', 'ben@example.com'])
  assert.equal((await decide(house, ada, id)).body.status, 'APPROVED')
})

onBoth('expired and withdrawn between the two: nothing runs', async (house) => {
  const { ada, ben, calls } = house
  const policyId = await forTwo(house)
  const expiring = await ask(house, { policyId, timeoutMs: 1_000 })
  await decide(house, ada, expiring)
  const runId = `run-${randomUUID()}`
  const withdrawn = await ask(house, { policyId, runId })
  await decide(house, ada, withdrawn)
  const payload = { approvalId: withdrawn, toolName: 'transfer', inputHash: HASH, reason: 'timeout' }
  await house.service.record([event({ runId, clientId: CLIENT, eventType: 'APPROVAL_WITHDRAWN', payload })])
  await decide(house, ben, withdrawn)
  assert.equal((await calls.read(withdrawn)).body.status, 'REJECTED')
  assert.equal((await calls.read(expiring, '?wait=3')).body.status, 'EXPIRED')
  assert.deepEqual(refusalOf(await decide(house, ben, expiring)), [409, 'conflict'])
})

onBoth('several together get an outcome each, and policies say how many people they need', async (house) => {
  const policyId = await forTwo(house)
  const single = await writePolicy(house)
  await deploy(house, single, '1')
  const ids = [await ask(house, { policyId }), await recorded(house, single)]
  const answer = await house.ada.post(`${base(house)}/approvals/decisions`, { ids, decision: 'APPROVED' })
  const outcomes = replyOf('decideApprovals', answer).items.map(({ outcome }) => outcome)
  assert.deepEqual(outcomes, ['first', 'decided'])
  const path = `/workspaces/${house.workspaceId}/policies/${policyId}`
  const kept = { condition: 'true', severity: 'HIGH', action: 'REQUIRE_APPROVAL' }
  const next = await house.service.operator<{ approvers: number }>(`${path}/versions`, { body: kept })
  assert.equal(next.body.approvers, 2, 'a program that does not know of two people does not end them')
  for (const approvers of [0, 3, '2', 1.5]) {
    assert.equal((await house.service.operator(`${path}/versions`, { body: { ...kept, approvers } })).status, 400)
  }
  const blocking = { ...kept, action: 'BLOCK', approvers: 2 }
  assert.equal((await house.service.operator(`${path}/versions`, { body: blocking })).status, 400)
  const one = await house.service.operator<{ approvers: number }>(`${path}/versions`, {
    body: { ...kept, approvers: 1 },
  })
  assert.equal(one.body.approvers, 1)
})

onBoth('a decision by tool ends although more requests than it takes wait for a second person', async (house) => {
  const policyId = await forTwo(house)
  const toolName = randomUUID()
  const requests = Array.from({ length: LIMITS.decisionsMax + 1 }, () => ask(house, { policyId, toolName }))
  await Promise.all(requests)
  for (const outcome of ['first', 'same_person']) {
    const body = { decision: 'APPROVED', toolName, inputHash: HASH }
    const answer = replyOf('decideApprovals', await house.ada.post(`${base(house)}/approvals/decisions`, body))
    assert.deepEqual(new Set(answer.items.map((item) => item.outcome)), new Set([outcome]))
    assert.equal(answer.more, false)
  }
})
