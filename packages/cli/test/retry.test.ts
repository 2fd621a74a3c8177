import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isRetryableStatus, retryAfterMs, retryDelayMs } from '../src/retry.ts'

const NOW = Date.UTC(2026, 10, 20)

test('delays lie anywhere below a bound that doubles up to 30 seconds', () => {
  const most = [0, 1, 2, 4, 5, 40].map((attempt) => retryDelayMs(attempt, null, () => 1))
  assert.deepEqual(most, [1_000, 2_000, 4_000, 16_000, 30_000, 30_000])
  assert.equal(
    retryDelayMs(3, null, () => 0),
    0,
  )
})

test('no delay is shorter than Retry-After', () => {
  fc.assert(
    fc.property(fc.nat(50), fc.nat(300_000), fc.double({ min: 0, max: 1, noNaN: true }), (attempt, wait, random) => {
      assert.ok(retryDelayMs(attempt, wait, () => random) >= wait)
    }),
  )
})

test('Retry-After is seconds or a date, and bounded', () => {
  assert.equal(retryAfterMs('7', NOW), 7_000)
  assert.equal(retryAfterMs('Fri, 20 Nov 2026 00:00:09 GMT', NOW), 9_000)
  assert.equal(retryAfterMs('Fri, 20 Nov 2020 00:00:09 GMT', NOW), 0)
  assert.equal(retryAfterMs('999999999999', NOW), 300_000)
  assert.equal(retryAfterMs('soon', NOW), null)
  assert.equal(retryAfterMs(null, NOW), null)
})

test('429 and 5xx may succeed later, other refusals may not', () => {
  assert.deepEqual([408, 429, 500, 502, 503, 599].filter(isRetryableStatus).length, 6)
  assert.deepEqual([200, 304, 400, 401, 403, 404, 413].filter(isRetryableStatus), [])
})
