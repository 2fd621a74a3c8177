/** Recorded decisions that the service derives again, over HTTP on both engines. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import type { IssuePage } from '@tacho/contract/issues/issue.ts'
import { inputHash } from '@tacho/policy/input/input-hash.ts'
import { CLIENT } from '../../setup/approval-service.ts'
import { startOnBothEngines, type EngineService } from '../../setup/both-engines.ts'
import { eventually } from '../../setup/eventually.ts'
import { event } from '../../setup/service.ts'

interface House extends EngineService {
  workspaceId: string
}

const houses = startOnBothEngines({}, async (started): Promise<House> => {
  const { body } = await started.service.operator<{ items: { id: string }[] }>('/workspaces')
  return { ...started, workspaceId: body.items[0]?.id ?? '' }
})

function onBoth(name: string, run: (house: House) => Promise<void>): void {
  test(name, async (t) => {
    for (const house of houses) await t.test(house.engine, () => run(house))
  })
}

async function deployed(house: House, given: object): Promise<string> {
  const policyId = `p-${randomUUID()}`
  const policy = { policyId, severity: 'HIGH', action: 'REQUIRE_APPROVAL', ...given }
  const made = await house.service.operator(`/workspaces/${house.workspaceId}/policies`, { body: policy })
  assert.equal(made.status, 201, made.text)
  const items = [{ kind: 'policy', id: policyId, version: '1' }]
  const path = `/environments/${house.service.environmentId}/deployments`
  assert.equal((await house.service.operator(path, { body: { items } })).status, 200)
  return policyId
}

async function revisionOf({ service }: House): Promise<string> {
  return (await service.api<{ revision: string }>('/runtime-config')).body.revision
}

/** Records a decision as the SDKs do, and the start of its call if the call may run at once. */
async function record(house: House, toolName: string, input: object, given: Record<string, unknown>) {
  const runId = `run-${randomUUID()}`
  const { action, shown = input, ...more } = given
  const hash = inputHash(toolName, input)
  const held = action === 'BLOCK' || action === 'REQUIRE_APPROVAL'
  const payload = { action, toolName, inputHash: hash, ...(held && { input: shown }), ...more }
  const of = { runId, clientId: CLIENT }
  const start = { ...of, eventType: 'TOOL_START', payload: { toolName, inputHash: hash, input: shown } }
  const events = [event({ ...of, eventType: 'POLICY_DECISION', payload }), ...(held ? [] : [event(start)])]
  assert.equal((await house.service.record(events)).body.success, true)
  return events
}

async function resultsOf({ service }: House): Promise<Record<string, number>> {
  const { text } = await service.call('/metrics')
  const lines = text.matchAll(/^tacho_decisions_derived_total\{result="(\w+)"\} (\d+)$/gm)
  return Object.fromEntries([...lines].map(([, result = '', count]) => [result, Number(count)]))
}

const issuesOf = async ({ service }: House, toolName: string) => {
  const { body } = await service.operator<IssuePage>(`/environments/${service.environmentId}/issues?limit=200`)
  return body.items.filter(({ title }) => title.includes(toolName))
}

/** Waits until the service has derived this many more decisions. Returns how the results changed. */
async function derivedAfter(house: House, decisions: number, act: () => Promise<unknown>) {
  const before = await resultsOf(house)
  const sum = (results: Record<string, number>) => Object.values(results).reduce((total, count) => total + count, 0)
  await act()
  const after = await eventually(async () => {
    const results = await resultsOf(house)
    return sum(results) >= sum(before) + decisions && results
  }, 'the decisions to be derived')
  const grown = Object.entries(after).map(([result, count]) => [result, count - (before[result] ?? 0)] as const)
  return Object.fromEntries(grown.filter(([, count]) => count > 0))
}

onBoth('a decision that its policies do not give opens an issue with both, once', async (house) => {
  const toolName = `refund_${randomUUID().slice(0, 8)}`
  const policyId = await deployed(house, { condition: `tool.name == "${toolName}" && tool.input.amount > 100` })
  const policyVersions = { [policyId]: '1' }
  const right = { action: 'REQUIRE_APPROVAL', policyVersions }
  let events: Record<string, unknown>[] = []
  const results = await derivedAfter(house, 2, async () => {
    await record(house, toolName, { amount: 250 }, right)
    events = await record(house, toolName, { amount: 50 }, right)
  })
  assert.deepEqual(results, { same: 1, differs: 1 })
  const [issue, ...others] = await eventually(async () => {
    const issues = await issuesOf(house, toolName)
    return issues.length > 0 ? issues : null
  }, 'the issue')
  assert.equal(others.length, 0)
  assert.equal(issue?.title, `Decision on ${toolName} differs: recorded REQUIRE_APPROVAL, derived ALLOW`)
  assert.equal(issue.detectionType, 'decision_differs')
  const path = `/environments/${house.service.environmentId}/issues/${issue.id}`
  assert.match((await house.service.operator(path)).text, new RegExp(`"policyId":"${policyId}"`))
  // A retry stores nothing, so its decision is not derived again. A new decision is.
  assert.deepEqual(
    await derivedAfter(house, 1, async () => {
      await house.service.record(events)
      await record(house, toolName, { amount: 101 }, right)
    }),
    { same: 1 },
  )
  assert.equal((await issuesOf(house, toolName))[0]?.occurrences, 1)
})

