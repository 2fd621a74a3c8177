/** Limits sign-in attempts on each node. A password hash takes 19 MiB and a thread that other work needs too. */
import type { FastifyRequest, FastifyReply } from 'fastify'
import { holderOf, network, createWindows, type Taken, createRateLimit, limitRate } from '../tenants/rate-limit.ts'
import { refuse, type Refusal } from '../web/reply-error.ts'
import { createSharedTurns } from '../web/turns.ts'

export type Attempts = ReturnType<typeof createAttempts>

interface AttemptLimits {
  perAddress: number
  perAccount: number
  /** Sign-ins of one address that began at the identity provider and have not finished. */
  begunPerAddress: number
  windowSeconds: number
}

const LIMITS: AttemptLimits = { perAddress: 50, perAccount: 10, begunPerAddress: 1_000, windowSeconds: 15 * 60 }

const HASHES = {
  running: { most: 2, ofWorkspace: 1, ofCredential: 1 },
  waiting: { most: 500, ofWorkspace: 20, ofCredential: 20 },
  tooMany: refuse('overloaded', 'Too many passwords are being checked'),
}

/**
 * An attempt counts from its start, and a success is subtracted again, so that a hundred people behind one address can
 * sign in.
 */
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
    /** The password of the attempt was right, although the account is not signed in yet. */
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

/** Refused changes have their own limit, because they write audit entries. */

export type OperatorLimits = ReturnType<typeof createOperatorLimits>

interface OperatorLimitsOptions {
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
