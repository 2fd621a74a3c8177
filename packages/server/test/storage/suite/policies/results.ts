import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { NewEvent, PromptUse } from '../../../../src/storage/record/events.ts'
import {
  bucketOf,
  latencyAt,
  isUncosted,
  partsOf,
  readUncosted,
  type UncostedSum,
  type UsageGroup,
  type UsagePointRow,
  type UsageSort,
} from '../../../../src/storage/runs/usage.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { append, event, HOUR, llmCall, newId, NOON, outcome, runOf } from '../sample.ts'

const [ONE, TWO] = [newId(), newId()]
const use = (versionId: string, problem: PromptUse['problem'] = null): Partial<NewEvent> => ({
  promptUse: { versionId, problem },
})

const inOrder = (a: unknown, b: unknown) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)

export function resultsSuite(open: OpenStorage) {
  describe('results', () => {
    const storage = sharedStorage(open)
    const results = (env: string, runs = 100) => storage().readVersionResults(env, [ONE, TWO], runs)

    async function points(env: string, by: UsageGroup, stepMs = HOUR, limit = 100, sort?: UsageSort) {
      const rows: UsagePointRow[] = []
      const window = { by, from: NOON - 24 * HOUR, to: NOON + 24 * HOUR, stepMs }
      for (let more = true; more;) {
        const page = await storage().readUsagePoints({ environmentId: env, workspaceId: newId() }, window, {
          limit,
          sort,
          after: rows.at(-1) ?? null,
        })
        rows.push(...page.rows)
        more = page.more
      }
      return rows
    }

    test('of a prompt version are counted once, whatever is sent again', async () => {
      const env = newId()
      const first = [
        llmCall({ totalTokens: 10, costNanos: 7 }, { runId: 'a', ...use(ONE) }),
        event({ runId: 'a', ...use(ONE, 'error') }),
        event({ runId: 'a', ...use(ONE, 'approval') }),
        event({ runId: 'a', ...use(ONE, 'blocked'), time: NOON + 5 }),
        event({ runId: 'a', ...use(TWO) }),
        event({ runId: 'b', ...use(ONE), time: NOON - 9 }),
        event({ runId: 'c' }),
      ]
      await append(storage(), env, ...first)
      const end = outcome('FAILED', { runId: 'a', time: NOON + 100 })
      await append(storage(), env, ...first, ...first, end)
      await append(storage(), env, end, ...first)
      const none = { errors: 0, blocked: 0, approvals: 0, promptTokens: 0, completionTokens: 0, totalTokens: 0 }
      const length = { lengthP50: 100, lengthP95: 100, llm: null, tool: null, uncosted: [], scores: [] }
      const group = (runs: number, totalTokens: number, costNanos: number) => {
        return { runs, totalTokens, costNanos, uncosted: [] }
      }
      const ended = { completed: 0, failed: 1, cancelled: 0 }
      const counted = { errors: 1, blocked: 1, approvals: 1, totalTokens: 10, costNanos: 7 }
      const times = { firstAt: NOON - 9, lastAt: NOON }
      assert.deepEqual(await results(env), [
        {
          ...none,
          ...ended,
          ...length,
          ...times,
          ...counted,
          runs: 2,
          events: 5,
          groups: [group(1, 0, 0), group(1, 10, 7)],
        },
        {
          ...none,
          ...ended,
          ...length,
          runs: 1,
          events: 1,
          costNanos: 0,
          firstAt: NOON,
          lastAt: NOON,
          groups: [group(1, 0, 0)],
        },
      ])
      assert.deepEqual(await results(newId()), [null, null])
    })

    const tokens = { context: 0, ...partsOf(() => 0), input: 10 }

    test('of a prompt version have the calls without a cost that name it, of its newest runs, and usage has the same', async () => {
      const env = newId()
      const call = (runId: string, model: string, given: Partial<NewEvent>) =>
        llmCall({ model, uncosted: tokens }, { runId, ...given })
      const calls = [
        call('a', 'm', use(ONE)),
        call('a', 'm', use(ONE)),
        call('a', 'n', use(ONE)),
        call('a', 'm', use(TWO)),
        call('a', 'm', {}),
        llmCall({ costNanos: 5 }, { runId: 'a', ...use(ONE) }),
      ]
      // More models and versions than a run counts separately.
      for (let n = 0; n < 50; n++) calls.push(call('b', `model ${n}`, { ...use(TWO), time: NOON + 25 * HOUR }))
      for (let n = 0; n < 2; n++) await append(storage(), env, ...calls)
      await append(storage(), env, call('c', 'm', { ...use(ONE), time: NOON + 25 * HOUR }))
      const day = NOON - (NOON % (24 * HOUR))
      const shown = (found: UncostedSum[] | undefined) =>
        found?.map(({ at, model, calls: count, input }) => [(at - day) / HOUR, model, count, input]).toSorted(inOrder)
      const [one, two] = await results(env)
      const ofOne = [
        [0, 'm', 2, 20],
        [0, 'n', 1, 10],
        [24, 'm', 1, 10],
      ]
      assert.deepEqual(shown(one?.uncosted), ofOne)
      const ofTwo = shown(two?.uncosted)
      assert.equal(ofTwo?.length, 41)
      assert.deepEqual(
        [ofTwo[0], ofTwo[1]],
        [
          [0, 'm', 1, 10],
          [24, 'model 0', 1, 10],
        ],
      )
      const [newest] = await results(env, 1)
      assert.deepEqual(shown(newest?.uncosted), [[24, 'm', 1, 10]])
      const window = { by: 'promptVersion', from: NOON - HOUR, to: NOON + 26 * HOUR, stepMs: 27 * HOUR } as const
      const tenant = { environmentId: env, workspaceId: newId() }
      const { rows } = await storage().readUsagePoints(tenant, window, { limit: 10, after: null })
      for (const [version, expected] of [
        [ONE, ofOne],
        [TWO, ofTwo],
      ] as const) {
        assert.deepEqual(shown(rows.find(({ key }) => key === version)?.uncosted), expected)
      }
      const run = await runOf(storage(), env, 'b')
      assert.equal(readUncosted(run.uncosted).length, 41)
      assert.ok(isUncosted(run.uncosted))
    })

    test('of a prompt version sum up its newest runs, with percentiles of the length of those that ended', async () => {
      const env = newId()
      for (let n = 1; n <= 21; n++) {
        const runId = `run ${n}`
        await append(storage(), env, event({ runId, ...use(ONE) }), outcome('COMPLETED', { runId, time: NOON + n }))
      }
      await append(storage(), env, event({ runId: 'running', ...use(ONE) }))
      const [all] = await results(env)
      assert.deepEqual([all?.runs, all?.completed, all?.lengthP50, all?.lengthP95], [22, 21, 11, 20])
      const [some] = await results(env, 3)
      assert.deepEqual([some?.runs, some?.completed, some?.lengthP50, some?.lengthP95], [3, 2, 20, 21])
    })

    test('count each run by outcome in the hour it starts, also when an earlier event moves it', async () => {
      const env = newId()
      await append(storage(), env, event({ time: NOON }))
      await append(storage(), env, outcome('COMPLETED', { time: NOON + 3 * HOUR }), event({ runId: 'other' }))
      const { agentId } = await runOf(storage(), env)
      const counts = (rows: UsagePointRow[]) =>
        rows.map(({ step, runs, completed, failed, cancelled }) => [step, runs, completed, failed, cancelled])
      assert.deepEqual(counts(await points(env, 'agent')), [
        [24, 2, 1, 0, 0],
        [27, 0, 0, 0, 0],
      ])
      await append(storage(), env, event({ time: NOON - 1 }), outcome('FAILED', { runId: 'third' }))
      const rows = await points(env, 'agent')
      assert.deepEqual(counts(rows), [
        [23, 1, 1, 0, 0],
        [24, 2, 0, 1, 0],
        [27, 0, 0, 0, 0],
      ])
      assert.ok(rows.every(({ key, name }) => key === agentId && name === 'Support bot'))
      assert.deepEqual(counts(await points(env, 'agent', 24 * HOUR)), [
        [0, 1, 1, 0, 0],
        [1, 2, 0, 1, 0],
      ])
    })

    test('have pages of any size, by agent, by model and by prompt version', async () => {
      const env = newId()
      const events: NewEvent[] = []
      for (const agentId of ['x', 'y', 'z']) {
        for (const hour of [0, 1, 5]) {
          for (const model of ['m', 'n']) {
            const [time, runId] = [NOON + hour * HOUR, `${agentId} ${hour}`]
            events.push(llmCall({ model, totalTokens: 1 }, { agentId, time, runId, ...use(model === 'm' ? ONE : TWO) }))
          }
        }
      }
      await append(storage(), env, ...events)
      for (const by of ['agent', 'model', 'promptVersion'] as const) {
        const all = await points(env, by)
        assert.equal(all.length, by === 'promptVersion' ? 6 : 9, by)
        assert.equal(
          all.reduce((tokens, { totalTokens }) => tokens + totalTokens, 0),
          18,
        )
        for (const limit of [1, 2, 5]) assert.deepEqual(await points(env, by, HOUR, limit), all, by)
      }
      const names = (rows: UsagePointRow[]) => new Set(rows.map(({ name }) => name))
      assert.deepEqual(names(await points(env, 'model')), new Set(['', 'm', 'n']))
      // The prompt of another workspace has no row.
      assert.deepEqual(names(await points(env, 'promptVersion')), new Set([null]))
    })

    test('have percentiles of latency at most 1 % from the exact ones, by agent, model and prompt version', async () => {
      const env = newId()
      const latencies = Array.from({ length: 200 }, (_, n) => 3 + 1.07 ** n)
      const calls = latencies.map((latencyMs) => llmCall({ model: 'm' }, { latencyMs, ...use(ONE) }))
      const toolUse = { tool: 'pay', problem: null }
      const tools = [0, 0.4, 30].map((latencyMs) => event({ eventType: 'TOOL_CALL', toolUse, latencyMs, ...use(ONE) }))
      // A step's length does not count as the latency of a call.
      tools.push(
        event({ latencyMs: 60_000, ...use(ONE) }),
        event({ eventType: 'TOOL_CALL', toolUse, latencyMs: 60_000, ...use(TWO) }),
      )
      for (let n = 0; n < 200; n += 50) await append(storage(), env, ...calls.slice(n, n + 50))
      await append(storage(), env, ...calls.slice(0, 50), ...tools)
      const [byAgent] = await points(env, 'agent')
      const byVersion = (await points(env, 'promptVersion')).find(({ key }) => key === ONE)
      const [result] = await storage().readVersionResults(env, [ONE], 10)
      const byModel = (await points(env, 'model')).find(({ name }) => name === 'm')
      for (const found of [byVersion, result]) {
        assert.deepEqual(found?.tool, {
          calls: 3,
          p50: latencyAt(bucketOf(0.4)),
          p95: latencyAt(bucketOf(30)),
          former: 0,
        })
      }
      assert.equal(byAgent?.tool?.calls, 4)
      assert.equal(byModel?.tool, null)
      const noModel = (await points(env, 'model')).find(({ name }) => name === '')
      assert.deepEqual([noModel?.llm, noModel?.tool?.calls], [null, 4])
      for (const llm of [byAgent?.llm, byModel?.llm, byVersion?.llm, result?.llm]) {
        assert.equal(llm?.calls, 200)
        for (const [found, exact] of [
          [llm.p50, latencies[99]],
          [llm.p95, latencies[189]],
        ] as const) {
          assert.ok(Math.abs(found / (exact ?? 0) - 1) <= 0.009, `${found} for ${exact}`)
        }
      }
    })

    const tool = (name: string, given: Partial<NewEvent> = {}, problem: PromptUse['problem'] = null) =>
      event({ eventType: 'TOOL_CALL', toolUse: { tool: name, problem }, latencyMs: 20, ...given })
    const decision = (name: string, problem: PromptUse['problem']) =>
      tool(name, { eventType: 'POLICY_DECISION', latencyMs: 9_000 }, problem)

    test('count the calls of each tool once, with those that failed or were held back, and latencies', async () => {
      const env = newId()
      const calls = [
        tool('pay'),
        tool('pay', { latencyMs: 900 }, 'error'),
        tool('pay', { latencyMs: null, time: NOON + HOUR, agentId: 'other', runId: 'other' }),
        decision('pay', 'blocked'),
        decision('never run', 'approval'),
        tool('', { time: NOON + HOUR }),
        event({ latencyMs: 5 }),
      ]
      await append(storage(), env, ...calls, calls[0]!)
      await append(storage(), env, ...calls)
      const shown = (rows: UsagePointRow[]) =>
        rows
          .map(({ step, name, events, calls: of, tool: latency, runs }) => [
            step,
            name,
            events,
            of,
            latency?.calls,
            runs,
          ])
          .toSorted(inOrder)
      const none = { errors: 0, blocked: 0, approvals: 0 }
      assert.deepEqual(shown(await points(env, 'tool')), [
        [24, 'never run', 0, { ...none, approvals: 1 }, undefined, 0],
        [24, 'pay', 2, { ...none, errors: 1, blocked: 1 }, 2, 0],
        [25, '', 1, none, 1, 0],
        [25, 'pay', 1, none, undefined, 0],
      ])
      const pay = (await points(env, 'tool', 48 * HOUR)).find(({ name }) => name === 'pay')
      assert.deepEqual([pay?.events, pay?.llm], [3, null])
      assert.deepEqual(pay?.tool, { calls: 2, p50: latencyAt(bucketOf(20)), p95: latencyAt(bucketOf(900)), former: 0 })
    })

    test('bound the tools of an environment at 1,000; later ones share the bucket "other"', async () => {
      const env = newId()
      for (let n = 0; n < 1_002; n += 501) {
        await append(storage(), env, ...Array.from({ length: 501 }, (_, at) => tool(`tool ${n + at}`)))
      }
      await append(storage(), env, tool('tool 0'), tool('tool 1001'))
      const rows = await points(env, 'tool', HOUR, 1_500)
      assert.equal(rows.length, 1_001)
      const most = rows.filter(({ events }) => events > 1).map(({ name, events }) => [name, events])
      assert.deepEqual(most.toSorted(inOrder), [
        ['other', 3],
        ['tool 0', 2],
      ])
    })

    test('sum up the runs of each session, with their calls without a cost; the greatest first, page by page', async () => {
      const env = newId()
      const call = (runId: string, sessionId: string | null, costNanos: number, given: Partial<NewEvent> = {}) =>
        llmCall(
          { totalTokens: 10, costNanos, uncosted: costNanos === 0 ? tokens : null },
          { runId, sessionId, ...given },
        )
      const long = 's'.repeat(1_024)
      await append(
        storage(),
        env,
        call('a', 'one', 5),
        call('b', 'one', 0, { time: NOON + 2 * HOUR }),
        call('b', 'one', 0, { time: NOON + 2 * HOUR }),
        call('c', long, 9),
        outcome('FAILED', { runId: 'c', sessionId: 'not its session' }),
        call('d', 'cheap', 0),
        call('e', null, 100),
        call('f', 'before', 100, { time: NOON - 48 * HOUR }),
      )
      const all = await points(env, 'session', 48 * HOUR, 100, 'cost')
      const shown = all.map(({ name, events, runs, failed, totalTokens, costNanos, uncosted }) => {
        return [name, events, runs, failed, totalTokens, costNanos, uncosted.map(({ calls, input }) => [calls, input])]
      })
      assert.deepEqual(shown, [
        [long, 2, 1, 1, 10, 9, []],
        ['one', 3, 2, 0, 30, 5, [[2, 20]]],
        ['cheap', 1, 1, 0, 10, 0, [[1, 10]]],
      ])
      const names = async (sort: UsageSort | undefined, limit = 100) =>
        (await points(env, 'session', 48 * HOUR, limit, sort)).map(({ name }) => name)
      for (const sort of ['cost', 'tokens', 'events', 'runs', 'failed', undefined] as const) {
        for (const limit of [1, 2]) assert.deepEqual(await names(sort, limit), await names(sort), `${sort}`)
      }
      assert.deepEqual((await names('runs'))[0], 'one')
      assert.deepEqual((await names('failed'))[0], long)
      const hours = await points(env, 'session', HOUR)
      const uncosted = hours.flatMap(({ name, step, uncosted: sums }) => sums.map(({ at }) => [name, step, at]))
      assert.deepEqual(uncosted.toSorted(inOrder), [
        ['cheap', 24, NOON],
        ['one', 26, NOON + 2 * HOUR],
      ])
      assert.deepEqual(await points(newId(), 'session', HOUR), [])
    })
  })
}
