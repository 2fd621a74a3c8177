/** Pure: clock and randomness are parameters. */

const BACKOFF_BASE_MS = 1_000
const BACKOFF_MAX_MS = 30_000
/** Cap on Retry-After, so that a server's mistake does not silence a client for a day. */
const RETRY_AFTER_MAX_MS = 300_000
/** Added to Retry-After, so that clients do not all return at once. */
const RETRY_AFTER_SPREAD_MS = 500

/** Wait after the service refused the key. */
export const REFUSED_MS = 300_000

/** Full jitter: from 0 to a bound that doubles with each failure. `failures` counts consecutive failures from 1. */
export function backoffMs(failures: number, random: number): number {
  return random * Math.min(BACKOFF_MAX_MS, BACKOFF_BASE_MS * 2 ** (failures - 1))
}

/** In seconds or as an HTTP date; undefined if absent or malformed. */
export function retryAfterMs(header: string | null, now: number): number | undefined {
  if (!header) return undefined
  const wait = /^\s*\d+(\.\d+)?\s*$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - now
  return Number.isNaN(wait) ? undefined : Math.min(Math.max(wait, 0), RETRY_AFTER_MAX_MS)
}

/** Never less than Retry-After. */
export function waitMs(failures: number, retryAfter: string | null, now: number, random: number): number {
  return delayMs(failures, retryAfterMs(retryAfter, now), random)
}

/** `asked` is a Retry-After in milliseconds. */
export function delayMs(failures: number, asked = -RETRY_AFTER_SPREAD_MS, random: number): number {
  return Math.max(backoffMs(failures, random), asked + random * RETRY_AFTER_SPREAD_MS)
}
