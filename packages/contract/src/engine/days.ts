/** Calendar days, from midnight to midnight in a time zone: of 23 or 25 hours when the clock changes. Pure. */
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const formats = new Map<string, Intl.DateTimeFormat>()
/** Bounded, because callers choose zones, and each format takes memory. */
const FORMATS_KEPT = 100

/** False: no such time zone. */
export function isZone(zone: string): boolean {
  try {
    return formatOf(zone) !== undefined
  } catch {
    return false
  }
}

/** The zone of this machine or browser. */
export const ownZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC'

/** How many milliseconds local time is ahead of UTC. */
export function offsetAt(time: number, zone: string): number {
  const parts = new Map(
    formatOf(zone)
      .formatToParts(time)
      .map(({ type, value }) => [type, Number(value)]),
  )
  const at = (name: Intl.DateTimeFormatPartTypes): number => parts.get(name) ?? 0
  const local = Date.UTC(at('year'), at('month') - 1, at('day'), at('hour'), at('minute'), at('second'))
  return local - Math.floor(time / 1_000) * 1_000
}

/**
 * The time at which clocks show a local time. If they show it twice, the first; if they skip it, the time of the
 * change.
 */
export function timeAt(local: number, zone: string): number {
  const [before, after] = [offsetAt(local - DAY_MS, zone), offsetAt(local + DAY_MS, zone)]
  const times = [local - before, local - after].filter((time) => offsetAt(time, zone) === local - time)
  return times.length > 0 ? Math.min(...times) : changeAfter(local - Math.max(before, after), zone)
}

/** Finds the minute between two hours in which the offset changes. */
function changeAfter(from: number, zone: string): number {
  const first = offsetAt(from, zone)
  let [low, high] = [from, from + 3 * HOUR_MS]
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (offsetAt(middle, zone) === first) low = middle
    else high = middle
  }
  return high
}

/** The midnight at or before a time. */
export function startOfDay(time: number, zone: string): number {
  const midnight = (local: number) => timeAt(Math.floor(local / DAY_MS) * DAY_MS, zone)
  const start = midnight(time + offsetAt(time, zone))
  // If a clock goes back over midnight, the day begins at the first midnight.
  return start <= time ? start : midnight(time + offsetAt(time, zone) - DAY_MS)
}

export const nextDay = (start: number, zone: string): number => startOfDay(start + 28 * HOUR_MS, zone)

/** `2026-11-24` */
export function dateOf(time: number, zone: string): string {
  return new Date(time + offsetAt(time, zone)).toISOString().slice(0, 10)
}

/** The starts of a window's days: the window's own start, and each midnight inside it. At most `most` + 1. */
export function daysOf({ from, to }: { from: number; to: number }, zone: string, most = Infinity): number[] {
  const starts: number[] = []
  for (let start = from; start < to && starts.length <= most; start = nextDay(startOfDay(start, zone), zone)) {
    starts.push(start)
  }
  return starts
}

/** Like `daysOf`, with the full hours of UTC. */
export function fullHoursOf({ from, to }: { from: number; to: number }, _zone = 'UTC', most = Infinity): number[] {
  const starts: number[] = []
  for (let start = from; start < to && starts.length <= most; start = Math.floor(start / HOUR_MS + 1) * HOUR_MS) {
    starts.push(start)
  }
  return starts
}

/** Like `daysOf`, with the first days of months. */
export function monthsOf({ from, to }: { from: number; to: number }, zone: string, most = Infinity): number[] {
  const starts: number[] = []
  for (let start = from; start < to && starts.length <= most;) {
    starts.push(start)
    const local = new Date(start + offsetAt(start, zone))
    start = timeAt(Date.UTC(local.getUTCFullYear(), local.getUTCMonth() + 1), zone)
  }
  return starts
}

function formatOf(zone: string): Intl.DateTimeFormat {
  const known = formats.get(zone)
  if (known) return known
  const fields = { year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric' } as const
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    hourCycle: 'h23',
    calendar: 'gregory',
    numberingSystem: 'latn',
    second: 'numeric',
    ...fields,
  })
  if (formats.size >= FORMATS_KEPT) formats.clear()
  formats.set(zone, format)
  return format
}
