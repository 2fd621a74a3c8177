import assert from 'node:assert/strict'
import { test } from 'node:test'
import { duration, money, percent, relative, sizeLimit } from '../src/engine/format.ts'

test('limits in bytes are readable and exact', () => {
  assert.deepEqual([1_048_576, 33_554_432, 262_144, 1_000].map(sizeLimit), [
    '1 MiB (1,048,576 bytes)',
    '32 MiB (33,554,432 bytes)',
    '256 KiB (262,144 bytes)',
    '1,000 bytes',
  ])
})

test('durations and money have the digits that people need', () => {
  assert.deepEqual([0, 999, 1_500, 184_000, 7_500_000, 3_600_000, 273_600_000, 172_800_000].map(duration), [
    '0 ms',
    '999 ms',
    '1.5 s',
    '3 m 04 s',
    '2 h 05 m',
    '1 h',
    '3 d 4 h',
    '2 d',
  ])
  assert.deepEqual([0, 0.0000412, 0.000412, 0.5, 1.95, 12.3, 1234.5].map(money), [
    '$0',
    '<$0.0001',
    '$0.000412',
    '$0.50',
    '$1.95',
    '$12.30',
    '$1,235',
  ])
})

test('a time is relative for two days, and a date before, and in the future', () => {
  const now = Date.UTC(2026, 10, 22, 12)
  assert.deepEqual(
    [1_000, 12_000, 300_000, 7_200_000].map((ago) => relative(now - ago, now)),
    ['now', '12 s ago', '5 m ago', '2 h ago'],
  )
  // A clock that is a little ahead of the page's.
  assert.deepEqual(
    [now + 9_000, now + 11_000].map((time) => relative(time, now) === 'now'),
    [true, false],
  )
  for (const time of [now - 49 * 3_600_000, now + 3_600_000]) assert.doesNotMatch(relative(time, now), /ago|now/)
  assert.match(relative(now + 366 * 86_400_000, now), /2027/)
})

test('a share is 0 % or 100 % only if it is', () => {
  assert.deepEqual(
    [
      [0, 0],
      [0, 5],
      [1, 1_000],
      [1, 3],
      [999, 1_000],
      [5, 5],
    ].map(([part = 0, whole = 0]) => percent(part, whole)),
    ['', '0 %', '< 1 %', '33 %', '> 99 %', '100 %'],
  )
})
