/** Standing approvals, from the front door, on both engines. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { test } from 'node:test'
import { inputHash } from '@tacho/policy/input/input-hash.ts'
import { sealedInputHash } from '@tacho/policy/input/sealed-input.ts'
import type { Approval } from '@tacho/contract/approvals/approval.ts'
import type { ApprovalGrant } from '@tacho/contract/approvals/grant.ts'
import type { OperatorApproval } from '@tacho/contract/approvals/operator-approval.ts'
import { approvalCalls, CLIENT, type ApprovalCalls } from '../../setup/approval-service.ts'
import { startOnBothEngines, type EngineService } from '../../setup/both-engines.ts'
import { eventually } from '../../setup/eventually.ts'
import { event, type Service } from '../../setup/service.ts'
import { newPerson } from '../people/browser.ts'
import { refusalOf, replyOf } from '../web/contract.ts'

interface House extends EngineService {
  calls: ApprovalCalls
  workspaceId: string
}

const houses = startOnBothEngines({ webhookNetworks: '127.0.0.0/8' }, async (started): Promise<House> => {
  const { items } = (await started.service.operator<{ items: { id: string }[] }>('/workspaces')).body
  return { ...started, calls: approvalCalls(started.service), workspaceId: items[0]?.id ?? '' }
})

function onBoth(name: string, run: (house: House) => Promise<void>): void {
  test(name, async (t) => {
    for (const house of houses) await t.test(house.engine, () => run(house))
  })
}

const base = ({ service }: House) => `/environments/${service.environmentId}`

/** A policy for a new tool, so that tests do not affect each other. */
async function newPolicy(house: House, given: object = {}): Promise<{ policyId: string; toolName: string }> {
  const [policyId, toolName] = [`p-${randomUUID()}`, `tool-${randomUUID()}`]
  const policy = { condition: `tool.name == "${toolName}"`, severity: 'HIGH', action: 'REQUIRE_APPROVAL', ...given }
  const { service, workspaceId } = house
  const made = await service.operator(`/workspaces/${workspaceId}/policies`, { body: { policyId, ...policy } })
  assert.equal(made.status, 201, made.text)
  await deploy(house, policyId, '1')
  return { policyId, toolName }
}

async function deploy({ service }: House, id: string, version: string | null) {
  const body = { items: [{ kind: 'policy', id, version }] }
  const answer = await service.operator(`/environments/${service.environmentId}/deployments`, { body })
  assert.equal(answer.status, 200, answer.text)
}

async function ask(house: House, fields: Record<string, unknown>, key?: string): Promise<Approval> {
  const { status, body } = await house.calls.ask(fields, key === undefined ? {} : { 'x-api-key': key })
  assert.equal(status, 201)
  return body
}

/** Records what the client shows of the input. */
async function record(house: House, approval: Approval, fields: Record<string, unknown>, more: object): Promise<void> {
  const { runId, toolName, inputHash: hash, policyId } = fields
  const payload = { action: 'REQUIRE_APPROVAL', approvalId: approval.id, toolName, inputHash: hash }
  const policyVersions = { [String(policyId)]: '1' }
  const decision = { payload: { ...payload, policyVersions, ...more }, eventType: 'POLICY_DECISION' }
  const sent = await house.service.record([event({ runId: String(runId), clientId: CLIENT, ...decision })])
  assert.equal(sent.body.success, true, sent.text)
}

const approve = (house: House, id: string, grant?: object, more: object = {}) =>
  house.service.operator<OperatorApproval>(`${base(house)}/approvals/${id}/decision`, {
    body: { decision: 'APPROVED', ...(grant && { grant }), ...more },
  })

async function grantsOf(house: House): Promise<ApprovalGrant[]> {
  const answer = await house.service.operator(`${base(house)}/approvals/grants?limit=50`)
  return replyOf('listApprovalGrants', answer).items
}

async function grantOf(house: House, approvalId: string): Promise<ApprovalGrant> {
  const grant = (await grantsOf(house)).find((one) => one.approvalId === approvalId)
  assert.ok(grant)
  return grant
}

