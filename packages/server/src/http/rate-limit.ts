/**
 * Requests per second of each key. Each node grants its share of the limit, so that no request costs a look at the
 * database; the number of living nodes is what the store last heard.
 */
import type { FastifyReply } from 'fastify'
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible'
import { refuse, type Refusal } from './reply-error.ts'

export interface RateLimit {
  /** Counts one request of a key and sets the RateLimit headers; the refusal when it is one too many. */
  (reply: FastifyReply, keyId: string, requestsPerSecond: number | null): Promise<Refusal | null>
}

export interface RateLimitOptions {
  /** Of keys without a limit of their own. */
  requestsPerSecond: number
  /** How many nodes serve the store, this one included. */
  nodes: () => number
}

export function createRateLimit({ requestsPerSecond: byDefault, nodes }: RateLimitOptions): RateLimit {
  // The library has one limit per limiter; keys with the same limit share one.
  const limiters = new Map<number, RateLimiterMemory>()
  let sharedBy = nodes()
  const limiterFor = (points: number): RateLimiterMemory => {
    const known = limiters.get(points)
    if (known) return known
    const limiter = new RateLimiterMemory({ points, duration: 1 })
    limiters.set(points, limiter)
    return limiter
  }
  return async (reply, keyId, requestsPerSecond) => {
    const limit = requestsPerSecond ?? byDefault
    const living = nodes()
    // Shares have changed: those of before would only be kept for ever.
    if (living !== sharedBy) limiters.clear()
    sharedBy = living
    const points = Math.max(1, Math.floor(limit / living))
    const { allowed, state } = await limiterFor(points)
      .consume(keyId)
      .then(
        (state) => ({ allowed: true, state }),
        // It rejects with the same state when the limit is passed, and with nothing else.
        (state: RateLimiterRes) => ({ allowed: false, state }),
      )
    const seconds = Math.max(1, Math.ceil(state.msBeforeNext / 1000))
    void reply.headers({
      'ratelimit-limit': points,
      'ratelimit-remaining': state.remainingPoints,
      'ratelimit-reset': seconds,
    })
    if (allowed) return null
    const share = living === 1 ? '' : `, ${points} of them on each of ${living} nodes`
    return refuse('rate_limited', `This key may make ${limit} requests a second${share}`, {
      retryAfterSeconds: seconds,
    })
  }
}
