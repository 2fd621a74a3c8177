/** Times and durations as people write them. */
import { wrongUsage } from '../stop.ts'

const UNITS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const

/** Milliseconds of `90d`, `12h`, `30m`; null if the text is not a duration. */
export function durationMs(text: string): number | null {
  const [, digits, unit] = /^([0-9]{1,9})([smhdw])$/.exec(text) ?? []
  return digits === undefined ? null : Number(digits) * UNITS[unit as keyof typeof UNITS]
}

/** A moment as ISO 8601 in UTC: a date, a time, or a duration before now (`direction` -1) or after it (1). */
export function moment(flag: string, text: string, direction: -1 | 1, now: number): string {
  const duration = durationMs(text)
  const time = duration === null ? isoTime(text) : now + direction * duration
  // A Date outside its supported years is NaN.
  if (time !== null && !Number.isNaN(new Date(time).getTime())) return new Date(time).toISOString()
  const way = direction < 0 ? '7d (ago)' : '90d (from now)'
  throw wrongUsage(
    `${flag} must be a time such as 2026-11-20, 2026-11-20T09:30:00Z or ${way}, not ${JSON.stringify(text)}.`,
  )
}

function isoTime(text: string): number | null {
  if (!/^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$/.test(text)) return null
  const time = Date.parse(text)
  return Number.isNaN(time) ? null : time
}