/** The same service with another workspace, whose environment the calls are about. */
async function newTenantOf({ service: shared, engine }: House): Promise<House> {
  const { workspaceId, environmentId } = await shared.newTenant(`grants-${randomUUID()}`)
  const apiKey = await shared.newKey({ scopes: ['policies:read', 'events:write'], environmentId })
  const service: Service = {
    ...shared,
    apiKey,
    environmentId,
    api: (target, { headers, ...more } = {}) =>
      shared.api(target, { ...more, headers: { 'x-api-key': apiKey, ...headers } }),
    record: (events, key = apiKey) => shared.record(events, key),
  }
  return { engine, service, calls: approvalCalls(service), workspaceId }
}

const runOf = () => `run-${randomUUID()}`
const hashOf = (toolName: string, input: object) => inputHash(toolName, input)

onBoth(
  'the same input again in this run is approved by the service itself, and each use names its grant',
  async (house) => {
    const { policyId, toolName } = await newPolicy(house)
    const fields = { policyId, toolName, runId: runOf(), agentId: 'a', inputHash: hashOf(toolName, { to: 'Ada' }) }
    const first = await ask(house, fields)
    const decided = await approve(
      house,
      first.id,
      { scope: 'input', uses: 2, minutes: 5 },
      { reason: 'known customer' },
    )
    assert.equal(decided.status, 200, decided.text)
    const given = await grantOf(house, first.id)
    assert.deepEqual([given.scope, given.state, given.uses, given.mostUses], ['input', 'in_use', 0, 2])
    assert.deepEqual(given.policies, [{ policyId, version: '1' }])
    const second = await ask(house, fields)
    assert.deepEqual([second.status, second.decisionReason], ['APPROVED', 'known customer'])
    assert.equal((await house.calls.read(second.id)).body.status, 'APPROVED')
    const shown = replyOf('readApproval', await house.service.operator(`${base(house)}/approvals/${second.id}`))
    assert.deepEqual([shown.grantId, shown.decidedBy?.via, shown.decidedBy?.name], [given.id, 'grant', 'first token'])
    for (const others of [{ inputHash: hashOf(toolName, {}) }, { runId: runOf() }, { toolName: 'another' }]) {
      assert.equal((await ask(house, { ...fields, ...others })).status, 'PENDING')
    }
    const key = await house.service.newKey({ scopes: ['events:write', 'policies:read'] })
    assert.equal((await ask(house, fields, key)).status, 'PENDING', 'another key is another client')
    assert.equal((await ask(house, fields)).status, 'APPROVED')
    assert.equal((await ask(house, fields)).status, 'PENDING', 'used up')
    assert.equal((await grantOf(house, first.id)).state, 'used_up')
  },
)

onBoth('this tool in this run; revoked, it ends at once', async (house) => {
  const { policyId, toolName } = await newPolicy(house)
  const fields = { policyId, toolName, runId: runOf() }
  const first = await ask(house, { ...fields, inputHash: hashOf(toolName, { n: 1 }) })
  await approve(house, first.id, { scope: 'tool' })
  assert.equal((await ask(house, { ...fields, inputHash: hashOf(toolName, { n: 2 }) })).status, 'APPROVED')
  const grant = await grantOf(house, first.id)
  const path = `${base(house)}/approvals/grants/${grant.id}/revoke`
  const revoked = replyOf('revokeApprovalGrant', await house.service.operator(path, { method: 'POST' }))
  assert.deepEqual([revoked.state, revoked.endedBy, revoked.uses], ['revoked', 'first token', 1])
  assert.equal((await ask(house, { ...fields, inputHash: hashOf(toolName, { n: 3 }) })).status, 'PENDING')
  const unknown = `${base(house)}/approvals/grants/${randomUUID()}/revoke`
  assert.deepEqual(refusalOf(await house.service.operator(unknown, { method: 'POST' })), [404, 'not_found'])
})

