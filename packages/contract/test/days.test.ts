import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dateOf, daysOf, isZone, monthsOf, offsetAt, startOfDay, timeAt } from '../src/engine/days.ts'

const HOUR_MS = 3_600_000
const at = (text: string) => Date.parse(text)
const iso = (time: number) => new Date(time).toISOString()

test('a day has 23 hours when the clock goes forward and 25 when it goes back', () => {
  const days: [zone: string, from: string, to: string, hours: number[]][] = [
    ['UTC', '2026-03-28T00:00Z', '2026-03-31T00:00Z', [24, 24, 24]],
    ['Europe/Berlin', '2026-03-27T23:00Z', '2026-03-30T22:00Z', [24, 23, 24]],
    ['Europe/Berlin', '2026-10-23T22:00Z', '2026-10-26T23:00Z', [24, 25, 24]],
    ['America/New_York', '2026-03-07T05:00Z', '2026-03-10T04:00Z', [24, 23, 24]],
    ['America/New_York', '2026-10-31T04:00Z', '2026-11-03T05:00Z', [24, 25, 24]],
    // The clock goes forward, and back, at midnight.
    ['America/Havana', '2026-03-07T05:00Z', '2026-03-09T04:00Z', [24, 23]],
    ['America/Havana', '2026-10-31T04:00Z', '2026-11-03T05:00Z', [24, 25, 24]],
    ['Asia/Kathmandu', '2026-05-01T18:15Z', '2026-05-03T18:15Z', [24, 24]],
    // Summer time shifts the clock by half an hour.
    ['Australia/Lord_Howe', '2026-04-03T13:00Z', '2026-04-05T13:30Z', [24, 24.5]],
  ]
  for (const [zone, from, to, hours] of days) {
    const window = { from: at(from), to: at(to) }
    const starts = daysOf(window, zone)
    const lengths = starts.map((start, index) => ((starts[index + 1] ?? window.to) - start) / HOUR_MS)
    assert.deepEqual(lengths, hours, `${zone} from ${from}: ${starts.map(iso).join()}`)
    for (const start of starts) assert.equal(startOfDay(start, zone), start, zone)
  }
})

test('a window that begins inside of a day has a first day that is shorter', () => {
  const window = { from: at('2026-11-24T13:00Z'), to: at('2026-11-26T13:00Z') }
  assert.deepEqual(daysOf(window, 'America/New_York').map(iso), [
    '2026-11-24T13:00:00.000Z',
    '2026-11-25T05:00:00.000Z',
    '2026-11-26T05:00:00.000Z',
  ])
  assert.deepEqual(monthsOf({ from: window.from, to: at('2027-01-02T00:00Z') }, 'America/New_York').map(iso), [
    '2026-11-24T13:00:00.000Z',
    '2026-12-01T05:00:00.000Z',
    '2027-01-01T05:00:00.000Z',
  ])
  assert.equal(daysOf(window, 'UTC', 1).length, 2)
  assert.deepEqual(daysOf({ from: 5, to: 5 }, 'UTC'), [])
})

test('a local time is the first of two, and the change itself if it is skipped', () => {
  const local = (text: string, zone: string) => iso(timeAt(at(`${text}Z`), zone))
  assert.equal(local('2026-10-25T02:30', 'Europe/Berlin'), '2026-10-25T00:30:00.000Z')
  assert.equal(local('2026-03-29T02:30', 'Europe/Berlin'), '2026-03-29T01:00:00.000Z')
  assert.equal(local('2026-07-01T00:00', 'America/New_York'), '2026-07-01T04:00:00.000Z')
  assert.equal(dateOf(at('2026-11-24T03:00Z'), 'America/New_York'), '2026-11-23')
  assert.equal(offsetAt(at('1969-12-31T23:59:59.500Z'), 'Europe/Berlin'), HOUR_MS)
})

test('a name that is no time zone is known as such', () => {
  assert.deepEqual(['UTC', 'Europe/Berlin', 'Mars/Base', '', 'constructor', '+02:00'].map(isZone), [
    true,
    true,
    false,
    false,
    false,
    true,
  ])
})
