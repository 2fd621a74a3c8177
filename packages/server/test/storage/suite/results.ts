import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { NewEvent, PromptUse } from '../../../src/storage/events.ts'
import { latencyAt, bucketOf } from '../../../src/storage/sql/latency-hours.ts'
import type { UsageGroup, UsagePointRow } from '../../../src/storage/usage.ts'
import { sharedStorage, type OpenStorage } from './open.ts'
import { append, event, HOUR, llmCall, newId, NOON, outcome, runOf } from './sample.ts'

const [ONE, TWO] = [newId(), newId()]
const use = (versionId: string, problem: PromptUse['problem'] = null): Partial<NewEvent> => ({
  promptUse: { versionId, problem },
})

export function resultsSuite(open: OpenStorage) {
  describe('results', () => {
    const storage = sharedStorage(open)
    const results = (env: string, runs = 100) => storage().readVersionResults(env, [ONE, TWO], runs)

    async function points(env: string, by: UsageGroup, stepMs = HOUR, limit = 100): Promise<UsagePointRow[]> {
      const rows: UsagePointRow[] = []
      const window = { by, from: NOON - 24 * HOUR, to: NOON + 24 * HOUR, stepMs }
      for (let more = true; more;) {
        const page = await storage().readUsagePoints({ environmentId: env, workspaceId: newId() }, window, {
          limit,
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
      const length = { lengthP50: 100, lengthP95: 100, llm: null, tool: null }
      const ended = { completed: 0, failed: 1, cancelled: 0 }
      const counted = { errors: 1, blocked: 1, approvals: 1, totalTokens: 10, costNanos: 7 }
      const times = { firstAt: NOON - 9, lastAt: NOON }
      assert.deepEqual(await results(env), [
        { ...none, ...ended, ...length, ...times, ...counted, runs: 2, events: 5 },
        { ...none, ...ended, ...length, runs: 1, events: 1, costNanos: 0, firstAt: NOON, lastAt: NOON },
      ])
      assert.deepEqual(await results(newId()), [null, null])
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
      // Not a prompt of this workspace.
      assert.deepEqual(names(await points(env, 'promptVersion')), new Set([null]))
    })

    test('have percentiles of latency at most 9 % from the exact ones, by agent, model and prompt version', async () => {
      const env = newId()
      const latencies = Array.from({ length: 200 }, (_, n) => 3 + 1.07 ** n)
      const calls = latencies.map((latencyMs) => llmCall({ model: 'm' }, { latencyMs, ...use(ONE) }))
      const tools = [0, 0.4, 30].map((latencyMs) => event({ eventType: 'TOOL_CALL', latencyMs, ...use(ONE) }))
      // No call: the length of a step is not the latency of one.
      tools.push(
        event({ latencyMs: 60_000, ...use(ONE) }),
        event({ eventType: 'TOOL_CALL', latencyMs: 60_000, ...use(TWO) }),
      )
      for (let n = 0; n < 200; n += 50) await append(storage(), env, ...calls.slice(n, n + 50))
      await append(storage(), env, ...calls.slice(0, 50), ...tools)
      const [byAgent] = await points(env, 'agent')
      const byVersion = (await points(env, 'promptVersion')).find(({ key }) => key === ONE)
      const [result] = await storage().readVersionResults(env, [ONE], 10)
      const byModel = (await points(env, 'model')).find(({ name }) => name === 'm')
      for (const found of [byVersion, result]) {
        assert.deepEqual(found?.tool, { calls: 3, p50: 0, p95: latencyAt(bucketOf(30)) })
      }
      assert.equal(byAgent?.tool?.calls, 4)
      assert.equal(byModel?.tool, null)
      for (const llm of [byAgent?.llm, byModel?.llm, byVersion?.llm, result?.llm]) {
        assert.equal(llm?.calls, 200)
        for (const [found, exact] of [
          [llm.p50, latencies[99]],
          [llm.p95, latencies[189]],
        ] as const) {
          assert.ok(Math.abs(found / (exact ?? 0) - 1) <= 0.0906, `${found} for ${exact}`)
        }
      }
    })
  })
}
