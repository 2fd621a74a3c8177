/** Each node grants its share of a caller's limit, so no request needs the database. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import ipaddr from 'ipaddr.js'
import { refuse, type Refusal } from '../web/reply-error.ts'
import type { Holder } from '../../storage/engine/turns-by-workspace.ts'

export type RateLimit = ReturnType<typeof createRateLimit>

interface Counted {
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

interface RateLimitOptions {
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

export interface Taken {
  allowed: boolean
  remaining: number
  resetMs: number
}

type Windows = ReturnType<typeof createWindows>

interface WindowsOptions {
  windowMs: number
  monotonicNow?: () => number
  maxSubjects?: number
}

interface Window {
  used: number
  endsAt: number
}

const MAX_SUBJECTS = 50_000

export function createWindows({
  windowMs,
  monotonicNow = () => performance.now(),
  maxSubjects = MAX_SUBJECTS,
}: WindowsOptions) {
  // Not `max`, which would reserve the memory of all subjects at once: 1.4 MB.
  const windows = new LRUCache<string, Window>({ maxSize: maxSubjects, sizeCalculation: () => 1 })

  return {
    take(subject: string, points: number): Taken {
      const now = monotonicNow()
      let window = windows.get(subject)
      if (window === undefined) {
        window = { used: 0, endsAt: now + windowMs }
        windows.set(subject, window)
      } else if (window.endsAt <= now) {
        window.used = 0
        window.endsAt = now + windowMs
      }
      const allowed = window.used < points
      if (allowed) window.used += 1
      return { allowed, remaining: Math.max(0, points - window.used), resetMs: window.endsAt - now }
    },
    isFull(subject: string, points: number): boolean {
      const window = windows.get(subject)
      return window !== undefined && window.endsAt > monotonicNow() && window.used >= points
    },
    giveBack(subject: string): void {
      const window = windows.get(subject)
      if (window && window.used > 0) window.used -= 1
    },
    forget: (subject: string) => void windows.delete(subject),
    clear: () => windows.clear(),
    size: () => windows.size,
  }
}

/** Before the workspace is known, the operator or the address stands for it. */
export function holderOf({ apiKey, operator, actor, ip }: FastifyRequest): Holder {
  if (apiKey) return { workspace: apiKey.workspaceId, credential: apiKey.id }
  const credential = actor?.id ?? network(ip)
  return { workspace: operator?.workspace?.id ?? credential, credential }
}

/** The IPv4 address, even if mapped to IPv6; for IPv6 the /64, because one client has all of it. */
export function network(address: string): string {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(':') : parsed.toString()
}
