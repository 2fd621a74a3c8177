/** Cached keys are never refused here, so other clients behind the address are not blocked. */
import type { FastifyRequest } from 'fastify'
import { network } from './network.ts'
import { refuse, type Refusal } from '../web/reply-error.ts'
import { createWindows } from './rate-windows.ts'

export type UnknownKeys = ReturnType<typeof createUnknownKeys>

const PER_ADDRESS_A_SECOND = 500

export interface UnknownKeysOptions {
  perSecond?: number
  monotonicNow?: () => number
}

export function createUnknownKeys({ perSecond = PER_ADDRESS_A_SECOND, ...clock }: UnknownKeysOptions = {}) {
  const addresses = createWindows({ windowMs: 1_000, ...clock })
  return {
    count: ({ ip }: Pick<FastifyRequest, 'ip'>) => void addresses.take(network(ip), perSecond),
    refusal({ ip }: Pick<FastifyRequest, 'ip'>): Refusal | null {
      if (!addresses.isFull(network(ip), perSecond)) return null
      return refuse('rate_limited', `This address sent ${perSecond} invalid keys within a second`)
    },
  }
}
