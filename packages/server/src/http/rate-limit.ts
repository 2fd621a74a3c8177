/** Requests per second of each key, on this node. */
import type { FastifyReply } from 'fastify'
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible'
import { refuse, type Refusal } from './reply-error.ts'

export interface RateLimit {
  /** Counts one request of a key and sets the RateLimit headers; the refusal when it is one too many. */
  (reply: FastifyReply, keyId: string, requestsPerSecond: number | null): Promise<Refusal | null>
}

export function createRateLimit(requestsPerSecondDefault: number): RateLimit {
  // The library has one limit per limiter; keys with the same limit share one.
  const limiters = new Map<number, RateLimiterMemory>()
  const limiterFor = (points: number): RateLimiterMemory => {
    const known = limiters.get(points)
    if (known) return known
    const limiter = new RateLimiterMemory({ points, duration: 1 })
    limiters.set(points, limiter)
    return limiter
  }
  return async (reply, keyId, requestsPerSecond) => {
    const points = requestsPerSecond ?? requestsPerSecondDefault
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
    return refuse('rate_limited', `This key may make ${points} requests a second`, { retryAfterSeconds: seconds })
  }
}
