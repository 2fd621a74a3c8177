import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { SimulationResult } from '@tacho/contract/policies/simulation.ts'
import type { CallPlace, NewSimulationRow, ToolCallRow } from '../../../../src/storage/policies/policies.ts'
import { auditEntry, newHome } from './configuration-sample.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { append, event, llmCall, newId, NOON, runOf } from '../sample.ts'

const bounds = { waiting: 2, kept: 3 }
let made = 0

function simulation(environmentId: string, given: Partial<NewSimulationRow> = {}): NewSimulationRow {
  const id = `01900000-0000-7000-8000-${String(++made).padStart(12, '0')}`
  const policy = {
    condition: 'true',
    severity: 'LOW' as const,
    action: 'WARN' as const,
    onError: null,
    toolLabels: null,
    flow: null,
    days: 7,
  }
  return { id, environmentId, ...policy, createdAt: NOON, createdBy: 'ada', ...given }
}

const result = { calls: 1 } as SimulationResult

export function simulationsSuite(open: OpenStorage) {
  describe('simulations', () => {
    const storage = sharedStorage(open)
    const claim = () =>
      storage().claimWork({ kind: 'simulate', owner: 'o', now: NOON, leaseUntil: NOON + 1, limit: 1000 })
    const queued = async (id: string) => (await claim()).some(({ subjectId }) => subjectId === id)

    test('a simulation is queued with its work, runs, and ends once', async () => {
      const { workspaceId, development } = await newHome(storage())
      const row = simulation(development)
      const { id } = row
      assert.equal(await storage().createSimulation(row, bounds, [auditEntry(workspaceId)]), 'created')
      const waiting = { ...row, status: 'QUEUED', endedAt: null, scanned: 0, total: null, error: null, result: null }
      assert.deepEqual(await storage().findSimulation(development, id), waiting)
      assert.equal((await storage().listAudit(workspaceId, { limit: 9, after: null })).rows.length, 1)
      assert.equal(await queued(id), true)
      assert.equal(await storage().reportSimulation(development, id, { scanned: 5, total: 9 }), true)
      assert.deepEqual(await storage().findSimulation(development, id), {
        ...waiting,
        status: 'RUNNING',
        scanned: 5,
        total: 9,
      })
      await storage().endSimulation(development, id, { at: NOON + 1, status: 'DONE', scanned: 8, result })
      const done = { ...waiting, status: 'DONE', endedAt: NOON + 1, scanned: 8, total: 8, result }
      assert.deepEqual(await storage().findSimulation(development, id), done)
      await storage().endSimulation(development, id, { at: NOON + 2, status: 'FAILED', error: 'x' })
      assert.equal(await storage().reportSimulation(development, id, { scanned: 9, total: 9 }), false)
      assert.deepEqual(
        await storage().cancelSimulation(development, id, NOON + 3, [auditEntry(workspaceId)]),
        done,
        'what has ended stays as it is',
      )
      assert.equal((await storage().listAudit(workspaceId, { limit: 9, after: null })).rows.length, 1)
      assert.equal(
        (
          await storage().claimWork({ kind: 'simulate', owner: 'p', now: NOON + 9, leaseUntil: NOON + 10, limit: 1000 })
        ).some(({ subjectId }) => subjectId === id),
        false,
      )
    })

    test('a cancelled simulation stops, and its work is deleted', async () => {
      const { workspaceId, development, production } = await newHome(storage())
      const row = simulation(development)
      await storage().createSimulation(row, bounds, [])
      assert.equal(await storage().cancelSimulation(production, row.id, NOON, []), null)
      assert.equal(await storage().cancelSimulation(development, newId(), NOON, []), null)
      const cancelled = await storage().cancelSimulation(development, row.id, NOON + 1, [auditEntry(workspaceId)])
      assert.deepEqual([cancelled?.status, cancelled?.endedAt], ['CANCELLED', NOON + 1])
      assert.equal((await storage().listAudit(workspaceId, { limit: 9, after: null })).rows.length, 1)
      assert.equal(await storage().reportSimulation(development, row.id, { scanned: 1, total: 1 }), false)
      await storage().endSimulation(development, row.id, { at: NOON + 2, status: 'DONE', scanned: 1, result })
      assert.deepEqual(await storage().findSimulation(development, row.id), cancelled)
      assert.equal(await queued(row.id), false)
    })

    test('the number of waiting simulations is limited, and so is the number of kept results', async () => {
      const { development, production } = await newHome(storage())
      const create = async (environmentId = development) => {
        const row = simulation(environmentId)
        return { id: row.id, outcome: await storage().createSimulation(row, bounds, []) }
      }
      const end = (id: string) => storage().endSimulation(development, id, { at: NOON, status: 'FAILED', error: 'x' })
      const [one, two] = [await create(), await create()]
      assert.equal((await create()).outcome, 'too_many')
      assert.equal((await create(production)).outcome, 'created')
      await end(two.id)
      const made = [one.id, two.id]
      for (let count = 0; count < 4; count++) {
        const { id, outcome } = await create()
        assert.equal(outcome, 'created')
        await end(id)
        made.push(id)
      }
      const kept = (await storage().listSimulations(development, { limit: 10, after: null })).rows
      // The first simulation has not ended, so it is kept in addition to the limit.
      assert.deepEqual(
        kept.map(({ id }) => id),
        [...made.slice(-3).toReversed(), one.id],
      )
      const page = (await storage().listSimulations(development, { limit: 2, after: made.at(-1) ?? null })).rows
      assert.deepEqual(
        page.map(({ id }) => id),
        made.slice(-3, -1).toReversed(),
      )
    })

    test('the limit of waiting simulations holds when they are created at once', async () => {
      const { development } = await newHome(storage())
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, () => storage().createSimulation(simulation(development), bounds, [])),
      )
      assert.equal(outcomes.filter((outcome) => outcome === 'created').length, 2)
    })

    test('tool calls of all runs come in time order, each once, with any page size', async () => {
      const env = newId()
      const calls = Array.from({ length: 12 }, (_, index) =>
        event({
          eventType: 'TOOL_CALL',
          runId: `run ${index % 3}`,
          // Several events have the same time, in one run and in different runs.
          time: NOON + Math.floor(index / 5),
          payload: JSON.stringify({ toolName: 'x', pad: 'y'.repeat(index * 10) }),
        }),
      )
      await append(storage(), env, ...calls, event({ time: NOON }), llmCall({}, { time: NOON + 1 }))
      await append(storage(), newId(), event({ eventType: 'TOOL_CALL' }))
      const walk = async (limit: number, pageBytes: number) => {
        const seen: ToolCallRow[] = []
        let after: CallPlace | null = null
        for (;;) {
          const page = { kind: 'ran', from: NOON, to: NOON + 2, limit, pageBytes, after } as const
          const rows: ToolCallRow[] = await storage().listToolCalls(env, page)
          const last = rows.at(-1)
          if (last === undefined) return seen
          assert.ok(rows.length <= limit)
          seen.push(...rows)
          after = { time: last.time, run: last.run, seq: last.seq }
        }
      }
      const whole = await walk(100, 1_000_000)
      assert.deepEqual(
        new Set(whole.map(({ eventId }) => eventId)),
        new Set(calls.slice(0, 10).map(({ eventId }) => eventId)),
      )
      assert.equal(whole.length, 10)
      assert.ok(whole.every(({ time }, index) => time >= (whole[index - 1]?.time ?? 0)))
      for (const [limit, pageBytes] of [
        [1, 1_000_000],
        [3, 1_000_000],
        [100, 200],
        [100, 1],
      ] as const) {
        assert.deepEqual(await walk(limit, pageBytes), whole)
      }
      const [first] = whole
      const sent = calls.find(({ eventId }) => eventId === first?.eventId)
      const run = await runOf(storage(), env, sent?.runId)
      assert.deepEqual(first, {
        time: sent?.time,
        run: run.id,
        seq: first?.seq,
        runId: sent?.runId,
        eventId: sent?.eventId,
        spanId: null,
        sessionId: null,
        agentId: null,
        agentName: 'Support bot',
        payload: sent?.payload,
      })
      assert.equal(await storage().countToolCalls(env, 'ran', NOON, NOON + 2), 10)
      assert.equal(await storage().countToolCalls(env, 'ran', NOON + 1, NOON + 2), 5)
      assert.equal(await storage().countToolCalls(env, 'ran', NOON, NOON), 0)
      assert.equal(await storage().countToolCalls(newId(), 'ran', NOON, NOON + 2), 0)
    })

    test('decisions that held a call back or blocked it are calls of another kind', async () => {
      const env = newId()
      const decision = (action: string, problem: 'blocked' | 'approval' | null) =>
        event({ eventType: 'POLICY_DECISION', spanId: action, toolUse: { tool: 'x', problem }, payload: '{}' })
      const [blocked, asked] = [decision('BLOCK', 'blocked'), decision('REQUIRE_APPROVAL', 'approval')]
      await append(
        storage(),
        env,
        blocked,
        asked,
        decision('WARN', null),
        decision('ALLOW', null),
        event({ eventType: 'TOOL_CALL' }),
      )
      const page = { kind: 'held', from: NOON, to: NOON + 1, limit: 9, pageBytes: 999, after: null } as const
      const rows = await storage().listToolCalls(env, page)
      assert.deepEqual(
        rows.map(({ eventId, spanId }) => [eventId, spanId]),
        [
          [blocked.eventId, 'BLOCK'],
          [asked.eventId, 'REQUIRE_APPROVAL'],
        ],
      )
      assert.equal(await storage().countToolCalls(env, 'held', NOON, NOON + 1), 2)
      assert.equal(await storage().countToolCalls(env, 'held', NOON + 1, NOON + 2), 0)
    })

    test('the steps of a run are its model and tool calls before a position, page by page, tool calls without payload', async () => {
      const env = newId()
      const sent = [
        event({ eventType: 'TOOL_CALL', payload: '{"a":1}' }),
        llmCall({}, { payload: '{"b":2}' }),
        event({ time: NOON + 1 }),
        llmCall({}, { time: NOON + 1, payload: '{"c":3}' }),
        event({ eventType: 'TOOL_CALL', time: NOON + 2 }),
      ]
      await append(storage(), env, ...sent, llmCall({}, { runId: 'another' }))
      const { id: run } = await runOf(storage(), env)
      const calls = await storage().listToolCalls(env, {
        kind: 'ran',
        from: NOON + 2,
        to: NOON + 3,
        limit: 1,
        pageBytes: 9,
        after: null,
      })
      const [last] = calls
      assert.ok(last)
      const before = { time: last.time, seq: last.seq }
      const all = await storage().listRunSteps(env, run, { limit: 9, pageBytes: 999, after: null, before })
      assert.deepEqual(
        all.map(({ time, payload }) => [time, payload]),
        [
          [NOON, null],
          [NOON, '{"b":2}'],
          [NOON + 1, '{"c":3}'],
        ],
      )
      const [first, second] = all
      assert.ok(first && second)
      const next = { limit: 9, pageBytes: 1, before, after: { time: first.time, seq: first.seq } }
      assert.deepEqual(await storage().listRunSteps(env, run, next), [second], 'at least one')
      const none = { limit: 9, pageBytes: 999, after: null, before: { time: first.time, seq: first.seq } }
      assert.deepEqual(await storage().listRunSteps(env, run, none), [])
      assert.deepEqual(await storage().listRunSteps(newId(), run, { ...none, before }), [])
    })

    test('the runs with calls in a time, and what each did and read before its end', async () => {
      const env = newId()
      const toolUse = { tool: 'pay', problem: 'blocked' } as const
      await append(
        storage(),
        env,
        event({ runId: 'one', eventType: 'USER_INPUT', payload: '{"text":"hi"}' }),
        event({ runId: 'one', eventType: 'TOOL_CALL', time: NOON + 1, payload: '{"a":1}' }),
        event({ runId: 'one', eventType: 'AGENT_STEP', time: NOON + 2 }),
        event({ runId: 'one', eventType: 'TOOL_CALL', time: NOON + 9 }),
        event({ runId: 'two', eventType: 'POLICY_DECISION', time: NOON + 3, toolUse }),
        event({ runId: 'two', eventType: 'POLICY_DECISION', time: NOON + 4, label: 'ALLOW pay' }),
        event({ runId: 'three', eventType: 'USER_INPUT', time: NOON + 3 }),
      )
      const runs = await storage().listCallingRuns(env, NOON, NOON + 5, 9)
      const ids = await Promise.all(['two', 'one'].map(async (id) => (await storage().findRun(env, id))?.id))
      assert.deepEqual(
        runs.map(({ run, calls }) => [run, calls]),
        ids.map((id) => [id, 1]),
      )
      assert.equal((await storage().listCallingRuns(env, NOON, NOON + 5, 1)).length, 1)
      assert.deepEqual(await storage().listCallingRuns(newId(), NOON, NOON + 5, 9), [])
      const page = { limit: 9, pageBytes: 9_999, after: null, before: { time: NOON + 5, seq: 0 } }
      const [two = '', one = ''] = ids
      const past = await storage().listRunPast(env, one, page)
      assert.deepEqual(
        past.map(({ run, runId, eventType, payload, isHeld }) => [run, runId, eventType, payload, isHeld]),
        [
          [one, 'one', 'USER_INPUT', '{"text":"hi"}', false],
          [one, 'one', 'TOOL_CALL', '{"a":1}', false],
        ],
      )
      const after = { time: past[0]?.time ?? 0, seq: past[0]?.seq ?? 0 }
      assert.deepEqual(await storage().listRunPast(env, one, { ...page, after }), past.slice(1))
      assert.deepEqual(
        (await storage().listRunPast(env, two, page)).map(({ isHeld }) => isHeld),
        [true, false],
      )
      assert.deepEqual(await storage().listRunPast(newId(), one, page), [])
    })
  })
}
