/**
 * What a caller of the operator API may ask. Each request counts by its address, before its credential is looked up,
 * and then by its token or session. Refused changes leave audit entries, so they have a limit of their own.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { createRateLimit, limitRate } from '../rate-limit.ts'
import { refuse, type Refusal } from '../reply-error.ts'
import { createWindows } from '../windows.ts'
import { network } from './sign-in/attempts.ts'

export interface OperatorLimits {
  byAddress(request: FastifyRequest, reply: FastifyReply): Refusal | null
  byCaller(callerId: string, reply: FastifyReply): Refusal | null
  /** Counts a refused change; the refusal to answer instead when it is one too many to be logged. */
  ofRefusedChanges(callerId: string): Refusal | null
}

export interface OperatorLimitsOptions {
  /** Of each token and session; an address, which several callers may share, has four times as many. */
  requestsPerSecond: number
  nodes: () => number
}

const CALLERS_PER_ADDRESS = 4
const REFUSED_CHANGES_A_MINUTE = 60

export function createOperatorLimits({ requestsPerSecond, nodes }: OperatorLimitsOptions): OperatorLimits {
  const addresses = createRateLimit({
    requestsPerSecond: CALLERS_PER_ADDRESS * requestsPerSecond,
    nodes,
    subject: 'address',
  })
  const callers = createRateLimit({ requestsPerSecond, nodes, subject: 'token or session' })
  const refused = createWindows({ windowMs: 60_000 })
  return {
    byAddress: ({ ip }, reply) => limitRate(addresses, reply, network(ip)),
    byCaller: (callerId, reply) => limitRate(callers, reply, callerId),
    ofRefusedChanges(callerId) {
      const { allowed, resetMs } = refused.take(callerId, REFUSED_CHANGES_A_MINUTE)
      if (allowed) return null
      return refuse('rate_limited', `${REFUSED_CHANGES_A_MINUTE} changes of this caller were refused within a minute`, {
        retryAfterSeconds: Math.max(1, Math.ceil(resetMs / 1000)),
      })
    },
  }
}
