/** Times and durations as people write them. */
import { isZone, offsetAt, timeAt } from '@tacho/contract/engine/days.ts'
import { InvalidArgumentError } from 'commander'
import { wrongUsage } from './stop.ts'

const UNITS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const

/** Milliseconds of a duration such as `90d`, `12h` or `30m`; null if the text is not one. */
export function durationMs(text: string): number | null {
  const [, digits, unit] = /^([0-9]{1,9})([smhdw])$/.exec(text) ?? []
  return digits === undefined ? null : Number(digits) * UNITS[unit as keyof typeof UNITS]
}

/**
 * Parses a date, a time, or a duration before (`direction` -1) or after (1) now. Returns ISO 8601 in UTC. A date, or a
 * time without a zone, is in `zone`.
 */
export function moment(flag: string, text: string, direction: -1 | 1, now: number, zone = 'UTC'): string {
  const duration = durationMs(text)
  const time = duration === null ? isoTime(text, zone) : now + direction * duration
  // A Date outside its supported years is NaN.
  if (time !== null && !Number.isNaN(new Date(time).getTime())) return new Date(time).toISOString()
  const way = direction < 0 ? '7d (ago)' : '90d (from now)'
  throw wrongUsage(
    `${flag} must be a time such as 2026-11-20, 2026-11-20T09:30:00Z or ${way}, not ${JSON.stringify(text)}.`,
  )
}

function isoTime(text: string, zone: string): number | null {
  const [, clock = '', offset] =
    /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?(Z|[+-]\d{2}:?\d{2})?$/.exec(text) ?? []
  if (clock === '' && !/^\d{4}-\d{2}-\d{2}$/.test(text)) return null
  const time = Date.parse(offset === undefined ? `${text}${clock === '' ? 'T00:00' : ''}Z` : text)
  if (Number.isNaN(time)) return null
  return offset === undefined ? timeAt(time, zone) : time
}

/** `2026-11-24T09:00:00.000`, as the clock of the zone shows it. */
export const localTime = (time: string, zone: string): string =>
  new Date(Date.parse(time) + offsetAt(Date.parse(time), zone)).toISOString().slice(0, -1)

export function parseZone(zone: string): string {
  if (isZone(zone)) return zone
  throw new InvalidArgumentError('It must be a time zone such as Europe/Berlin or UTC.')
}
