import type { Duration, Timestamp } from './time.ts'

/** Milliseconds to add to a time, so that its UTC fields show the local time of a zone. */
export type Zone = (milliseconds: number) => number

export const UTC: Zone = () => 0

// Formatters are large and slow to create. Zone names ignore case, so this map is bounded by the number of zones.
const zones = new Map<string, Zone>([['utc', UTC]])

const OFFSET = /^([+-])(\d\d):(\d\d)$/

/** An IANA name ("Europe/Berlin") or a fixed offset ("+02:00"); undefined for anything else. */
export function zoneOf(name: string): Zone | undefined {
  const fixed = OFFSET.exec(name)
  if (fixed) {
    const [, sign, hours, minutes] = fixed
    if (Number(hours) > 23 || Number(minutes) > 59) return undefined
    const offset = (Number(hours) * 60 + Number(minutes)) * (sign === '-' ? -60_000 : 60_000)
    return () => offset
  }
  const key = name.toLowerCase()
  const zone = zones.get(key) ?? namedZone(name)
  if (zone) zones.set(key, zone)
  return zone
}

function namedZone(name: string): Zone | undefined {
  let clock: Intl.DateTimeFormat
  try {
    clock = new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      calendar: 'gregory',
      hourCycle: 'h23',
      era: 'short',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  } catch {
    return undefined
  }
  return (milliseconds) => {
    const clockParts = new Map(clock.formatToParts(milliseconds).map(({ type, value }) => [type, value]))
    const field = (type: Intl.DateTimeFormatPartTypes) => Number(clockParts.get(type))
    const shown = new Date(0)
    shown.setUTCFullYear(
      clockParts.get('era') === 'AD' ? field('year') : 1 - field('year'),
      field('month') - 1,
      field('day'),
    )
    shown.setUTCHours(field('hour'), field('minute'), field('second'))
    return shown.getTime() - Math.floor(milliseconds / 1000) * 1000
  }
}

const DAY = 86_400_000

/** CEL's time getters: months, days of the month and days of the year count from 0, `getDate` from 1. */
export const TIMESTAMP_FIELDS = new Map<string, (shown: Date) => number>([
  ['getFullYear', (shown) => shown.getUTCFullYear()],
  ['getMonth', (shown) => shown.getUTCMonth()],
  ['getDate', (shown) => shown.getUTCDate()],
  ['getDayOfMonth', (shown) => shown.getUTCDate() - 1],
  ['getDayOfWeek', (shown) => shown.getUTCDay()],
  ['getDayOfYear', (shown) => Math.floor((shown.getTime() - new Date(shown).setUTCMonth(0, 1)) / DAY)],
  ['getHours', (shown) => shown.getUTCHours()],
  ['getMinutes', (shown) => shown.getUTCMinutes()],
  ['getSeconds', (shown) => shown.getUTCSeconds()],
  ['getMilliseconds', (shown) => shown.getUTCMilliseconds()],
])

/** CEL's duration getters: the whole duration in that unit, rounded towards zero. */
export const DURATION_FIELDS = new Map<string, (span: Duration) => bigint>([
  ['getHours', (span) => span.nanos / 3_600_000_000_000n],
  ['getMinutes', (span) => span.nanos / 60_000_000_000n],
  ['getSeconds', (span) => span.nanos / 1_000_000_000n],
  ['getMilliseconds', (span) => span.nanos / 1_000_000n],
])

/** A Date whose UTC fields show the local time of the zone. */
export function shownIn(zone: Zone, time: Timestamp): Date {
  const milliseconds = time.milliseconds
  return new Date(milliseconds + zone(milliseconds))
}
