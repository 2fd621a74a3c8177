import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { delayMs } from '../../../sdk/src/delivery/retry.ts'

test('delays are random below a bound that doubles up to 30 seconds', () => {
  const most = [1, 2, 3, 5, 6, 41].map((failures) => delayMs(failures, undefined, 1))
  assert.deepEqual(most, [1_000, 2_000, 4_000, 16_000, 30_000, 30_000])
  assert.equal(delayMs(4, undefined, 0), 0)
})

test('no delay is shorter than Retry-After', () => {
  fc.assert(
    fc.property(fc.nat(50), fc.nat(300_000), fc.double({ min: 0, max: 1, noNaN: true }), (attempt, wait, random) => {
      assert.ok(delayMs(attempt + 1, wait, random) >= wait)
    }),
  )
})