onBoth('a policy in force that the client left out counts, by its revision', async (house) => {
  const toolName = `pay_${randomUUID().slice(0, 8)}`
  const warning = await deployed(house, { condition: `tool.name == "${toolName}"`, action: 'WARN' })
  const condition = `tool.name == "${toolName}" && tool.input.amount > 1000`
  const blocking = await deployed(house, { condition, action: 'BLOCK' })
  const revision = await revisionOf(house)
  const policyVersions = { [warning]: '1' }
  const results = await derivedAfter(house, 3, async () => {
    await record(house, toolName, { amount: 5_000 }, { action: 'WARN', policyVersions, revision })
    await record(house, toolName, { amount: 5 }, { action: 'WARN', policyVersions, revision })
    // The policies of an unknown revision are not known, so this decision is skipped.
    await record(house, toolName, { amount: 5_000 }, { action: 'WARN', policyVersions, revision: 'ab'.repeat(32) })
  })
  assert.deepEqual(results, { same: 2, differs: 1 })
  const [issue] = await issuesOf(house, toolName)
  assert.equal(issue?.title, `Decision on ${toolName} differs: recorded WARN, derived BLOCK`)
  assert.ok(blocking)
})

onBoth('what cannot be derived is never called different', async (house) => {
  const toolName = `send_${randomUUID().slice(0, 8)}`
  const of = (condition: string) => deployed(house, { condition: `tool.name == "${toolName}" && ${condition}` })
  const amount = await of('tool.input.amount > 100')
  const unseen = await Promise.all(
    [
      '"untrusted" in run.labels',
      'run.toolCalls > 5',
      'run.cost > 1.0',
      '"prompt_injection" in risk.signals',
      'now > timestamp("2099-01-01T00:00:00Z")',
      'session.id == "s"',
      'tool.server == "db"',
      'size(tool.labels) > 0',
      'origin(tool.input.to) == ["user"]',
      'has(tool.annotations.destructiveHint)',
    ].map(of),
  )
  const held = { action: 'REQUIRE_APPROVAL', policyVersions: { [amount]: '1' } }
  const others: [object, Record<string, unknown>][] = [
    // The input is masked, shortened, missing, or not the one that was judged.
    [
      { amount: 50, card: 'x' },
      { ...held, shown: { amount: 50, card: '[masked]' } },
    ],
    [
      { amount: 50, text: 'xyz' },
      { ...held, shown: { amount: 50, text: '[cut: 3 characters]' } },
    ],
    [{ amount: 50 }, { ...held, shown: { amount: 51 } }],
    [{ amount: 50 }, { ...held, shown: null }],
    [{ amount: 50 }, { ...held, inputProblem: 'it could not be copied' }],
    // A detector decided too, the client could not evaluate the condition, or the version or policy is unknown.
    [{ amount: 50 }, { ...held, detections: ['LOOP_DETECTED'] }],
    [{ amount: 50 }, { ...held, failures: [{ policyId: amount, message: 'unknown name' }] }],
    [{ amount: 50 }, { ...held, action: 'ASK' }],
    [{ amount: 50 }, { ...held, policyVersions: { [amount]: '2' } }],
    [{ amount: 50 }, { ...held, policyVersions: { [amount]: 'local' } }],
    [{ amount: 50 }, { ...held, policyVersions: { [amount]: '1', own: '1' } }],
    [{ amount: 50 }, { ...held, policyVersions: [amount] }],
    ...unseen.map((policyId): [object, Record<string, unknown>] => [
      { amount: 50, to: 'x' },
      { ...held, policyVersions: { [policyId]: '1' } },
    ]),
  ]
  const results = await derivedAfter(house, others.length, async () => {
    for (const [input, given] of others) await record(house, toolName, input, given)
  })
  assert.equal(results['differs'] ?? 0, 0)
  assert.equal(results['same'] ?? 0, 0)
  assert.equal(results['unknown_version'], 4)
  assert.deepEqual(await issuesOf(house, toolName), [])
})
