import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { retryDelayMs } from '../../src/calls/retry.ts'

test('delays are random below a bound that doubles up to 30 seconds', () => {
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
