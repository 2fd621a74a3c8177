import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Simulation, SimulationResult } from '@tacho/contract/policies/simulation.ts'
import { approvalCalls } from '../../setup/approval-service.ts'
import { eventually } from '../../setup/eventually.ts'
import { event, startService, type Service } from '../../setup/service.ts'
import { refusalOf, replyOf, UNKNOWN_ID } from '../web/contract.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

const DAY = 24 * 60 * 60 * 1000
const pathOf = (environmentId = service.environmentId) => `/environments/${environmentId}/simulations`
const ask = (body: object, environmentId?: string) =>
  service.operator(pathOf(environmentId), { body: { condition: 'true', action: 'BLOCK', days: 30, ...body } })
const read = async (id: string, environmentId?: string) =>
  replyOf('readSimulation', await service.operator(`${pathOf(environmentId)}/${id}`))

async function ended(id: string, environmentId?: string): Promise<Simulation> {
  await eventually(async () => (await read(id, environmentId)).endedAt !== null, 'the end of the simulation')
  return read(id, environmentId)
}

async function simulated(body: object, environmentId?: string): Promise<SimulationResult> {
  const { id } = replyOf('createSimulation', await ask(body, environmentId))
  const { status, result, error, scanned, total } = await ended(id, environmentId)
  assert.equal(status, 'DONE', error ?? '')
  assert.ok(result)
  assert.deepEqual([scanned, total], [result.calls, result.calls])
  return result
}

/** A new environment with these events. */
async function recorded(...events: Record<string, unknown>[]): Promise<string> {
  const { environmentId } = await service.newTenant(`recorded ${randomUUID()}`)
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  for (let start = 0; start < events.length; start += 100) {
    const { status, body } = await service.record(events.slice(start, start + 100), key)
    assert.deepEqual([status, body.rejections], [200, []])
  }
  return environmentId
}

let at = Date.now() - 60 * 60 * 1000

/** Each event is a millisecond after the previous one. */
const call = (toolName: string, input: unknown, given: Record<string, unknown> = {}) =>
  event({ eventType: 'TOOL_CALL', payload: { toolName, input }, timestamp: ++at, ...given })

test('a simulation counts the decisions of the policy, and the runs and tools they affect', async () => {
  const environmentId = await recorded(
    call('refund', { amount: 50 }, { runId: 'a' }),
    call('refund', { amount: 500 }, { runId: 'a', eventId: 'first' }),
    call('refund', { amount: 900 }, { runId: 'a' }),
    call('search', { amount: 900 }, { runId: 'b' }),
    call('refund', { amount: 101 }, { runId: 'c' }),
    event({ payload: { toolName: 'refund', input: { amount: 900 } } }),
  )
  const condition = 'tool.name == "refund" && tool.input.amount > 100.0'
  const result = await simulated({ condition, action: 'REQUIRE_APPROVAL' }, environmentId)
  const { calls, matched, failures, hits, blocked, asked, warned, runs } = result
  assert.deepEqual(
    { calls, matched, failures, hits, blocked, asked, warned, runs },
    { calls: 5, matched: 3, failures: 0, hits: 3, blocked: 0, asked: 3, warned: 0, runs: 2 },
  )
  assert.deepEqual(
    result.hitRuns.map(({ runId, toolName }) => [runId, toolName]),
    [
      ['a', 'refund'],
      ['c', 'refund'],
    ],
  )
  assert.equal(result.hitRuns[0]?.eventId, 'first')
  assert.deepEqual(result.tools, [
    { toolName: 'refund', calls: 4, hits: 3 },
    { toolName: 'search', calls: 1, hits: 0 },
  ])
  // The fields are only those of refund, because the condition matches no other tool.
  assert.deepEqual(result.fields, [{ field: 'tool.input.amount', recorded: 4, types: { double: 4 } }])
  assert.deepEqual([result.warnings, result.failureReasons, result.moreTools], [[], [], false])
  assert.equal((await simulated({ condition, action: 'BLOCK' }, environmentId)).blocked, 3)
  assert.equal((await simulated({ condition, action: 'WARN' }, environmentId)).warned, 3)
  const allowed = await simulated({ condition, action: 'ALLOW' }, environmentId)
  assert.deepEqual([allowed.hits, allowed.blocked, allowed.asked, allowed.warned], [3, 0, 0, 0])
})

