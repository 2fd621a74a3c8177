import assert from 'node:assert/strict'
import { test } from 'node:test'
import { totalOf, usageRows, usageSummer, type UsageKey } from '../../src/usage/sums.ts'

function hour(time: string, agent: string, model: string, cost: number, estimatedCost: number | null = null) {
  const usage = { promptTokens: 10, completionTokens: 5, totalTokens: 15, cost }
  const estimate = { estimatedCost, priceTable: null, unpricedCalls: 0 }
  return { hour: time, agent: { id: '', name: agent }, model, events: 2, usage, ...estimate }
}

const HOURS = [
  hour('2026-11-21T23:00:00.000Z', 'a', 'small', 0.1),
  hour('2026-11-22T01:00:00.000Z', 'b', 'large', 0.2, 0.4),
  hour('2026-11-20T01:00:00.000Z', 'a', '', 0),
]

function sumsBy(by: UsageKey) {
  const summer = usageSummer(by)
  for (const each of HOURS) summer.add(each)
  return summer.sums()
}

test('usage is summed by day in order, and by agent and model with the most expensive first', () => {
  assert.deepEqual(
    sumsBy('day').map(({ key, cost }) => [key, cost]),
    [
      ['2026-11-20', 0],
      ['2026-11-21', 0.1],
      ['2026-11-22', 0.2],
    ],
  )
  assert.deepEqual(
    sumsBy('agent').map(({ key, events }) => [key, events]),
    [
      ['b', 2],
      ['a', 4],
    ],
  )
  assert.deepEqual(
    sumsBy('model').map(({ key }) => key),
    ['large', 'small'],
  )
})

test('sums of costs are exact, and a bar shows the share of the greatest', () => {
  const sums = sumsBy('day')
  assert.deepEqual([totalOf(sums, 'Total').cost, totalOf(sums, 'Total').estimatedCost], [0.3, 0.4])
  assert.deepEqual(
    usageRows(sums).map((row) => row.at(-1)?.length),
    [0, 4, 20],
  )
})
