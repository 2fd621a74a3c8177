import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { NewEvent } from '../../../../src/storage/record/events.ts'
import type { UsageHourRow } from '../../../../src/storage/runs/runs.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { append, event, HOUR, llmCall, newId, NOON, outcome, runOf } from '../sample.ts'

const MAX = Number.MAX_SAFE_INTEGER

export function usageSuite(open: OpenStorage) {
  describe('usage by hour', () => {
    const storage = sharedStorage(open)
    async function read(env: string, from = 0, to = 2 * NOON, limit = 100): Promise<UsageHourRow[]> {
      const rows: UsageHourRow[] = []
      for (let more = true; more;) {
        const page = await storage().readUsage(env, from, to, { limit, after: rows.at(-1) ?? null })
        assert.ok(page.rows.length <= limit)
        rows.push(...page.rows)
        more = page.more
      }
      return rows
    }

    const models = (rows: UsageHourRow[]) => rows.map(({ hour, model, events }) => [hour, model, events])

    test('counts each stored event once, in the hour it happened, with its model', async () => {
      const env = newId()
      const call = llmCall({ promptTokens: 1, completionTokens: 2, totalTokens: 3, costNanos: 4 })
      await append(storage(), env, call, call, event(), { ...call, eventId: newId(), time: NOON + HOUR - 1 })
      await append(storage(), env, call, outcome('COMPLETED'), { ...call, eventId: newId(), time: NOON + HOUR })
      const { agentId, agentName } = await runOf(storage(), env)
      const none = { promptTokens: 0, completionTokens: 0, totalTokens: 0, costNanos: 0, uncosted: [] }
      const sums = (times: number) => ({
        promptTokens: times,
        completionTokens: 2 * times,
        totalTokens: 3 * times,
        costNanos: 4 * times,
        uncosted: [],
      })
      const agent = { agentId, agentName }
      const hours = (await read(env)).map(({ modelKey: _, ...hour }) => hour)
      assert.deepEqual(hours, [
        { hour: NOON, ...agent, model: '', events: 2, ...none },
        { hour: NOON, ...agent, model: 'model-a', events: 2, ...sums(2) },
        { hour: NOON + HOUR, ...agent, model: 'model-a', events: 1, ...sums(1) },
      ])
    })

    test('belongs to the agent of the run, whichever agent an event names, under that agent’s newest name', async () => {
      const env = newId()
      await append(storage(), env, event({ agentId: 'a', agentName: 'old' }), event({ agentId: 'b' }))
      await append(storage(), env, event({ agentId: 'a', agentName: 'new', time: NOON + 1 }))
      const rows = await read(env)
      assert.deepEqual(
        rows.map(({ agentName, events }) => [agentName, events]),
        [['new', 3]],
      )
    })

    test('is ordered by hour, agent and model key, ends before the end of the window, and has pages of any size', async () => {
      const env = newId()
      const events: NewEvent[] = []
      for (const hour of [2, 0, 1, 3]) {
        for (const agentId of ['x', 'y']) {
          for (const model of ['b', 'a', 'B']) {
            events.push(llmCall({ model }, { runId: agentId, agentId, time: NOON + hour * HOUR + 7 }))
          }
        }
      }
      await append(storage(), env, ...events)
      const rows = await read(env, NOON + HOUR, NOON + 3 * HOUR)
      assert.equal(rows.length, 12)
      const place = ({ hour, agentId, modelKey }: UsageHourRow) => `${hour} ${agentId} ${modelKey}`
      for (const limit of [1, 5, 11, 12]) assert.deepEqual(await read(env, NOON + HOUR, NOON + 3 * HOUR, limit), rows)
      const last = { limit: 12, after: null }
      assert.equal((await storage().readUsage(env, NOON + HOUR, NOON + 3 * HOUR, last)).more, false)
      assert.deepEqual(rows.map(place), rows.map(place).toSorted())
      assert.deepEqual([...new Set(rows.map(({ hour }) => hour))], [NOON + HOUR, NOON + 2 * HOUR])
    })

    test('ends a page at its byte limit, also when agent names are long', async () => {
      const env = newId()
      const agentName = 'n'.repeat(300_000)
      for (let n = 0; n < 8; n++) await append(storage(), env, event({ runId: `r${n}`, agentId: `a${n}`, agentName }))
      const page = await storage().readUsage(env, 0, 2 * NOON, { limit: 100, after: null })
      assert.deepEqual([page.rows.length, page.more], [3, true])
      assert.equal((await read(env)).length, 8)
    })

    test('contains one environment only', async () => {
      const env = newId()
      await append(storage(), env, event())
      assert.deepEqual(await read(newId()), [])
    })

    test('has sums that saturate at the largest exact integer', async () => {
      const env = newId()
      const most = { promptTokens: MAX, completionTokens: MAX - 1, totalTokens: 1, costNanos: MAX }
      for (let n = 0; n < 2; n++) await append(storage(), env, llmCall(most), llmCall(most))
      const [row] = await read(env)
      assert.ok(row)
      assert.deepEqual([row.promptTokens, row.completionTokens, row.totalTokens, row.costNanos], [MAX, MAX, 4, MAX])
    })

    test('creates no bucket for a call without a model', async () => {
      const env = newId()
      await append(storage(), env, llmCall({ model: '', promptTokens: 5 }), event())
      assert.deepEqual(
        (await read(env)).map(({ model, events, promptTokens }) => [model, events, promptTokens]),
        [['', 2, 5]],
      )
    })

    test('bounds the models of an environment at 1,000; later ones share the bucket "other"', async () => {
      const env = newId()
      const calls = Array.from({ length: 1002 }, (_, n) => llmCall({ model: `model ${n}` }))
      for (let n = 0; n < calls.length; n += 100) await append(storage(), env, ...calls.slice(n, n + 100))
      await append(storage(), env, llmCall({ model: 'model 0' }), llmCall({ model: 'model 1001' }))
      const rows = models(await read(env))
      assert.equal(rows.length, 1001)
      assert.deepEqual(
        rows.filter(([, model]) => model === 'model 0' || model === 'other'),
        [
          [NOON, 'model 0', 2],
          [NOON, 'other', 3],
        ],
      )
    })

    test('accepts model names of any length', async () => {
      const env = newId()
      const model = '😀'.repeat(10_000)
      await append(storage(), env, llmCall({ model }))
      assert.equal((await read(env))[0]?.model, model)
    })
  })
}
