/**
 * The times of a transcript's events: its own if usable, otherwise generated. Times of a run strictly increase, so its
 * timeline keeps the message order. Pure; milliseconds.
 */
const DAY_MS = 86_400_000
const LONGEST_STEP_MS = 1_000
/** A conversation with a model cannot be earlier. */
const OLDEST_MS = Date.UTC(2000, 0)

/** Time of a message in milliseconds: ISO 8601 text, or Unix time in seconds or milliseconds. Null if missing. */
export function messageTime(source: Record<string, unknown>): number | null {
  const value = source['timestamp'] ?? source['created_at']
  const text = typeof value === 'string' ? value.trim() : null
  const number = text !== null && /^\d+(\.\d+)?$/.test(text) ? Number(text) : value
  // Seconds stay below this until the year 5138; milliseconds are above it since 1973.
  const time = typeof number === 'number' ? Math.round(number < 1e11 ? number * 1000 : number) : Date.parse(text ?? '')
  return Number.isSafeInteger(time) ? time : null
}

/**
 * Returns one time per event from the known ones (null: unknown); null if none is known, or one cannot be true. An unknown time,
 * or one that steps back, becomes the time just after the previous one.
 */
export function ownTimes(known: readonly (number | null)[], now: number): number[] | null {
  const knownTimes = known.filter((time) => time !== null)
  const first = known.findIndex((time) => time !== null)
  if (first === -1 || knownTimes.some((time) => time < OLDEST_MS || time > now)) return null
  const times: number[] = []
  let last = (known[first] ?? 0) - first - 1
  for (const time of known) {
    last = Math.max(last + 1, time ?? 0)
    times.push(last)
  }
  // Many messages with the same time may have been moved past the present.
  for (let index = times.length - 1, bound = now; index >= 0 && (times[index] ?? 0) > bound; index--, bound--) {
    times[index] = bound
  }
  return times
}

/** Generated times: equal steps from a base, at most one day in total. */
export function steppedTimes(base: number, count: number): number[] {
  const step = Math.max(1, Math.min(LONGEST_STEP_MS, Math.floor(DAY_MS / count)))
  return Array.from({ length: count }, (_, index) => base + index * step)
}

/**
 * Base of generated times: a moment of the day before yesterday, chosen by the hash. It stays the same all day, and the
 * run ends before today.
 */
export function hashedBase(hash: string, now: number): number {
  const today = Math.floor(now / DAY_MS) * DAY_MS
  return today - 2 * DAY_MS + (Number.parseInt(hash.slice(0, 8), 16) % DAY_MS)
}
