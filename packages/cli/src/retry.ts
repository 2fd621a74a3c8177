/** When to try again. Pure. */

const FIRST_DELAY_MS = 1_000
const LONGEST_DELAY_MS = 30_000
const LONGEST_RETRY_AFTER_MS = 5 * 60_000

/** Wait before attempt `attempt` + 1 (0 is the first): full jitter under a doubling bound, never less than asked for. */
export function retryDelayMs(attempt: number, retryAfterMs: number | null, random: () => number): number {
  const bound = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** attempt)
  const jitter = random() * bound
  // Clients that were told the same second must not come back in the same millisecond.
  return Math.round(retryAfterMs === null ? jitter : Math.max(jitter, retryAfterMs + random() * 100))
}

/** Milliseconds of a Retry-After header (seconds or an HTTP date), bounded; null when there is none to use. */
export function retryAfterMs(header: string | null, now: number): number | null {
  if (header === null) return null
  const text = header.trim()
  const wait = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now
  if (Number.isNaN(wait)) return null
  return Math.min(Math.max(wait, 0), LONGEST_RETRY_AFTER_MS)
}

export function isRetryableStatus(status: number): boolean {
  return status === 408 || status === 429 || status >= 500
}