test('a condition that fails counts as matched or not as onError says, and its reasons are listed', async () => {
  const environmentId = await recorded(call('a', { x: 1 }), call('a', {}), call('b', { x: 'one' }))
  const condition = 'tool.input.x > 0.0'
  for (const [given, hits] of [
    [{ action: 'BLOCK', severity: 'LOW' }, 3],
    [{ action: 'REQUIRE_APPROVAL' }, 3],
    [{ action: 'BLOCK', severity: 'CRITICAL', onError: 'ignore' }, 1],
    [{ action: 'WARN', severity: 'LOW', onError: 'act' }, 3],
    [{ action: 'WARN', severity: 'HIGH' }, 3],
    [{ action: 'WARN' }, 1],
  ] as const) {
    const result = await simulated({ condition, ...given }, environmentId)
    assert.deepEqual([result.matched, result.failures, result.hits], [1, 2, hits], JSON.stringify(given))
    assert.equal(
      result.failureReasons.reduce((sum, { count }) => sum + count, 0),
      2,
    )
  }
})

test('calls that waited, expired or were blocked are calls: judged once, in columns of their own', async () => {
  const decision = (
    action: string,
    amount: number,
    given: Record<string, unknown> = {},
    spanId: string = randomUUID(),
  ) =>
    event({
      eventType: 'POLICY_DECISION',
      timestamp: ++at,
      spanId,
      payload: { action, toolName: 'refund', input: { amount }, inputHash: `${amount}`, ...given },
    })
  const approvalId = randomUUID()
  const environmentId = await recorded(
    call('refund', { amount: 20 }),
    ...[501, 502, 9_000].map((amount) => decision('REQUIRE_APPROVAL', amount, { approvalId: randomUUID() })),
    // One call that asked twice under the same id of the model: another process recorded its decision again.
    decision('REQUIRE_APPROVAL', 700, { approvalId: randomUUID(), toolCallId: 'call_1' }),
    decision('REQUIRE_APPROVAL', 700, { approvalId: randomUUID(), toolCallId: 'call_1' }),
    decision('BLOCK', 800),
    decision('BLOCK', 3),
    decision('WARN', 600),
    // Two calls in one span.
    decision('BLOCK', 901, {}, 'one span'),
    decision('BLOCK', 902, {}, 'one span'),
    // One call that needed an approval, got it and ran. It counts as ran.
    decision('REQUIRE_APPROVAL', 1_000, { approvalId }),
    call('refund', { amount: 1_000 }, { payload: { toolName: 'refund', input: { amount: 1_000 }, approvalId } }),
    event({ eventType: 'TOOL_CALL', timestamp: ++at, payload: { toolName: 'refund', outcome: 'never_ran' } }),
  )
  const { id } = replyOf('createSimulation', await ask({ condition: 'tool.input.amount > 500' }, environmentId))
  const { result } = await ended(id, environmentId)
  assert.ok(result)
  assert.deepEqual(result.states, {
    ran: { calls: 2, hits: 1 },
    held: { calls: 4, hits: 4 },
    blocked: { calls: 4, hits: 3 },
    neverRan: { calls: 1, hits: 0 },
  })
  assert.deepEqual([result.calls, result.matched, result.failures, result.hits], [11, 8, 0, 8])
  assert.deepEqual(
    result.largest?.map(({ value, state, message }) => [value, state, message]),
    [
      [9_000, 'held', 'refund with amount 9,000 asked a person and did not run'],
      [1_000, 'ran', 'refund with amount 1,000 ran'],
      [902, 'blocked', 'refund with amount 902 was blocked'],
      [901, 'blocked', 'refund with amount 901 was blocked'],
      [800, 'blocked', 'refund with amount 800 was blocked'],
    ],
  )
})

test('fields that were never recorded, or have several types, cause a warning', async () => {
  const environmentId = await recorded(
    ...Array.from({ length: 8 }, () => call('a', { amount: 1, to: { iban: 'x' } })),
    call('a', { amount: '12', to: null }),
    event({ eventType: 'TOOL_CALL', payload: { toolName: 'a' } }),
  )
  const condition = 'tool.input.amount > 1.0 || tool.input.to.iban == "x" || tool.input.ammount == 1.0'
  const { warnings, fields } = await simulated({ condition }, environmentId)
  assert.deepEqual(fields, [
    { field: 'tool.input.amount', recorded: 9, types: { double: 8, string: 1 } },
    { field: 'tool.input.to.iban', recorded: 8, types: { string: 8 } },
    { field: 'tool.input.ammount', recorded: 0, types: {} },
  ])
  assert.deepEqual(
    warnings.map(({ code, field, message }) => [code, field, message]),
    [
      ['other_type', 'tool.input.amount', 'tool.input.amount is string, not double, in 1 of the 9 calls that have it'],
      [
        'never_recorded',
        'tool.input.ammount',
        'None of the 10 recorded calls has tool.input.ammount; tool.input.amount is in 9 of 10',
      ],
      ['no_input', 'tool.input', '1 of 10 calls were recorded without their input'],
    ],
  )
})

