/** Attempts to sign in, per address and per account, on this node. */
import ipaddr from 'ipaddr.js'
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

/** An IPv4 address, also one written as IPv6 (a server on `::` sees those); of IPv6 the /64 that one client has. */
function network(address: string): string {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(':') : parsed.toString()
}