onBoth('a condition holds for this agent in every run, if the recorded input has the approved hash', async (house) => {
  const { policyId, toolName } = await newPolicy(house)
  const newCall = (input: object, more: object = {}) => {
    return { policyId, toolName, runId: runOf(), agentId: 'a', inputHash: hashOf(toolName, input), ...more }
  }
  const small = newCall({ amount: 20 })
  const first = await ask(house, small)
  const grant = { scope: 'condition', condition: 'tool.input.amount < 100.0', uses: 50 }
  assert.match((await approve(house, first.id, grant)).text, /cannot be checked/)
  await record(house, first, small, { input: { amount: 20 } })
  assert.match((await approve(house, first.id, { ...grant, condition: 'tool.input.amount > 100.0' })).text, /not true/)
  for (const condition of ['run.cost < 1.0', 'tool.input.amount <', 'agent.id == "a"', '1']) {
    assert.equal((await approve(house, first.id, { ...grant, condition })).status, 400, condition)
  }
  const ofPast = await approve(house, first.id, { ...grant, condition: 'origin(tool.input.amount) == []' })
  assert.equal(ofPast.status, 400)
  assert.match(ofPast.text, /may read tool\.input and tool\.name only, not origin/)
  const misspelled = await approve(house, first.id, { ...grant, condition: 'tool.input.amout < 100.0' })
  assert.equal(misspelled.status, 409)
  assert.match(misspelled.text, /fails for this call: line 1, column 1: missing key \\"amout\\"/)
  assert.equal((await approve(house, first.id, grant)).body.status, 'APPROVED')

  /** Asks, records the input (null: none), and returns the status that the client gets, which waits at most `seconds`. */
  async function answered(fields: Record<string, unknown>, shown: object | null, seconds = 2): Promise<string> {
    const asked = await ask(house, fields)
    assert.equal(asked.status, 'PENDING')
    const waiting = house.calls.read(asked.id, `?wait=${seconds}`)
    if (shown !== null) await record(house, asked, fields, shown)
    return (await waiting).body.status
  }
  const other = { amount: 60 }
  assert.equal(await answered(newCall(other), { input: other }, 30), 'APPROVED')
  const pending = await Promise.all([
    answered(newCall({ amount: 500 }), { input: { amount: 500 } }),
    answered(newCall({ amount: 500 }), { input: { amount: 60 } }),
    answered(newCall(other, { agentId: 'b' }), { input: other }),
    answered(newCall(other), null),
    answered(newCall(other, { recordsInput: false }), { input: other }),
    answered(newCall(other, { inputHashScheme: 'own' }), { input: other }),
    answered(newCall({ amount: 60, to: 'x' }), { input: { amount: 60, to: '[masked:email]' } }),
  ])
  assert.deepEqual(
    pending,
    Array.from({ length: 7 }, () => 'PENDING'),
  )
  const seals = { '/to': 'ab'.repeat(32) }
  const sealed = { amount: 60, to: '[masked:email]' }
  const hash = { inputHash: sealedInputHash(toolName, sealed, seals) }
  const sealedCall = { input: sealed, inputSeals: seals }
  assert.equal(await answered(newCall({}, hash), sealedCall, 30), 'APPROVED', 'it does not read what is masked')
  const amount = { amount: '[masked:number]' }
  const hidden = { '/amount': 'cd'.repeat(32) }
  const ofHidden = { inputHash: sealedInputHash(toolName, amount, hidden) }
  assert.equal(await answered(newCall({}, ofHidden), { input: amount, inputSeals: hidden }), 'PENDING')
  assert.equal((await grantOf(house, first.id)).uses, 2)
})

onBoth('never for CRITICAL unless the policy allows it, and not for two people or an unknown policy', async (house) => {
  const refused = async (given: object, pattern: RegExp, fields: object = {}) => {
    const { policyId, toolName } = await newPolicy(house, given)
    const asked = await ask(house, { policyId, toolName, runId: runOf(), inputHash: hashOf(toolName, {}), ...fields })
    const answer = await approve(house, asked.id, { scope: 'tool' })
    assert.deepEqual(refusalOf(answer), [409, 'conflict'])
    assert.match(answer.text, pattern)
    assert.equal((await house.calls.read(asked.id)).body.status, 'PENDING', 'nothing is decided')
    const detail = replyOf('readApproval', await house.service.operator(`${base(house)}/approvals/${asked.id}`))
    assert.deepEqual(detail.mayGrant?.scopes, [])
  }
  await refused({ severity: 'CRITICAL' }, /CRITICAL/)
  await refused({ grants: 'never' }, /does not allow it/)
  await refused({ approvers: 2 }, /two people/)
  await refused({}, /no policy that is in force/, { policyId: null })
  await refused({}, /no policy that is in force/, { policyId: 'unknown' })
  await refused({}, /names no run/, { runId: null })
  const { policyId, toolName } = await newPolicy(house, { severity: 'CRITICAL', grants: 'allow' })
  const fields = { policyId, toolName, runId: runOf(), inputHash: hashOf(toolName, {}) }
  await approve(house, (await ask(house, fields)).id, { scope: 'tool' })
  assert.equal((await ask(house, fields)).status, 'APPROVED')
  const asked = await ask(house, { ...fields, runId: runOf() })
  for (const grant of [
    { scope: 'tool', minutes: 0 },
    { scope: 'tool', minutes: 1_441 },
    { scope: 'tool', uses: 1_001 },
    { scope: 'tool', condition: 'true' },
    { scope: 'condition' },
    { scope: 'all' },
    { scope: 'tool', forever: true },
  ]) {
    assert.equal((await approve(house, asked.id, grant)).status, 400, JSON.stringify(grant))
  }
  assert.equal((await approve(house, asked.id, { scope: 'tool' }, { decision: 'REJECTED' })).status, 400)
})