test('the decisions of people are compared with those of the policy, on the tools that it is about', async () => {
  const { ask: request, decide } = approvalCalls(service)
  const ids: string[] = []
  for (const decision of ['APPROVED', 'REJECTED', 'REJECTED', 'REJECTED', null] as const) {
    const { body } = await request()
    ids.push(body.id)
    if (decision !== null) assert.equal((await decide(body.id, decision)).status, 200)
  }
  const [approved = '', rejected = '', small = '', ofOther = '', pending = ''] = ids
  const tool = `tool-${randomUUID()}`
  const asked = (approvalId: string, amount: number, toolName = tool) =>
    event({ eventType: 'TOOL_CALL', payload: { toolName, approvalId, input: { amount } } })
  const events = [
    asked(approved, 100),
    asked(rejected.toUpperCase(), 100),
    asked(small, 1),
    asked(ofOther, 1, `another-${tool}`),
    asked(pending, 100),
    asked(randomUUID(), 100),
    asked('no id', 100),
  ]
  assert.equal((await service.record(events)).body.success, true)
  const hits = { approved: 1, rejected: 1, expired: 0 }
  const others = { approved: 0, rejected: 1, expired: 0 }
  const approvalsOf = async (condition: string) => (await simulated({ condition, days: 1 })).approvals
  const isLarge = 'tool.input.amount > 50.0'
  // The condition names one tool, so rejected calls of other tools do not count.
  assert.deepEqual(await approvalsOf(`tool.name == "${tool}" && ${isLarge}`), { hits, others })
  // If a condition names no tool, it is compared with calls of the tools that it hits.
  const ofTools = `tool.name.endsWith("${tool}") && ${isLarge}`
  assert.deepEqual(await approvalsOf(ofTools), { hits, others })
  // If it hits nothing, it is compared with calls of the tool that it names.
  const none = { approved: 0, rejected: 0, expired: 0 }
  const all = { approved: 1, rejected: 2, expired: 0 }
  assert.deepEqual(await approvalsOf(`tool.name == "${tool}" && tool.input.amount > 500.0`), {
    hits: none,
    others: all,
  })
})

test('the usage of a run counts up to the call, over pages of events and concurrent runs', async () => {
  const at = Date.now() - DAY
  const llm = (runId: string, minute: number, cost: number) =>
    event({
      eventType: 'LLM_CALL',
      runId,
      timestamp: at + minute,
      payload: { cost, usage: { promptTokens: 60, completionTokens: 40 } },
    })
  const environmentId = await recorded(
    ...Array.from({ length: 700 }, (_, step) =>
      ['x', 'y'].flatMap((runId, index) => [
        llm(runId, 2 * step, 0.001 * (index + 1)),
        call('t', {}, { runId, timestamp: at + 2 * step + 1 }),
      ]),
    ).flat(),
  )
  // Before the call of step n, the run has n + 1 model calls and n tool calls.
  const hits = async (condition: string) => (await simulated({ condition }, environmentId)).hits
  assert.equal(await hits('run.toolCalls >= 690'), 20)
  assert.equal(await hits('run.totalTokens > 69000'), 20)
  assert.equal(await hits('run.cost > 0.6905'), 10 + 355)
  assert.equal(await hits('run.toolCalls == 0 && run.totalTokens == 100 && run.cost == 0.002'), 1)
})

test('the facts come from the call: agent, run, session, signals and the time', async () => {
  const at = Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth(), new Date().getUTCDate()) - 3 * DAY
  const environmentId = await recorded(
    event({
      eventType: 'TOOL_CALL',
      runId: 'r',
      sessionId: 's',
      agentId: 'i',
      agentName: 'n',
      timestamp: at + 13 * 60 * 60 * 1000,
      payload: { toolName: 't', riskSignals: ['leak', 7] },
    }),
    event({ eventType: 'TOOL_CALL', timestamp: at + 14 * 60 * 60 * 1000, payload: {} }),
  )
  const hits = async (condition: string) => (await simulated({ condition }, environmentId)).hits
  const facts = 'agent.id == "i" && agent.name == "n" && run.id == "r" && session.id == "s" && tool.name == "t"'
  assert.equal(await hits(facts), 1)
  assert.equal(await hits('risk.signals == ["leak"]'), 1)
  assert.equal(await hits('now.getHours() == 13 && now < timestamp("2100-01-01T00:00:00Z")'), 1)
  assert.equal(await hits('tool.name == "" && agent.id == "" && session.id == "" && size(tool.input) == 0'), 1)
})

