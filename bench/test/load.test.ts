import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import type { EventInput } from '@tacho/contract/record/event.ts'
import { rowMaker } from '../src/bare/recording.ts'
import { bodyWriter } from '../src/load/bodies.ts'
import { BATCH_EVENTS, EVENT_BYTES } from '../src/load/events.ts'
import { longRunsOf, newPlot, runIdOf, SHAPES, variableOf } from '../src/load/shapes.ts'
import { ownMs, watchOthers } from '../src/machine.ts'
import { row } from '../src/result.ts'
import { spreadOf, timesOf } from '../src/stats.ts'

for (const shape of SHAPES) {
  test(`${shape}: every request has new events of one size, and the bare driver gets the same rows`, () => {
    const plot = { ...newPlot(shape), history: { from: Date.now() - 86_400_000, perRequestMs: 1234.5 } }
    const [bodyOf, rowsOf] = [bodyWriter(plot), rowMaker(plot)]
    const ids = new Set<string>()
    for (const n of [0, 1, 9, 10, 123_456]) {
      const body = bodyOf(n).toString()
      const events = JSON.parse(body) as EventInput[]
      assert.equal(body.length, BATCH_EVENTS * (EVENT_BYTES + 1) + 1)
      const sent = events.map(({ eventId, runId, sessionId, agentId, timestamp }) => {
        return { eventId, runId, sessionId, agentId, timestamp: String(timestamp) }
      })
      assert.deepEqual(
        sent,
        sent.map((_, index) => variableOf(plot, n, index)),
      )
      const rows = rowsOf(n).map(({ event: { eventId, time }, run }) => ({ eventId, runId: run.runId, time }))
      assert.deepEqual(
        rows,
        events.map(({ eventId, runId, timestamp }) => ({ eventId, runId, time: timestamp })),
      )
      for (const { eventId } of events) ids.add(eventId)
    }
    assert.equal(ids.size, 5 * BATCH_EVENTS)
  })
}

test('a history has one run of a hundred events among a hundred runs', () => {
  const plot = newPlot('history')
  const bodyOf = bodyWriter(plot)
  const events = Array.from({ length: 20 }, (_, n) => JSON.parse(bodyOf(n).toString()) as EventInput[]).flat()
  const sizes = Map.groupBy(events, ({ runId }) => runId)
  assert.equal(sizes.size, 200)
  const long = [...sizes].filter(([, of]) => of.length === BATCH_EVENTS).map(([runId]) => runId)
  assert.deepEqual(
    long,
    longRunsOf(20).map((run) => runIdOf(plot, run)),
  )
})

test('a ratio of 1 is as good as the bare limit, whether more or less is better', () => {
  const ratioOf = (unit: string) => row('', unit, [10, 20], [20, 20]).ratio
  assert.deepEqual(ratioOf('/s'), { median: 0.75, min: 0.5, max: 1 })
  assert.deepEqual(ratioOf('ms'), { median: 1.5, min: 1, max: 2 })
})

test('a percentile is one of the measured times', () => {
  assert.deepEqual(spreadOf([3, 1, 2]), { median: 2, min: 1, max: 3 })
  const times = Array.from({ length: 1000 }, (_, index) => 1000 - index)
  assert.deepEqual(timesOf(times), { count: 1000, p50: 500, p99: 990, p999: 999 })
})

test(
  'child processes of a benchmark do not count as other programs, even after they have ended',
  { skip: ownMs() === null },
  () => {
    const since = watchOthers()
    const before = ownMs() ?? 0
    const burn = 'while (process.cpuUsage().user < 500_000);'
    spawnSync(process.execPath, ['-e', burn])
    assert.ok((ownMs() ?? 0) - before >= 450)
    const others = since() ?? Number.NaN
    assert.ok(others >= 0 && others < 1)
  },
)
