import assert from 'node:assert/strict'
import { test } from 'node:test'
import { durationMs, localTime, moment, parseZone } from '../../src/engine/time-text.ts'

const NOW = Date.UTC(2026, 10, 20, 12)

test('a duration counts back or ahead from now', () => {
  assert.equal(moment('--from', '24h', -1, NOW), '2026-11-19T12:00:00.000Z')
  assert.equal(moment('--expires', '90d', 1, NOW), '2027-02-18T12:00:00.000Z')
  assert.equal(durationMs('2w'), 14 * 86_400_000)
  assert.equal(durationMs('2 w'), null)
})

test('a date and a time without an offset are of one zone: UTC, or the one that is named', () => {
  const texts = [
    '2026-11-01',
    '2026-11-01T00:00',
    '2026-11-01T02:30:00',
    '2026-11-01T02:30:00Z',
    '2026-11-01T02:30+0100',
  ]
  const timesIn = (zone?: string) => texts.map((text) => moment('--from', text, -1, NOW, zone).slice(5, 16))
  assert.deepEqual(timesIn(), ['11-01T00:00', '11-01T00:00', '11-01T02:30', '11-01T02:30', '11-01T01:30'])
  // The clock of New York goes back at two o'clock of this day.
  const there = ['11-01T04:00', '11-01T04:00', '11-01T07:30', '11-01T02:30', '11-01T01:30']
  assert.deepEqual(timesIn('America/New_York'), there)
  assert.equal(localTime('2026-11-01T07:30:00.000Z', 'America/New_York'), '2026-11-01T02:30:00.000')
  assert.equal(parseZone('Asia/Tokyo'), 'Asia/Tokyo')
  assert.throws(() => parseZone('Mars/Base'), /Europe\/Berlin/)
})

test('a date, a time and a time with an offset are moments', () => {
  assert.equal(moment('--from', '2026-11-01', -1, NOW), '2026-11-01T00:00:00.000Z')
  assert.equal(moment('--from', '2026-11-01T02:30:00Z', -1, NOW), '2026-11-01T02:30:00.000Z')
  assert.equal(moment('--from', '2026-11-01T02:30:00.5+02:00', -1, NOW), '2026-11-01T00:30:00.500Z')
})

test('any other text is wrong usage, and the sentence names the flag', () => {
  for (const text of ['', 'yesterday', '2026-13-01', '2026', '-7d', '7', '999999999w']) {
    assert.throws(() => moment('--from', text, -1, NOW), { exitCode: 2, message: /^--from must be a time/ })
  }
})