test('only calls of the last days are scanned', async () => {
  const now = Date.now()
  const environmentId = await recorded(
    ...[0.5, 1.5, 6.5, 29.5].map((days) => call('t', {}, { timestamp: Math.round(now - days * DAY) })),
  )
  for (const [days, calls] of [
    [1, 1],
    [2, 2],
    [7, 3],
    [30, 4],
  ] as const) {
    const result = await simulated({ days }, environmentId)
    assert.equal(result.calls, calls)
    assert.equal(Date.parse(result.to) - Date.parse(result.from), days * DAY)
  }
})

test('a condition that does not compile, or days out of range, are refused', async () => {
  const answer = await ask({ condition: 'tool.name ==\n tool.nam' })
  assert.deepEqual(refusalOf(answer), [400, 'invalid_request'])
  const { errors } = answer.body as { errors: { path: string; message: string }[] }
  assert.deepEqual([errors[0]?.path, errors[0]?.message.startsWith('2:')], ['/condition', true])
  for (const wrong of [
    { days: 0 },
    { days: LIMITS.simulationDaysMax + 1 },
    { days: 1.5 },
    { days: undefined },
    { action: 'STOP' },
    { severity: 'X' },
    { condition: '' },
    { condition: 'true // \0' },
    { policyId: 'x' },
  ]) {
    assert.deepEqual(refusalOf(await ask(wrong)), [400, 'invalid_request'], JSON.stringify(wrong))
  }
})

test('a simulation can be cancelled while queued or running, and an ended one stays unchanged', async () => {
  const environmentId = await recorded(...Array.from({ length: 2000 }, () => call('t', { text: 'x'.repeat(200) })))
  const cancel = async (id: string, env = environmentId) =>
    service.operator(`${pathOf(env)}/${id}/cancel`, { method: 'POST' })
  const ids: string[] = []
  for (let count = 0; count < LIMITS.simulationsWaiting; count++) {
    ids.push(replyOf('createSimulation', await ask({}, environmentId)).id)
  }
  const statuses: string[] = []
  for (const id of ids) statuses.push(replyOf('cancelSimulation', await cancel(id)).status)
  // The first may have ended already; the last waited for the others.
  assert.equal(statuses.at(-1), 'CANCELLED')
  for (const id of ids) {
    const before = await ended(id, environmentId)
    assert.deepEqual(replyOf('cancelSimulation', await cancel(id)), before)
    assert.deepEqual(replyOf('cancelSimulation', await cancel(id.toUpperCase())), before)
    assert.deepEqual(await read(id.toUpperCase(), environmentId), before)
  }
  const { id } = replyOf('createSimulation', await ask({}, environmentId))
  assert.equal((await ended(id, environmentId)).status, 'DONE', 'the next one runs')
  for (const [wrong, env] of [
    [UNKNOWN_ID, environmentId],
    [ids[0] ?? '', service.environmentId],
    ['no-id', environmentId],
  ] as const) {
    assert.deepEqual(refusalOf(await cancel(wrong, env)), [404, 'not_found'])
    assert.deepEqual(refusalOf(await service.operator(`${pathOf(env)}/${wrong}`)), [404, 'not_found'])
  }
})

test('the number of waiting simulations is bounded', async () => {
  const environmentId = await recorded(...Array.from({ length: 5000 }, () => call('t', { text: 'x'.repeat(100) })))
  const answers = []
  for (let count = 0; count <= LIMITS.simulationsWaiting; count++) answers.push(await ask({}, environmentId))
  const last = answers.pop()
  assert.ok(answers.every(({ status }) => status === 202))
  assert.ok(last)
  // One may have ended already.
  if (last.status !== 202) assert.deepEqual(refusalOf(last), [409, 'conflict'])
  for (const { body } of answers) await ended((body as Simulation).id, environmentId)
})

test('simulations are listed newest first, page by page', async () => {
  const environmentId = await recorded(call('t', {}))
  const ids: string[] = []
  for (let count = 0; count < 3; count++) {
    const { id } = replyOf('createSimulation', await ask({}, environmentId))
    await ended(id, environmentId)
    ids.unshift(id)
  }
  const first = replyOf('listSimulations', await service.operator(`${pathOf(environmentId)}?limit=2`))
  const rest = replyOf('listSimulations', await service.operator(`${pathOf(environmentId)}?cursor=${first.nextCursor}`))
  assert.deepEqual(
    [...first.items, ...rest.items].map(({ id }) => id),
    ids,
  )
  assert.equal(rest.nextCursor, null)
  const foreign = `${pathOf()}?cursor=${first.nextCursor}`
  assert.deepEqual(refusalOf(await service.operator(foreign)), [400, 'invalid_cursor'])
})
