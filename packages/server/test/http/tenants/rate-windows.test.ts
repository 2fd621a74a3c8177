import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createWindows } from '../../../src/http/tenants/rate-limit.ts'

function open(maxSubjects = 100) {
  const clock = { ms: 0 }
  return { clock, windows: createWindows({ windowMs: 1_000, monotonicNow: () => clock.ms, maxSubjects }) }
}

test('a subject gets its points in each window and not one more, and the remaining points are returned', () => {
  const { clock, windows } = open()
  assert.deepEqual(windows.take('a', 2), { allowed: true, remaining: 1, resetMs: 1_000 })
  clock.ms = 999
  assert.deepEqual(windows.take('a', 2), { allowed: true, remaining: 0, resetMs: 1 })
  assert.deepEqual(windows.take('a', 2), { allowed: false, remaining: 0, resetMs: 1 })
  assert.equal(windows.take('b', 2).allowed, true)
  clock.ms = 1_000
  assert.deepEqual(windows.take('a', 2), { allowed: true, remaining: 1, resetMs: 1_000 })
})

test('the number of counters is bounded, and the most recent subject is kept', () => {
  const { windows } = open(10)
  for (let other = 0; other < 1_000; other++) {
    windows.take('busy', 1)
    windows.take(`stranger-${other}`, 1)
  }
  assert.equal(windows.size(), 10)
  assert.equal(windows.take('busy', 1).allowed, false)
})
