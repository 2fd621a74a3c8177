/**
 * When the events of a transcript happened: times of its own where it has usable ones, made-up ones otherwise. All
 * times of a run strictly increase, so that its timeline keeps the order of the messages. Pure; milliseconds.
 */
import { LIMITS } from '@tacho/contract/limits.ts'

const DAY_MS = 86_400_000
const LONGEST_STEP_MS = 1_000
/** What is nearly too old would be too old before it arrives. */
const MARGIN_MS = 3_600_000

/** Time of a message in milliseconds: ISO 8601 text, or Unix time in seconds or milliseconds. Null when there is none. */
export function messageTime(source: Record<string, unknown>): number | null {
  const value = source['timestamp'] ?? source['created_at']
  const text = typeof value === 'string' ? value.trim() : null
  const number = text !== null && /^\d+(\.\d+)?$/.test(text) ? Number(text) : value
  // Seconds until the year 5138 are less than this, milliseconds since 1973 are more.
  const time = typeof number === 'number' ? Math.round(number < 1e11 ? number * 1000 : number) : Date.parse(text ?? '')
  return Number.isSafeInteger(time) ? time : null
}

/**
 * One time per event from those that are known (null: unknown), or null when none is known or one lies outside of what
 * the service takes. An unknown time follows the one before it; a time that steps back is moved to just after it.
 */
export function ownTimes(known: readonly (number | null)[], now: number): number[] | null {
  const given = known.filter((time) => time !== null)
  const first = known.findIndex((time) => time !== null)
  if (first === -1 || given.some((time) => time < now - LIMITS.eventPastMs + MARGIN_MS || time > now)) return null
  const times: number[] = []
  let last = (known[first] ?? 0) - first - 1
  for (const time of known) {
    last = Math.max(last + 1, time ?? 0)
    times.push(last)
  }
  // Many messages of one instant may have been moved past the present.
  for (let index = times.length - 1, bound = now; index >= 0 && (times[index] ?? 0) > bound; index--, bound--) {
    times[index] = bound
  }
  return times
}

/** Made-up times: equal steps from a base, at most a day in all. */
export function steppedTimes(base: number, count: number): number[] {
  const step = Math.max(1, Math.min(LONGEST_STEP_MS, Math.floor(DAY_MS / count)))
  return Array.from({ length: count }, (_, index) => base + index * step)
}

/**
 * Base of made-up times: a moment of the day before yesterday that the hash decides. It is the same all day long, and
 * the run is over before today begins.
 */
export function hashedBase(hash: string, now: number): number {
  const today = Math.floor(now / DAY_MS) * DAY_MS
  return today - 2 * DAY_MS + (Number.parseInt(hash.slice(0, 8), 16) % DAY_MS)
}
