/** When to try again. Pure. */

const FIRST_DELAY_MS = 1_000
const LONGEST_DELAY_MS = 30_000

/** Wait before attempt `attempt` + 1 (0 is the first): full jitter under a doubling bound, never less than asked for. */
export function retryDelayMs(attempt: number, retryAfterMs: number | null, random: () => number): number {
  const bound = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** attempt)
  const jitter = random() * bound
  // Clients that were told the same second must not come back in the same millisecond.
  return Math.round(retryAfterMs === null ? jitter : Math.max(jitter, retryAfterMs + random() * 100))
}
