/** Per node. A password hash takes 19 MiB and a thread that other work needs too. */
import type { FastifyRequest } from 'fastify'
import { holderOf } from '../tenants/holder.ts'
import { network } from '../tenants/network.ts'
import { refuse } from '../web/reply-error.ts'
import { createSharedTurns } from '../web/shared-turns.ts'
import { createWindows, type Taken } from '../tenants/rate-windows.ts'

export type Attempts = ReturnType<typeof createAttempts>

export interface AttemptLimits {
  perAddress: number
  perAccount: number
  /** Sign-ins that an address began at the identity provider and did not finish. */
  begunPerAddress: number
  windowSeconds: number
}

const LIMITS: AttemptLimits = { perAddress: 50, perAccount: 10, begunPerAddress: 1_000, windowSeconds: 15 * 60 }

const HASHES = {
  running: { most: 2, ofWorkspace: 1, ofCredential: 1 },
  waiting: { most: 500, ofWorkspace: 20, ofCredential: 20 },
  tooMany: refuse('overloaded', 'Too many passwords are being checked'),
}

/** An attempt counts from its start, and a success gives it back: a hundred people behind one address can sign in. */
export function createAttempts(limits: AttemptLimits = LIMITS) {
  const { perAddress, perAccount, begunPerAddress, windowSeconds } = limits
  const addresses = createWindows({ windowMs: windowSeconds * 1_000 })
  const accounts = createWindows({ windowMs: windowSeconds * 1_000 })
  const begun = createWindows({ windowMs: windowSeconds * 1_000 })
  const takeTurn = createSharedTurns(HASHES)
  return {
    from: (address: string) => check(addresses.take(network(address), perAddress)),
    mayTry: (address: string) => !addresses.isFull(network(address), perAddress),
    on: (account: string) => check(accounts.take(account, perAccount)),
    begin: (address: string) => check(begun.take(network(address), begunPerAddress)),
    finished: (address: string) => begun.giveBack(network(address)),
    /** The attempt of `from` was right, although the account is not signed in yet. */
    passed: (address: string) => addresses.giveBack(network(address)),
    succeeded(account: string, address: string): void {
      accounts.forget(account)
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
