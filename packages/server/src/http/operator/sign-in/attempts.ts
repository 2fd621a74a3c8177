/** Limits sign-in attempts per address and per account, on this node. */
import ipaddr from 'ipaddr.js'
import { refuse, type Refusal } from '../../reply-error.ts'
import { createWindows, type Taken } from '../../windows.ts'

export interface Attempts {
  /** Counts an attempt from an address; returns a refusal over the limit. */
  from(address: string): Refusal | null
  /** Counts an attempt on an account, whether or not it exists. */
  on(account: string): Refusal | null
  /** Clears the account's attempts and this attempt of the address after a success. */
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
      // People in one household can share an address.
      addresses.giveBack(network(address))
    },
  }
}

function refusalOf({ allowed, resetMs }: Taken): Refusal | null {
  if (allowed) return null
  return refuse('rate_limited', 'Too many sign-in attempts', {
    retryAfterSeconds: Math.max(1, Math.ceil(resetMs / 1000)),
  })
}

/** An IPv4 address, including one mapped to IPv6 (as on `::`); for IPv6, the /64 that one client has. */
export function network(address: string): string {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(':') : parsed.toString()
}
