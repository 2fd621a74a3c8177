import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import type { UsagePoint } from '@tacho/contract/runs/usage.ts'
import { POINT_KEYS, pointColumns, pointRows, sumPoints, type PointKey } from '../../src/runs/usage-points.ts'
import { totalOf, usageRows } from '../../src/runs/usage-days.ts'

function step(from: string, cost: number, estimatedCost: number | null = null): UsagePoint {
  return { ...point(from, from, 'a', cost), estimatedCost }
}

const STEPS = [
  step('2026-11-21T23:00:00.000Z', 0.1),
  step('2026-11-22T01:00:00.000Z', 0.2, 0.4),
  step('2026-11-20T01:00:00.000Z', 0),
]

const sums = (zone = 'UTC') => sumPoints(Readable.from(STEPS), { by: 'day', zone })

test('usage is summed by day in order', async () => {
  assert.deepEqual(
    (await sums()).map(({ key, cost, events }) => [key, cost, events]),
    [
      ['2026-11-20', 0, 2],
      ['2026-11-21', 0.1, 2],
      ['2026-11-22', 0.2, 2],
    ],
  )
})

test('a day begins at midnight in the zone', async () => {
  const keys = async (zone: string) => (await sums(zone)).map(({ key, events }) => `${key} ${events}`)
  assert.deepEqual(await keys('Europe/Berlin'), ['2026-11-20 2', '2026-11-22 4'])
  assert.deepEqual(await keys('America/New_York'), ['2026-11-19 2', '2026-11-21 4'])
})

function point(from: string, key: string, name: string | null, cost: number): UsagePoint {
  const usage = { promptTokens: 10, completionTokens: 5, totalTokens: 15, cost }
  const counts = { events: 2, runs: 3, completed: 1, failed: 1, cancelled: 0 }
  const estimate = { estimatedCost: null, priceTable: null, unpricedCalls: 0 }
  const llmLatency = { calls: 2, p50Ms: 40, p95Ms: 1_250, isApproximate: false }
  return { from, key, name, ...counts, usage, ...estimate, llmLatency, toolLatency: null, calls: null, waiting: null }
}

test('points are shown by agent with outcomes and latencies, and summed up by month', async () => {
  const points = [
    point('2026-11-01T00:00:00.000Z', '1', 'constructor', 0.1),
    point('2026-11-01T00:00:00.000Z', '2', 'constructor', 0.2),
    point('2026-10-20T00:00:00.000Z', '__proto__', null, 0.3),
  ]
  const rows = async (by: PointKey) => pointRows(by, await sumPoints(Readable.from(points), { by, zone: 'UTC' }))
  assert.deepEqual(await rows('agent'), [
    ['__proto__', '3', '1', '1', '0', '15', '$0.3', '40 ms', '1.3 s', '', '', '', '', '', ''],
    ['constructor', '3', '1', '1', '0', '15', '$0.2', '40 ms', '1.3 s', '', '', '', '', '', ''],
    ['constructor', '3', '1', '1', '0', '15', '$0.1', '40 ms', '1.3 s', '', '', '', '', '', ''],
  ])
  assert.deepEqual(await rows('month'), [
    ['2026-10', '3', '1', '1', '0', '15', '$0.3'],
    ['2026-11', '6', '2', '2', '0', '30', '$0.3'],
  ])
  for (const by of POINT_KEYS) {
    const [first] = await rows(by)
    assert.equal(pointColumns(by).length, first?.length, by)
  }
})

test('sums of costs are exact, and a bar shows the share of the greatest', async () => {
  const all = await sums()
  assert.deepEqual([totalOf(all, 'Total').cost, totalOf(all, 'Total').estimatedCost], [0.3, 0.4])
  assert.deepEqual(
    usageRows(all).map((row) => row.at(-1)?.length),
    [0, 2, 10],
  )
})