onBoth('another version, a removal and a rollback of the policy: it ends, and stays ended', async (house) => {
  const { policyId, toolName } = await newPolicy(house)
  const fields = { policyId, toolName, runId: runOf(), inputHash: hashOf(toolName, {}) }
  const first = await ask(house, fields)
  await approve(house, first.id, { scope: 'tool' })
  const stale = { ...fields, policyVersion: '7' }
  assert.equal((await ask(house, stale)).status, 'PENDING', 'the client has another version')
  await deploy(house, policyId, null)
  assert.equal((await ask(house, fields)).status, 'PENDING')
  await deploy(house, policyId, '1')
  assert.equal((await ask(house, fields)).status, 'PENDING')
  assert.equal((await grantOf(house, first.id)).state, 'policy_changed')
})

onBoth('the end of the run ends it, and a later change of the policy is not the reason', async (house) => {
  const { policyId, toolName } = await newPolicy(house)
  const fields = { policyId, toolName, runId: runOf(), inputHash: hashOf(toolName, {}) }
  const outcome = async (runId: string) => {
    const closed = { eventType: 'SESSION_OUTCOME', payload: { status: 'COMPLETED' } }
    const sent = await house.service.record([event({ runId, clientId: CLIENT, ...closed })])
    assert.equal(sent.body.success, true, sent.text)
  }
  const first = await ask(house, fields)
  await approve(house, first.id, { scope: 'tool' })
  await outcome(runOf())
  assert.equal((await ask(house, fields)).status, 'APPROVED')
  await outcome(fields.runId)
  assert.equal((await ask(house, fields)).status, 'PENDING')
  const { state, endedAt, uses } = await grantOf(house, first.id)
  assert.deepEqual([state, endedAt !== null, uses], ['run_ended', true, 1])
  const usedUp = await ask(house, { ...fields, runId: runOf() })
  await approve(house, usedUp.id, { scope: 'tool', uses: 1 })
  const of = { ...fields, runId: (await grantOf(house, usedUp.id)).runId }
  assert.equal((await ask(house, of)).status, 'APPROVED')
  await deploy(house, policyId, null)
  // The policy changed after the grants ended, so the shown reason and time stay.
  assert.deepEqual([(await grantOf(house, first.id)).state, (await grantOf(house, first.id)).endedAt], [state, endedAt])
  assert.equal((await grantOf(house, usedUp.id)).state, 'used_up')
})

onBoth('another policy that asks for the same call is not answered by it', async (house) => {
  const { policyId, toolName } = await newPolicy(house)
  const call = { policyId, toolName, runId: runOf(), agentId: 'a', inputHash: hashOf(toolName, { n: 1 }) }
  const first = await ask(house, call)
  await approve(house, first.id, { scope: 'tool' })
  const second = await newPolicy(house, { condition: `tool.name == "${toolName}" && tool.input.n > 5.0` })
  const asked = await ask(house, call)
  assert.equal(asked.status, 'PENDING', 'the other one may ask, too')
  const waiting = house.calls.read(asked.id, '?wait=30')
  await record(house, asked, call, { input: { n: 1 } })
  assert.equal((await waiting).body.status, 'APPROVED', 'the decision names only the one')
  const both = await ask(house, call)
  const held = house.calls.read(both.id, '?wait=2')
  await record(house, both, call, { input: { n: 1 }, policyVersions: { [policyId]: '1', [second.policyId]: '1' } })
  assert.equal((await held).body.status, 'PENDING')
})

onBoth('many at the same time never exceed the number of uses', async (house) => {
  const { policyId, toolName } = await newPolicy(house)
  const fields = { policyId, toolName, runId: runOf(), inputHash: hashOf(toolName, {}) }
  const first = await ask(house, fields)
  await approve(house, first.id, { scope: 'input', uses: 7 })
  const asked = await Promise.all(Array.from({ length: 30 }, () => ask(house, fields)))
  assert.equal(asked.filter(({ status }) => status === 'APPROVED').length, 7)
  assert.equal((await grantOf(house, first.id)).uses, 7)
})

