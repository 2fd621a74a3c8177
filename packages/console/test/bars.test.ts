/** Start and end of the bars of a run's steps. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { barsOf, extentOf, type DrawnStep } from '@tacho/contract/runs/timeline.ts'

const NOON = 1_000_000

const step = (eventId: string, at: number, more: Partial<DrawnStep> = {}): DrawnStep => ({
  eventId,
  time: NOON + at,
  eventType: 'LLM_CALL',
  spanId: 'run',
  parentSpanId: null,
  latency: null,
  ...more,
})
const drawn = (...steps: DrawnStep[]) => barsOf(steps).map(({ from, to }) => [from - NOON, to - NOON])

test('a call that was recorded when it had ended is drawn up to its time, one without a latency as a moment', () => {
  assert.deepEqual(drawn(step('a', 0), step('b', 800, { latency: 300.5 })), [
    [0, 0],
    [499.5, 800],
  ])
})

test('an OpenTelemetry span is drawn from its time', () => {
  assert.deepEqual(drawn(step('a', 0, { spanId: 'a', latency: 50 }), step('b', 50, { spanId: 'b', latency: 0.5 })), [
    [0, 50],
    [50, 50.5],
  ])
})

test('only the step that closes a span without a latency is drawn from its first event', () => {
  const inSpan = { spanId: 'inner', parentSpanId: 'run', eventType: 'AGENT_STEP' }
  const bars = barsOf([step('a', 0), step('b', 10, inSpan), step('c', 30, inSpan), step('d', 40)])
  assert.deepEqual(
    bars.map(({ from, to, depth }) => [from - NOON, to - NOON, depth]),
    [
      [0, 0, 0],
      [10, 10, 1],
      [10, 30, 1],
      [40, 40, 0],
    ],
  )
})

test('the extent has room for calls that began before the first event or end after the last', () => {
  const bars = barsOf([step('a', 0, { latency: 100 }), step('b', 10, { spanId: 'b', latency: 90 })])
  assert.deepEqual(extentOf(bars), { from: NOON - 100, span: 200 })
  assert.deepEqual(extentOf([]), { from: 0, span: 1 })
  assert.equal(extentOf(barsOf([step('a', 0)])).span, 1)
})
