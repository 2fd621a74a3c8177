import assert from 'node:assert/strict'
import { test } from 'node:test'
import { firstState, nextAlert } from '../../../src/domain/messages/alert.ts'
import type { AlertRule } from '../../../src/storage/messages/messages.ts'

const MINUTE = 60_000
const RULE: AlertRule = {
  name: 'Many runs fail',
  kind: 'error_rate',
  threshold: 20,
  agentId: null,
  windowMinutes: 60,
  holdMinutes: 5,
  period: 'month',
}

/** The announcements of a rule that measures one of these values each minute. */
function told(rule: AlertRule, values: (number | null)[], start = 0): string[] {
  let state = firstState(start)
  return values.map((value, minute) => {
    const next = nextAlert({ rule, state }, value, start + minute * MINUTE)
    state = next.state
    return next.news ?? state.status
  })
}

test('an alert fires after its condition held for holdMinutes, and not before', () => {
  const above = told(RULE, [20, 21, 21, 21, 21, 21, 21, 21])
  assert.deepEqual(above, ['OK', 'PENDING', 'PENDING', 'PENDING', 'PENDING', 'PENDING', 'alert.firing', 'FIRING'])
  assert.deepEqual(told(RULE, [21, 21, 20, 21, 21, 21, 21]).includes('alert.firing'), false)
  assert.deepEqual(told({ ...RULE, holdMinutes: 0 }, [21, 20]), ['alert.firing', 'alert.resolved'])
})

test('a value around the threshold neither resolves nor fires again', () => {
  const flapping = Array.from({ length: 60 }, (_, minute) => (minute % 3 === 0 ? 10 : 30))
  const news = told(RULE, [30, 30, 30, 30, 30, 30, ...flapping]).filter((word) => word.startsWith('alert.'))
  assert.deepEqual(news, ['alert.firing'])
  const over = told(RULE, [30, 30, 30, 30, 30, 30, 1, 1, 1, 1, 1, 1, 1]).filter((word) => word.startsWith('alert.'))
  assert.deepEqual(over, ['alert.firing', 'alert.resolved'])
})

test('nothing to measure is not a failure, except where the missing runs are the condition', () => {
  assert.deepEqual(told({ ...RULE, holdMinutes: 0 }, [null, null]), ['OK', 'OK'])
  assert.deepEqual(told({ ...RULE, kind: 'no_runs', holdMinutes: 0 }, [1, 0, 1]), [
    'OK',
    'alert.firing',
    'alert.resolved',
  ])
})

test('a budget tells 50, 80 and 100 percent once in each period', () => {
  const budget: AlertRule = { ...RULE, kind: 'budget', threshold: 200 }
  assert.deepEqual(told(budget, [99.99, 100, 120, 160, 159, 200, 900]), [
    'OK',
    'budget.reached',
    'OK',
    'budget.reached',
    'OK',
    'budget.reached',
    'OK',
  ])
  assert.deepEqual(told(budget, [900, 900]), ['budget.reached', 'OK'], 'only the highest of several')
  assert.deepEqual(
    told(budget, [160, 99, 160, 120, 160]),
    ['budget.reached', 'OK', 'OK', 'OK', 'OK'],
    'falls and rises',
  )
  const lastMinute = Date.UTC(2026, 10, 30, 23, 59)
  assert.deepEqual(told(budget, [150, 10, 150], lastMinute), ['budget.reached', 'OK', 'budget.reached'])
  assert.deepEqual(told({ ...budget, period: 'day' }, [150, 150], lastMinute), ['budget.reached', 'budget.reached'])
})