onBoth('a request is announced only if no grant approves it', async (shared) => {
  // Requests of other tests in the shared tenant can be announced at any time, so this test has its own tenant.
  const house = await newTenantOf(shared)
  const { service } = house
  const { policyId, toolName } = await newPolicy(house)
  const body = { url: 'http://127.0.0.1:1/hook', events: ['approval.requested', 'approval.decided'] }
  const hook = await service.operator<{ id: string }>(`${base(house)}/webhooks`, { body })
  assert.equal(hook.status, 201, hook.text)
  const told = async () => {
    const path = `${base(house)}/webhooks/${hook.body.id}/deliveries?limit=100`
    const { items } = (await service.operator<{ items: { type: string }[] }>(path)).body
    return items.map(({ type }) => type).toSorted()
  }
  const fields = { policyId, toolName, runId: runOf(), inputHash: hashOf(toolName, {}) }
  const first = await ask(house, fields)
  await approve(house, first.id, { scope: 'input' })
  assert.deepEqual(await told(), ['approval.decided', 'approval.requested'])
  for (let use = 0; use < 3; use++) assert.equal((await ask(house, fields)).status, 'APPROVED')
  assert.deepEqual(await told(), ['approval.decided', 'approval.requested'])
  const agent = { ...fields, agentId: 'a' }
  const shown = await ask(house, { ...agent, runId: runOf() })
  const call = { ...agent, runId: runOf() }
  await approve(house, shown.id)
  const asked = await ask(house, call)
  await record(house, asked, call, { input: {} })
  await approve(house, asked.id, { scope: 'condition', condition: '!has(tool.input.to)' })
  const before = (await told()).length
  // The input of this request is never recorded. People are notified after the wait, although no client polls.
  await ask(house, { ...agent, runId: runOf() })
  assert.equal((await told()).length, before)
  await eventually(async () => (await told()).length === before + 1, 'people are told')
})

onBoth('an erased run takes its grants along', async (house) => {
  const { policyId, toolName } = await newPolicy(house)
  const fields = { policyId, toolName, runId: runOf(), inputHash: hashOf(toolName, {}) }
  const first = await ask(house, fields)
  await record(house, first, fields, { input: {} })
  await approve(house, first.id, { scope: 'tool' })
  const erased = await house.service.operator(`${base(house)}/erasures`, { body: { kind: 'run', id: fields.runId } })
  assert.equal(erased.status < 300, true, erased.text)
  const isGone = async () => !(await grantsOf(house)).some(({ approvalId }) => approvalId === first.id)
  await eventually(isGone, 'the grant is gone')
})

onBoth('a stop goes before a grant, and rejects also what a grant may cover', async (house) => {
  const { policyId, toolName } = await newPolicy(house)
  const { service } = house
  const fields = { policyId, toolName, runId: runOf(), agentId: `a-${randomUUID()}`, inputHash: hashOf(toolName, {}) }
  const first = await ask(house, fields)
  await record(house, first, fields, { input: {} })
  await approve(house, first.id, { scope: 'tool' })
  const second = await ask(house, { ...fields, runId: runOf() })
  await record(house, second, { ...fields, runId: (await detail(second.id)).runId }, { input: {} })
  await approve(house, second.id, { scope: 'condition', condition: '!has(tool.input.to)' })
  const stop = { scope: 'agent', target: fields.agentId, reason: 'It pays twice' }
  const stopped = await service.operator<{ id: string }>(`${base(house)}/stops`, { body: stop })
  assert.equal(stopped.status, 201, stopped.text)
  for (const runId of [fields.runId, runOf()]) {
    const asked = await ask(house, { ...fields, runId })
    assert.deepEqual(
      [asked.status, asked.decisionReason],
      ['REJECTED', 'Stopped by first token. Reason: It pays twice'],
    )
  }
  assert.equal((await grantOf(house, first.id)).uses, 0)
  await service.operator(`${base(house)}/stops/${stopped.body.id}/resume`, { body: {} })
  assert.equal((await ask(house, fields)).status, 'APPROVED')

  async function detail(id: string) {
    return replyOf('readApproval', await service.operator(`${base(house)}/approvals/${id}`))
  }
})

