import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { hashedBase, messageTime, ownTimes, steppedTimes } from '../../src/record/transcript/times.ts'

const NOW = Date.UTC(2026, 10, 20, 15, 30)
const DAY = 86_400_000

test('ISO texts, seconds and milliseconds are valid message times', () => {
  const time = Date.UTC(2026, 10, 20)
  for (const value of ['2026-11-20T00:00:00Z', time, time / 1000, String(time / 1000)]) {
    assert.equal(messageTime({ timestamp: value }), time)
    assert.equal(messageTime({ created_at: value }), time)
  }
  for (const value of [null, 'yesterday', {}, true, 1e300]) assert.equal(messageTime({ timestamp: value }), null)
})

test('old times are used, times that cannot be true are not', () => {
  assert.deepEqual(ownTimes([NOW - 900 * DAY, NOW], NOW), [NOW - 900 * DAY, NOW])
  assert.equal(ownTimes([5, NOW], NOW), null)
  assert.equal(ownTimes([NOW + 1], NOW), null)
  assert.equal(ownTimes([null, null], NOW), null)
  assert.deepEqual(ownTimes([NOW - 29 * DAY], NOW), [NOW - 29 * DAY])
})

test('an unknown time, or one that steps back, is just after the previous one', () => {
  assert.deepEqual(ownTimes([null, NOW - 50, null, NOW - 60, NOW - 10], NOW), [
    NOW - 51,
    NOW - 50,
    NOW - 49,
    NOW - 48,
    NOW - 10,
  ])
})

test('own times strictly increase and never pass the present', () => {
  const time = fc.option(fc.integer({ min: NOW - 100, max: NOW }))
  fc.assert(
    fc.property(fc.array(time, { minLength: 1, maxLength: 300 }), (known) => {
      const times = ownTimes(known, NOW)
      if (known.every((one) => one === null)) return assert.equal(times, null)
      assert.equal(times?.length, known.length)
      assertIncreasing(times ?? [], NOW - DAY, NOW)
    }),
  )
})

test('generated times strictly increase within the last three days, for any number of events', () => {
  const hash = fc.stringMatching(/^[0-9a-f]{32}$/)
  fc.assert(
    fc.property(hash, fc.integer({ min: 1, max: 3_000 }), fc.nat(DAY), (given, count, later) => {
      assertIncreasing(steppedTimes(hashedBase(given, NOW + later), count), NOW - 3 * DAY, NOW + later)
    }),
  )
  assertIncreasing(steppedTimes(hashedBase('f'.repeat(32), NOW), 2_000_000), NOW - 3 * DAY, NOW)
})

test('generated times are the same all day', () => {
  assert.equal(hashedBase('abcdef01', NOW), hashedBase('abcdef01', NOW + 3_600_000))
})

function assertIncreasing(times: number[], least: number, most: number): void {
  assert.ok(times.every((time, index) => Number.isInteger(time) && (index === 0 || time > (times[index - 1] ?? 0))))
  assert.ok((times[0] ?? 0) >= least && (times.at(-1) ?? 0) <= most)
}
