/**
 * Requests per second of each caller. Each node grants its share of the limit, so that no request costs a look at the
 * database; the number of living nodes is what the store last heard.
 */
import type { FastifyReply } from 'fastify'
import { refuse, type Refusal } from './reply-error.ts'
import { createWindows, type Windows } from './windows.ts'

export interface RateLimit {
  /** Counts one request of a caller and sets the RateLimit headers; the refusal when it is one too many. */
  (reply: FastifyReply, callerId: string, requestsPerSecond: number | null): Refusal | null
}

export interface RateLimitOptions {
  /** Of callers without a limit of their own. */
  requestsPerSecond: number
  /** How many nodes serve the store, this one included. */
  nodes: () => number
  /** What the limit belongs to, as the refusal names it. */
  subject?: string
  windows?: Windows
}

export function createRateLimit({
  requestsPerSecond: byDefault,
  nodes,
  subject = 'key',
  windows = createWindows({ windowMs: 1_000 }),
}: RateLimitOptions): RateLimit {
  let sharedBy = nodes()
  return (reply, callerId, requestsPerSecond) => {
    const limit = requestsPerSecond ?? byDefault
    const living = nodes()
    // With other shares, everybody starts anew.
    if (living !== sharedBy) windows.clear()
    sharedBy = living
    const points = Math.max(1, Math.floor(limit / living))
    const { allowed, remaining, resetMs } = windows.take(callerId, points)
    const seconds = Math.max(1, Math.ceil(resetMs / 1000))
    void reply
      .header('ratelimit-limit', points)
      .header('ratelimit-remaining', remaining)
      .header('ratelimit-reset', seconds)
    if (allowed) return null
    const share = living === 1 ? '' : `, ${points} of them on each of ${living} nodes`
    return refuse('rate_limited', `This ${subject} may make ${limit} requests a second${share}`, {
      retryAfterSeconds: seconds,
    })
  }
}
