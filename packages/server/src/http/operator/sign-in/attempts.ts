/** Per node. A password hash takes 19 MiB and a thread that other work needs too. */
import type { FastifyRequest } from 'fastify'
import { holderOf } from '../../holder.ts'
import { network } from '../../network.ts'
import { refuse } from '../../reply-error.ts'
import { createSharedTurns } from '../../shared-turns.ts'
import { createWindows, type Taken } from '../../rate-windows.ts'

export type Attempts = ReturnType<typeof createAttempts>

export interface AttemptLimits {
  perAddress: number
  perAccount: number
  windowSeconds: number
}

const LIMITS: AttemptLimits = { perAddress: 50, perAccount: 10, windowSeconds: 15 * 60 }

const HASHES = {
  running: { most: 2, ofWorkspace: 1, ofCredential: 1 },
  waiting: { most: 500, ofWorkspace: 20, ofCredential: 20 },
  tooMany: refuse('overloaded', 'Too many passwords are being checked'),
}

export function createAttempts({ perAddress, perAccount, windowSeconds }: AttemptLimits = LIMITS) {
  const addresses = createWindows({ windowMs: windowSeconds * 1_000 })
  const accounts = createWindows({ windowMs: windowSeconds * 1_000 })
  const takeTurn = createSharedTurns(HASHES)
  return {
    from: (address: string) => check(addresses.take(network(address), perAddress)),
    on: (account: string) => check(accounts.take(account, perAccount)),
    succeeded(account: string, address: string): void {
      accounts.forget(account)
      // People in one household can share an address.
      addresses.giveBack(network(address))
    },
    inTurn: <Result>(request: FastifyRequest, run: () => Promise<Result>) =>
      takeTurn({ holder: holderOf(request), isOver: () => request.raw.socket.destroyed, run }),
  }
}

function check({ allowed, resetMs }: Taken): void {
  if (allowed) return
  throw refuse('rate_limited', 'Too many sign-in attempts', {
    retryAfterSeconds: Math.max(1, Math.ceil(resetMs / 1000)),
  })
}
