/** Usage as bars: periods are added up until the bars are wide enough. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { UsagePoint } from '@tacho/contract/runs/usage.ts'
import { seriesOf, shownWindow, sorted, sumOf, timesOf } from '../src/runs/usage/series.ts'

const HOUR_MS = 3_600_000
const START = Date.parse('2026-11-20T00:00:00Z')
const point = (hour: number, key: string, change: Partial<UsagePoint> = {}): UsagePoint => ({
  from: new Date(START + hour * HOUR_MS).toISOString(),
  key,
  name: key,
  events: 1,
  runs: 3,
  completed: 1,
  failed: 1,
  cancelled: 0,
  usage: { promptTokens: 0, completionTokens: 0, totalTokens: 10, cost: 0.5 },
  estimatedCost: null,
  unpricedCalls: 0,
  priceTable: null,
  llmLatency: { calls: 1, p50Ms: 100, p95Ms: 200 + hour, isApproximate: false },
  toolLatency: null,
  waiting: null,
  calls: null,
  ...change,
})
const windowOf = (count: number, stepMs: number) => ({
  from: START,
  to: START + (count - 1) * stepMs,
  stepMs,
  starts: Array.from({ length: count }, (_, step) => START + step * stepMs),
})
const hours = (count: number) => windowOf(count, HOUR_MS)

test('hours of a week are bars of a few hours, and nothing is lost; percentiles stay as they are', () => {
  const week = hours(168)
  const shown = shownWindow(week, 'cost')
  assert.equal(timesOf(shown).length, 84)
  assert.equal(shownWindow(week, 'llm').stepMs, HOUR_MS)
  assert.equal(shownWindow(hours(24), 'cost').stepMs, HOUR_MS)
  for (const days of [30, 90, 365]) {
    assert.ok(timesOf(shownWindow(windowOf(days, 24 * HOUR_MS), 'tokens')).length <= 92, `${days} days`)
  }
  const points = Array.from({ length: 168 }, (_, hour) => point(hour, hour % 2 ? 'a' : 'b'))
  const sums = [point(0, 'a'), point(0, 'b')]
  const series = seriesOf(points, sums, shown, 'cost')
  assert.deepEqual(
    series.map(({ name, values }) => [name, values.reduce<number>((sum, value) => sum + (value ?? 0), 0)]),
    [
      ['a', 42],
      ['b', 42],
    ],
  )
  assert.equal(sumOf(points, 'cost'), 84)
  assert.equal(sumOf(points, 'llm'), null)
})

test('outcomes are stacked from failed to running, and more agents than colours are one series', () => {
  const many = Array.from({ length: 9 }, (_, n) => point(0, `agent ${n}`))
  const outcomes = seriesOf(many, many, hours(24), 'outcomes')
  assert.deepEqual(
    outcomes.map(({ name, colour, values }) => [name, colour, values[0]]),
    [
      ['Failed', 'red', 9],
      ['Cancelled', 'soft', 0],
      ['Completed', 'green', 9],
      ['Running', 'accent', 9],
    ],
  )
  const cost = seriesOf(many, many, hours(24), 'cost')
  assert.deepEqual(
    cost.map(({ name, values }) => [name, values[0]]),
    [...[0, 1, 2, 3, 4].map((n) => [`agent ${n}`, 0.5]), ['4 others', 2]],
  )
  assert.equal(new Set(cost.map(({ colour }) => colour)).size, 6)
  const estimated = many.map((point, at) => ({
    ...point,
    estimatedCost: at === 0 ? 1 : null,
    unpricedCalls: at === 8 ? 1 : 0,
  }))
  const marked = seriesOf(estimated, estimated, hours(24), 'cost')
  assert.deepEqual([marked[0]?.marks?.[0], marked[1]?.marks, marked[5]?.marks?.[0]], ['≈ ', undefined, 'at least '])
  assert.equal(seriesOf(estimated, estimated, hours(24), 'tokens')[0]?.marks, undefined)
})

test('failures are those of the calls by tool, else those of the runs, the most first', () => {
  const calls = (failed: number) => ({ calls: { failed, blocked: 0, approvals: 0 } })
  const tools = [
    point(0, 'good', calls(0)),
    point(0, 'pay', calls(2)),
    point(2, 'pay', calls(5)),
    point(1, 'get', calls(3)),
  ]
  const sums = sorted([point(0, 'good', calls(0)), point(0, 'get', calls(3)), point(0, 'pay', calls(7))], 'failed')
  assert.deepEqual(
    seriesOf(tools, sums, hours(3), 'failed').map(({ name, values }) => [name, values]),
    [
      ['pay', [2, 0, 5]],
      ['get', [0, 3, 0]],
    ],
  )
  assert.equal(sumOf(tools, 'failed'), 10)
  assert.equal(sumOf([point(0, 'agent', { failed: 4 })], 'failed'), 4)
})