onBoth('an id of a request that a grant may cover answers no other call', async (house) => {
  const { policyId, toolName } = await newPolicy(house)
  const fields = { policyId, toolName, runId: runOf(), agentId: `a-${randomUUID()}`, inputHash: hashOf(toolName, {}) }
  const first = await ask(house, fields)
  await record(house, first, fields, { input: {} })
  await approve(house, first.id, { scope: 'condition', condition: '!has(tool.input.to)' })
  const call = { ...fields, runId: runOf(), clientRequestId: randomUUID() }
  const held = await ask(house, call)
  assert.equal(held.status, 'PENDING')
  await record(house, held, call, { input: {} })
  for (const other of [{ inputHash: hashOf(toolName, { to: 'x' }) }, { toolName: 'another' }])
    assert.deepEqual(refusalOf(await house.calls.ask({ ...call, ...other })), [409, 'conflict'])
  assert.equal((await ask(house, call)).status, 'APPROVED')
})

onBoth('a grant serves no call after its token is revoked, or its person lost the role', async (house) => {
  const { service, workspaceId } = house
  const { policyId, toolName } = await newPolicy(house)
  const newCall = () => ({ policyId, toolName, runId: runOf(), inputHash: hashOf(toolName, {}) })
  const tokens = `/workspaces/${workspaceId}/tokens`
  const made = await service.operator<{ id: string; token: string }>(tokens, { body: { name: 't', role: 'approver' } })
  const person = await newPerson(service, `p-${randomUUID()}@example.com`, 'approver', workspaceId)
  const decision = { decision: 'APPROVED', grant: { scope: 'tool' } }
  const [ofToken, ofPerson] = [newCall(), newCall()]
  const path = async (call: Record<string, unknown>) =>
    `${base(house)}/approvals/${(await ask(house, call)).id}/decision`
  const headers = { authorization: `Bearer ${made.body.token}` }
  assert.equal((await service.operator(await path(ofToken), { body: decision, headers })).status, 200)
  assert.equal((await person.post(await path(ofPerson), decision)).status, 200)
  for (const call of [ofToken, ofPerson]) assert.equal((await ask(house, call)).status, 'APPROVED')
  await service.operator(`${tokens}/${made.body.id}/revoke`, { method: 'POST' })
  assert.equal((await ask(house, ofToken)).status, 'PENDING')
  const me = (await person.get<{ id: string }>('/me')).body
  await service.operator(`/workspaces/${workspaceId}/operators/${me.id}/role`, { body: { role: 'viewer' } })
  assert.equal((await ask(house, ofPerson)).status, 'PENDING')
})

onBoth('the metrics count stops and standing approvals while they hold, and what these approved', async (house) => {
  const { service } = house
  const names = ['tacho_stops_in_effect', 'tacho_grants_in_use', 'tacho_grants_in_use_uses']
  const counted = async () => {
    const { text } = await service.call('/metrics')
    return names.map((name) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]))
  }
  const becomes = (wanted: number[], what: string) =>
    eventually(async () => isDeepStrictEqual(await counted(), wanted), what)
  // Wait until the cached counts, which are kept for a second, include the previous tests.
  await sleep(1_100)
  const [stops = 0, grants = 0, uses = 0] = await counted()
  const { policyId, toolName } = await newPolicy(house)
  const fields = { policyId, toolName, runId: runOf(), agentId: 'a', inputHash: hashOf(toolName, {}) }
  const first = await ask(house, fields)
  assert.equal((await approve(house, first.id, { scope: 'input', uses: 5, minutes: 5 })).status, 200)
  assert.equal((await ask(house, fields)).status, 'APPROVED')
  await becomes([stops, grants + 1, uses + 1], 'the grant and its use')
  const target = runOf()
  const stopped = await service.operator<{ id: string }>(`${base(house)}/stops`, {
    body: { scope: 'run', target, reason: 'for the metrics' },
  })
  assert.equal(stopped.status, 201, stopped.text)
  const { id } = await grantOf(house, first.id)
  assert.equal((await service.operator(`${base(house)}/approvals/grants/${id}/revoke`, { body: {} })).status, 200)
  await becomes([stops + 1, grants, uses], 'the stop without the grant')
  assert.equal((await service.operator(`${base(house)}/stops/${stopped.body.id}/resume`, { body: {} })).status, 200)
  await becomes([stops, grants, uses], 'neither')
})
