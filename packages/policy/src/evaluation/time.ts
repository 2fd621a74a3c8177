const SECOND = 1_000_000_000n
const MILLISECOND = 1_000_000n
// 0001-01-01T00:00:00Z and 9999-12-31T23:59:59.999999999Z, as in google.protobuf.Timestamp.
const FIRST = -62_135_596_800n * SECOND
const LAST = 253_402_300_800n * SECOND - 1n
const LONGEST = 2n ** 63n - 1n

/** A point in time, in nanoseconds since 1970. */
export class Timestamp {
  readonly nanos: bigint
  private constructor(nanos: bigint) {
    this.nanos = nanos
  }

  /** Undefined outside the years 1 to 9999. */
  static of(nanos: bigint): Timestamp | undefined {
    return nanos < FIRST || nanos > LAST ? undefined : new Timestamp(nanos)
  }

  get seconds(): bigint {
    return floorDivide(this.nanos, SECOND)
  }

  get milliseconds(): number {
    return Number(floorDivide(this.nanos, MILLISECOND))
  }
}

export class Duration {
  readonly nanos: bigint
  private constructor(nanos: bigint) {
    this.nanos = nanos
  }

  /** Undefined beyond 292 years: 64 bits of nanoseconds, as in other CEL engines. */
  static of(nanos: bigint): Duration | undefined {
    return nanos < -LONGEST || nanos > LONGEST ? undefined : new Duration(nanos)
  }
}

export function timestampOfMilliseconds(milliseconds: number): Timestamp | undefined {
  return Number.isFinite(milliseconds) ? Timestamp.of(BigInt(Math.floor(milliseconds)) * MILLISECOND) : undefined
}

export function timestampOfSeconds(seconds: bigint): Timestamp | undefined {
  return Timestamp.of(seconds * SECOND)
}

const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:Z|([+-])(\d\d):(\d\d))$/

/** Maximum UTF-16 units of a text to parse as a number, time or duration. */
export const LONGEST_NUMBER = 100

/**
 * RFC 3339 only, for example 2026-11-20T09:00:00.5+01:00; no other formats of the host's date parser. Digits after the
 * nanoseconds are dropped.
 */
export function parseTimestamp(text: string): Timestamp | undefined {
  const match = text.length > LONGEST_NUMBER ? null : RFC_3339.exec(text)
  if (!match) return undefined
  const [, year, month, day, hour, minute, second, fraction = '', sign, offsetHour = '0', offsetMinute = '0'] = match
  const date = new Date(0)
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day))
  const isCalendarDay = date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === Number(day)
  if (!isCalendarDay || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined
  if (Number(offsetHour) > 23 || Number(offsetMinute) > 59) return undefined
  date.setUTCHours(Number(hour), Number(minute), Number(second))
  const offset = (Number(offsetHour) * 60 + Number(offsetMinute)) * (sign === '-' ? -60_000 : 60_000)
  return Timestamp.of(BigInt(date.getTime() - offset) * MILLISECOND + BigInt(fraction.slice(0, 9).padEnd(9, '0')))
}

const UNITS = new Map([
  ['h', 3600n * SECOND],
  ['m', 60n * SECOND],
  ['s', SECOND],
  ['ms', MILLISECOND],
  ['us', 1000n],
  ['µs', 1000n],
  ['ns', 1n],
])
const DURATION = /^[+-]?(?:\d{1,18}(?:\.\d{0,18})?(?:h|ms|m|s|us|µs|ns))+$/
const DURATION_PART = /(\d+)(?:\.(\d*))?(h|ms|m|s|us|µs|ns)/g

/** A duration such as 1h30m or -1.5s. */
export function parseDuration(text: string): Duration | undefined {
  if (text.length > LONGEST_NUMBER || !DURATION.test(text)) return undefined
  let nanos = 0n
  for (const [, whole = '', fraction = '', unit = ''] of text.matchAll(DURATION_PART)) {
    const size = UNITS.get(unit) ?? 0n
    nanos += BigInt(whole) * size + (BigInt(fraction || '0') * size) / 10n ** BigInt(fraction.length)
  }
  return Duration.of(text.startsWith('-') ? -nanos : nanos)
}

/** Formats in UTC: 2026-11-20T08:00:00.5Z. */
export function showTimestamp({ seconds, nanos }: Timestamp): string {
  const [whole = ''] = new Date(Number(seconds) * 1000).toISOString().split('.')
  return `${whole}${showFraction(nanos - seconds * SECOND)}Z`
}

/** Formats in seconds: 5400s, -1.5s. */
export function showDuration({ nanos }: Duration): string {
  const size = nanos < 0n ? -nanos : nanos
  return `${nanos < 0n ? '-' : ''}${size / SECOND}${showFraction(size % SECOND)}s`
}

function showFraction(nanos: bigint): string {
  return nanos === 0n ? '' : `.${String(nanos).padStart(9, '0').replace(/0+$/, '')}`
}

/** Rounds down, also before 1970. */
function floorDivide(dividend: bigint, divisor: bigint): bigint {
  const quotient = dividend / divisor
  return dividend % divisor < 0n ? quotient - 1n : quotient
}
