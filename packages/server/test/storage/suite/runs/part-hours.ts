/** Windows that begin or end inside an hour, compared with sums that the test computes from the same events. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { partsOf } from '../../../../src/storage/runs/usage.ts'
import type { UsageGroup, UsagePointRow } from '../../../../src/storage/runs/usage.ts'
import type { NewEvent } from '../../../../src/storage/record/events.ts'
import { decidedHere, sharedStorage, type OpenStorage } from '../open.ts'
import { append, event, HOUR, llmCall, newEnvironment, newId, NOON, outcome } from '../sample.ts'

const VERSION = newId()
const GROUPS = ['agent', 'model', 'tool', 'promptVersion', 'session'] as const

/** The same numbers in each run of the tests. */
function randomNumbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * below)
  }
}

function someEvents(random: (below: number) => number): NewEvent[] {
  return Array.from({ length: 40 }, (_, run) => run).flatMap((run) => {
    const start = NOON + random(4 * HOUR)
    const of = { runId: `run ${run}`, agentId: `agent ${run % 3}`, sessionId: `session ${run}` }
    const time = () => start + random(HOUR)
    const uncosted = { context: 0, ...partsOf((at) => (at === 0 ? 100 : 0)) }
    const promptUse = { versionId: VERSION, problem: null }
    const call = { promptTokens: 100, completionTokens: 20 + run, totalTokens: 120 + run }
    return [
      event({ ...of, time: start }),
      llmCall({ ...call, costNanos: 1_000 * run }, { ...of, time: time(), latencyMs: 10 * run, promptUse }),
      llmCall({ ...call, model: 'model-b', uncosted }, { ...of, time: time() }),
      event({ ...of, time: time(), eventType: 'LLM_CALL' }),
      event({ ...of, time: time(), eventType: 'TOOL_CALL', toolUse: { tool: 'pay', problem: 'error' }, latencyMs: 5 }),
      event({ ...of, time: time(), eventType: 'POLICY_DECISION', toolUse: { tool: 'pay', problem: 'blocked' } }),
      ...(run % 4 === 0 ? [] : [outcome(run % 2 === 0 ? 'FAILED' : 'COMPLETED', { ...of, time: time() })]),
    ]
  })
}

const COUNTS = [
  'events',
  'runs',
  'completed',
  'failed',
  'promptTokens',
  'completionTokens',
  'totalTokens',
  'costNanos',
] as const

