/** Attempts to sign in, per address and per account, on this node. */
import { isIPv6 } from 'node:net'
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible'
import { refuse, type Refusal } from '../../reply-error.ts'

export interface Attempts {
  /** Counts an attempt from an address; the refusal when it is one too many. */
  from(address: string): Promise<Refusal | null>
  /** The same for an account, whether there is one or not. */
  on(account: string): Promise<Refusal | null>
  /** The account's attempts so far count no more, nor does this one of the address: it has succeeded. */
  succeeded(account: string, address: string): Promise<void>
}

export interface AttemptLimits {
  perAddress: number
  perAccount: number
  windowSeconds: number
}

const LIMITS: AttemptLimits = { perAddress: 50, perAccount: 10, windowSeconds: 15 * 60 }

export function createAttempts({ perAddress, perAccount, windowSeconds }: AttemptLimits = LIMITS): Attempts {
  const addresses = new RateLimiterMemory({ points: perAddress, duration: windowSeconds })
  const accounts = new RateLimiterMemory({ points: perAccount, duration: windowSeconds })
  return {
    from: (address) => consume(addresses, network(address)),
    on: (account) => consume(accounts, account),
    async succeeded(account, address) {
      await accounts.delete(account)
      // People of one house may share an address.
      await addresses.reward(network(address), 1)
    },
  }
}

function consume(limiter: RateLimiterMemory, key: string): Promise<Refusal | null> {
  return limiter.consume(key).then(
    () => null,
    // It rejects with its state when the limit is passed, and with nothing else.
    ({ msBeforeNext }: RateLimiterRes) =>
      refuse('rate_limited', 'Too many attempts to sign in', {
        retryAfterSeconds: Math.max(1, Math.ceil(msBeforeNext / 1000)),
      }),
  )
}

/** Whoever has one IPv6 address has 2^64 of them. */
function network(address: string): string {
  if (!isIPv6(address)) return address
  const [head = '', tail] = address.split('::')
  const groups = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const filled =
    tail === undefined
      ? groups
      : [...groups, ...Array(Math.max(0, 8 - groups.length - after.length)).fill('0'), ...after]
  return filled.slice(0, 4).join(':')
}
