/** Proposals of narrower conditions from people's decisions, over HTTP on both engines. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import type { Proposal } from '@tacho/contract/approvals/proposal.ts'
import { inputHash } from '@tacho/policy/input/input-hash.ts'
import { approvalCalls, CLIENT, type ApprovalCalls } from '../../setup/approval-service.ts'
import { startOnBothEngines, type EngineService } from '../../setup/both-engines.ts'
import { event } from '../../setup/service.ts'
import { refusalOf, replyOf } from '../web/contract.ts'

interface House extends EngineService {
  calls: ApprovalCalls
  workspaceId: string
}

const houses = startOnBothEngines({}, async (started): Promise<House> => {
  const { body } = await started.service.operator<{ items: { id: string }[] }>('/workspaces')
  return { ...started, calls: approvalCalls(started.service), workspaceId: body.items[0]?.id ?? '' }
})

function onBoth(name: string, run: (house: House) => Promise<void>): void {
  test(name, async (t) => {
    for (const house of houses) await t.test(house.engine, () => run(house))
  })
}

const base = ({ service }: House) => `/environments/${service.environmentId}`

async function deployed(house: House, condition: string): Promise<string> {
  const policyId = `p-${randomUUID()}`
  const policy = { policyId, condition, severity: 'HIGH', action: 'REQUIRE_APPROVAL' }
  assert.equal(
    (await house.service.operator(`/workspaces/${house.workspaceId}/policies`, { body: policy })).status,
    201,
  )
  const items = [{ kind: 'policy', id: policyId, version: '1' }]
  assert.equal((await house.service.operator(`${base(house)}/deployments`, { body: { items } })).status, 200)
  return policyId
}

/** Records a call that needs approval, with its input, and decides it. */
async function decided(
  house: House,
  policyId: string,
  input: object,
  decision: 'APPROVED' | 'REJECTED',
  isRecorded = true,
) {
  const [toolName, runId] = ['refund', `run-${randomUUID()}`]
  const hash = inputHash(toolName, input)
  const asked = { toolName, inputHash: hash, runId, policyId, policyVersion: '1', policyVersions: { [policyId]: '1' } }
  const { id } = (await house.calls.ask(asked)).body
  const payload = { action: 'REQUIRE_APPROVAL', toolName, inputHash: hash, approvalId: id, input }
  const recorded = event({ runId, clientId: CLIENT, eventType: 'POLICY_DECISION', payload })
  if (isRecorded) assert.equal((await house.service.record([recorded])).body.success, true)
  assert.equal((await house.calls.decide(id, decision)).status, 200)
}

const proposalOf = (house: House, policyId: string) =>
  house.service.operator<Proposal>(`${base(house)}/policies/${encodeURIComponent(policyId)}/proposal`)

onBoth('the condition that asks least and keeps every rejection, with what it would have changed', async (house) => {
  const policyId = await deployed(house, 'tool.name == "refund" // all of them')
  for (const amount of [20, 35, 60, 110]) await decided(house, policyId, { amount, to: 'shop' }, 'APPROVED')
  for (const amount of [480, 900]) await decided(house, policyId, { amount, to: 'shop' }, 'REJECTED')
  const { proposed, ...counts } = replyOf('proposeCondition', await proposalOf(house, policyId))
  assert.deepEqual(
    [counts.version, counts.approved, counts.rejected, counts.withoutInput, counts.capped, counts.why],
    ['1', 4, 2, { approved: 0, rejected: 0 }, false, null],
  )
  assert.equal(proposed?.addition, 'has(tool.input.amount) && tool.input.amount >= 400')
  assert.equal(proposed.condition, `(tool.name == "refund" // all of them\n) && ${proposed.addition}`)
  assert.deepEqual([proposed.stillAsked, proposed.notAsked, proposed.share, proposed.high], [0, 4, 1, 1])
  assert.ok(proposed.low > 0.3 && proposed.low < 0.6, String(proposed.low))
  assert.match(counts.caveats.join('\n'), /keeps all 2 rejected calls[^]*at least 22 %[^]*2 rejected calls are few/)
  // The proposed condition can be saved unchanged as a new version.
  const path = `/workspaces/${house.workspaceId}/policies/${policyId}/versions`
  const next = { condition: proposed.condition, severity: 'HIGH', action: 'REQUIRE_APPROVAL' }
  assert.equal((await house.service.operator(path, { body: next })).status, 201)
})

onBoth('nothing is proposed where nothing shows what must be asked', async (house) => {
  const policyId = await deployed(house, 'tool.name == "refund"')
  const whyOf = async () => (await proposalOf(house, policyId)).body.why ?? ''
  assert.match(await whyOf(), /Nobody rejected/)
  await decided(house, policyId, { amount: 900 }, 'REJECTED')
  assert.match(await whyOf(), /Nobody approved/)
  await decided(house, policyId, { amount: 20 }, 'APPROVED', false)
  const unread = (await proposalOf(house, policyId)).body
  assert.deepEqual([unread.proposed, unread.withoutInput], [null, { approved: 1, rejected: 0 }])
  await decided(house, policyId, { amount: 20 }, 'APPROVED')
  assert.equal((await proposalOf(house, policyId)).body.proposed?.stillAsked, 1, 'whose input nobody knows')
  await decided(house, policyId, { amount: 950 }, 'REJECTED', false)
  assert.match(await whyOf(), /not recorded as they were judged/)
  assert.deepEqual(refusalOf(await proposalOf(house, 'another')), [404, 'not_found'])
  assert.deepEqual(refusalOf(await proposalOf(house, 'a\0b')), [404, 'not_found'])
})
