/** Retry delays. Pure. */

const FIRST_DELAY_MS = 1_000
const LONGEST_DELAY_MS = 30_000

/** Delay after attempt `attempt` (from 0): full jitter under a doubling bound, never below Retry-After. */
export function retryDelayMs(attempt: number, retryAfterMs: number | null, random: () => number): number {
  const bound = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** attempt)
  const jitter = random() * bound
  // Clients with the same Retry-After must not all return in the same millisecond.
  return Math.round(retryAfterMs === null ? jitter : Math.max(jitter, retryAfterMs + random() * 100))
}
