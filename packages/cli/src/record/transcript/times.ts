/**
 * The times of a transcript's events: its own if usable, otherwise generated. Times of a run strictly increase, so its
 * timeline keeps the message order. Pure; milliseconds.
 */
const DAY_MS = 86_400_000
const LONGEST_STEP_MS = 1_000
/** No conversation with a model is older. */
const OLDEST_MS = Date.UTC(2000, 0)

/** Time of a message in milliseconds: ISO 8601 text, or Unix time in seconds or milliseconds. Null if missing. */
export function messageTime(source: Record<string, unknown>): number | null {
  const value = source['timestamp'] ?? source['created_at']
  const text = typeof value === 'string' ? value.trim() : null
  const number = text !== null && /^\d+(\.\d+)?$/.test(text) ? Number(text) : value
  // Below this value it is seconds: they stay below it until the year 5138, and milliseconds have been above it since
  // 1973.
  const time = typeof number === 'number' ? Math.round(number < 1e11 ? number * 1000 : number) : Date.parse(text ?? '')
  return Number.isSafeInteger(time) ? time : null
}

/**
 * One time per event (null: unknown). Returns null if no time is known, or one cannot be right. An unknown time, or one
 * before its predecessor, becomes the moment just after the predecessor.
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
  // Moving many equal times forward may have passed the present, so move them back.
  for (let index = times.length - 1, bound = now; index >= 0 && (times[index] ?? 0) > bound; index--, bound--) {
    times[index] = bound
  }
  return times
}

/** Generated times: equal steps from a base, within one day. */
export function steppedTimes(base: number, count: number): number[] {
  const step = Math.max(1, Math.min(LONGEST_STEP_MS, Math.floor(DAY_MS / count)))
  return Array.from({ length: count }, (_, index) => base + index * step)
}

/**
 * The base of generated times: a moment of the day before yesterday, derived from the hash. It stays the same all day,
 * and the run ends before today.
 */
export function hashedBase(hash: string, now: number): number {
  const today = Math.floor(now / DAY_MS) * DAY_MS
  return today - 2 * DAY_MS + (Number.parseInt(hash.slice(0, 8), 16) % DAY_MS)
}
