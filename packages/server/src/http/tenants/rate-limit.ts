/** Each node grants its share of a caller's limit, so no request needs the database. */
import type { FastifyReply } from 'fastify'
import { refuse, type Refusal } from '../web/reply-error.ts'
import { createWindows, type Windows } from './rate-windows.ts'

export type RateLimit = ReturnType<typeof createRateLimit>

export interface Counted {
  limit: number
  remaining: number
  resetSeconds: number
  refusal: Refusal | null
}

export function limitRate(
  rateLimit: RateLimit,
  reply: FastifyReply,
  callerId: string,
  requestsPerSecond: number | null = null,
): Refusal | null {
  const { limit, remaining, resetSeconds, refusal } = rateLimit.count(callerId, requestsPerSecond)
  void reply
    .header('ratelimit-limit', limit)
    .header('ratelimit-remaining', remaining)
    .header('ratelimit-reset', resetSeconds)
  return refusal
}

export interface RateLimitOptions {
  requestsPerSecond: number
  nodes: () => number
  subject?: string
  windows?: Windows
}

export function createRateLimit({
  requestsPerSecond: byDefault,
  nodes,
  subject = 'key',
  windows = createWindows({ windowMs: 1_000 }),
}: RateLimitOptions) {
  let sharedBy = nodes()

  function count(callerId: string, requestsPerSecond: number | null): Counted {
    const wholeLimit = requestsPerSecond ?? byDefault
    const living = nodes()
    if (living !== sharedBy) windows.clear()
    sharedBy = living
    const limit = Math.max(1, Math.floor(wholeLimit / living))
    const { allowed, remaining, resetMs } = windows.take(callerId, limit)
    const resetSeconds = Math.max(1, Math.ceil(resetMs / 1000))
    const refusal = allowed ? null : tooMany(wholeLimit, limit, living, resetSeconds)
    return { limit, remaining, resetSeconds, refusal }
  }

  function tooMany(wholeLimit: number, limit: number, living: number, retryAfterSeconds: number): Refusal {
    const share = living === 1 ? '' : `, ${limit} on each of ${living} nodes`
    return refuse('rate_limited', `This ${subject} is limited to ${wholeLimit} requests per second${share}`, {
      retryAfterSeconds,
    })
  }

  return { count }
}
