/** Refused changes have their own limit, because they write audit entries. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { network } from '../tenants/network.ts'
import { createRateLimit, limitRate } from '../tenants/rate-limit.ts'
import { refuse, type Refusal } from '../web/reply-error.ts'
import { createWindows } from '../tenants/rate-windows.ts'

export type OperatorLimits = ReturnType<typeof createOperatorLimits>

export interface OperatorLimitsOptions {
  requestsPerSecond: number
  nodes: () => number
}

const CALLERS_PER_ADDRESS = 4
const REFUSED_CHANGES_A_MINUTE = 60

export function createOperatorLimits({ requestsPerSecond, nodes }: OperatorLimitsOptions) {
  const addresses = createRateLimit({
    requestsPerSecond: CALLERS_PER_ADDRESS * requestsPerSecond,
    nodes,
    subject: 'address',
  })
  const callers = createRateLimit({ requestsPerSecond, nodes, subject: 'token or session' })
  const refused = createWindows({ windowMs: 60_000 })
  return {
    byAddress: ({ ip }: FastifyRequest, reply: FastifyReply) => limitRate(addresses, reply, network(ip)),
    byCaller: (callerId: string, reply: FastifyReply) => limitRate(callers, reply, callerId),
    ofRefusedChanges(callerId: string): Refusal | null {
      const { allowed, resetMs } = refused.take(callerId, REFUSED_CHANGES_A_MINUTE)
      if (allowed) return null
      return refuse(
        'rate_limited',
        `${REFUSED_CHANGES_A_MINUTE} changes by this caller were refused within a minute; wait before you try again`,
        {
          retryAfterSeconds: Math.max(1, Math.ceil(resetMs / 1000)),
        },
      )
    },
  }
}