/** Sums by key, without percentiles, which cannot be added. */
function sumsOf(rows: readonly UsagePointRow[]): Record<string, unknown> {
  const sums = new Map<string, Record<string, number>>()
  for (const row of rows) {
    const sum = sums.get(row.key) ?? {}
    const add = (name: string, count = 0) => (sum[name] = (sum[name] ?? 0) + count)
    for (const name of COUNTS) add(name, row[name])
    for (const name of ['errors', 'blocked'] as const) add(name, row.calls?.[name])
    add('llm', row.llm?.calls)
    add('tool', row.tool?.calls)
    for (const { calls, input } of row.uncosted) {
      add('uncosted', calls)
      add('input', input)
    }
    sums.set(row.key, sum)
  }
  return Object.fromEntries([...sums].toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

export function partHoursSuite(open: OpenStorage) {
  describe('usage of parts of hours', () => {
    const storage = sharedStorage(open)

    async function sample() {
      const environmentId = await newEnvironment(storage())
      const environment = await storage().findEnvironment(environmentId)
      const events = someEvents(randomNumbers(7))
      for (let n = 0; n < events.length; n += 100) await append(storage(), environmentId, ...events.slice(n, n + 100))
      const tenant = { environmentId, workspaceId: environment!.workspaceId }
      async function read(by: UsageGroup, from: number, to: number, stepMs = to - from) {
        const rows: UsagePointRow[] = []
        for (let more = true; more;) {
          const page = { limit: 7, after: rows.at(-1) ?? null }
          const found = await storage().readUsagePoints(tenant, { by, from, to, stepMs }, page)
          rows.push(...found.rows)
          more = found.more
        }
        return rows
      }
      return { environmentId, events, read }
    }

    test('adjoining windows add up to the whole, by everything, wherever they are cut', async () => {
      const { read } = await sample()
      const random = randomNumbers(42)
      for (let cuts = 0; cuts < 3; cuts++) {
        const [from = 0, middle = 0, to = 0] = [0, 0, 0].map(() => NOON + random(5 * HOUR)).toSorted((a, b) => a - b)
        for (const by of GROUPS) {
          const whole = sumsOf(await read(by, from, to))
          const parts = [...(await read(by, from, middle)), ...(await read(by, middle, to))]
          assert.deepEqual(sumsOf(parts), whole, `${by} ${from} ${middle} ${to}`)
          const stepMs = 1_000_007
          assert.deepEqual(sumsOf(await read(by, from, to, stepMs)), whole, `${by} in steps`)
        }
      }
    })

    test('a window counts exactly the events and the starts of runs inside of it', async () => {
      const { environmentId, events, read } = await sample()
      const random = randomNumbers(3)
      const starts = Map.groupBy(events, ({ runId }) => runId)
      for (let windows = 0; windows < 10; windows++) {
        const from = NOON + random(3 * HOUR)
        const to = from + random(2 * HOUR)
        const inside = events.filter(({ time }) => time >= from && time < to)
        const runs = [...starts.values()].filter((of) => {
          const start = Math.min(...of.map(({ time }) => time))
          return start >= from && start < to
        })
        const total = (count: (one: NewEvent) => number) => inside.reduce((sum, one) => sum + count(one), 0)
        const found = await read('agent', from, to)
        const sum = (count: (row: UsagePointRow) => number) => found.reduce((all, row) => all + count(row), 0)
        assert.deepEqual(
          {
            events: sum((row) => row.events),
            runs: sum((row) => row.runs),
            failed: sum((row) => row.failed),
            prompt: sum((row) => row.promptTokens),
            tokens: sum((row) => row.totalTokens),
            cost: sum((row) => row.costNanos),
            uncosted: sum((row) => row.uncosted.reduce((calls, one) => calls + one.calls, 0)),
            tools: sum((row) => row.tool?.calls ?? 0),
          },
          {
            events: inside.length,
            runs: runs.length,
            failed: runs.filter((of) => of.some((one) => one.outcome === 'FAILED')).length,
            prompt: total(({ usage }) => usage?.promptTokens ?? 0),
            tokens: total(({ usage }) => usage?.totalTokens ?? 0),
            cost: total(({ usage }) => usage?.costNanos ?? 0),
            uncosted: total(({ usage }) => (usage?.uncosted ? 1 : 0)),
            tools: total(({ eventType }) => (eventType === 'TOOL_CALL' ? 1 : 0)),
          },
        )
        const hours = await storage().readUsage(environmentId, from, to, { limit: 100, after: null })
        assert.equal(
          hours.rows.reduce((all, row) => all + row.events, 0),
          inside.length,
        )
        const sums = await storage().sumUncosted(environmentId, { from, to, agentId: null })
        assert.equal(
          sums.reduce((calls, one) => calls + one.calls, 0),
          total(({ usage }) => (usage?.uncosted ? 1 : 0)),
        )
      }
    })

    test(
      'an hour of more events than are counted one by one counts where it begins, and windows still add up',
      decidedHere(open),
      async () => {
        const environmentId = await newEnvironment(storage())
        const workspaceId = (await storage().findEnvironment(environmentId))!.workspaceId
        const most = LIMITS.usagePartEvents
        const all = Array.from({ length: most + 1 }, (_, n) =>
          event({ time: NOON + Math.floor((n * HOUR) / (most + 2)) }),
        )
        for (let n = 0; n < all.length; n += 1_000) await append(storage(), environmentId, ...all.slice(n, n + 1_000))
        const count = async (from: number, to: number) => {
          const window = { by: 'agent', from, to, stepMs: to - from } as const
          const { rows } = await storage().readUsagePoints({ environmentId, workspaceId }, window, {
            limit: 9,
            after: null,
          })
          return rows.reduce((sum, { events }) => sum + events, 0)
        }
        const middle = NOON + HOUR / 2
        assert.deepEqual(
          [await count(NOON, middle), await count(middle, NOON + HOUR), await count(NOON, NOON + HOUR)],
          [most + 1, 0, most + 1],
        )
      },
    )
  })
}
