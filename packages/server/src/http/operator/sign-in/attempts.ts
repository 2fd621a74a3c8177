/** Attempts to sign in, per address and per account, on this node. */
import ipaddr from 'ipaddr.js'
import { refuse, type Refusal } from '../../reply-error.ts'
import { createWindows, type Taken } from '../../windows.ts'

export interface Attempts {
  /** Counts an attempt from an address; the refusal when it is one too many. */
  from(address: string): Refusal | null
  /** The same for an account, whether there is one or not. */
  on(account: string): Refusal | null
  /** The account's attempts so far count no more, nor does this one of the address: it has succeeded. */
  succeeded(account: string, address: string): void
}

export interface AttemptLimits {
  perAddress: number
  perAccount: number
  windowSeconds: number
}

const LIMITS: AttemptLimits = { perAddress: 50, perAccount: 10, windowSeconds: 15 * 60 }

export function createAttempts({ perAddress, perAccount, windowSeconds }: AttemptLimits = LIMITS): Attempts {
  const addresses = createWindows({ windowMs: windowSeconds * 1_000 })
  const accounts = createWindows({ windowMs: windowSeconds * 1_000 })
  return {
    from: (address) => refusalOf(addresses.take(network(address), perAddress)),
    on: (account) => refusalOf(accounts.take(account, perAccount)),
    succeeded(account, address) {
      accounts.forget(account)
      // People of one house may share an address.
      addresses.giveBack(network(address))
    },
  }
}

function refusalOf({ allowed, resetMs }: Taken): Refusal | null {
  if (allowed) return null
  return refuse('rate_limited', 'Too many attempts to sign in', {
    retryAfterSeconds: Math.max(1, Math.ceil(resetMs / 1000)),
  })
}

/** An IPv4 address, also one written as IPv6 (a server on `::` sees those); of IPv6 the /64 that one client has. */
export function network(address: string): string {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(':') : parsed.toString()
}
