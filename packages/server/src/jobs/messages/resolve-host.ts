/**
 * `dns.lookup` waits on threads of the whole process: a few names with a silent name server would stop every delivery.
 */
import type { LookupAddress } from 'node:dns'
import { lookup, Resolver } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { LRUCache } from 'lru-cache'

export type ResolveHost = (host: string) => Promise<LookupAddress[]>

export interface ResolveOptions {
  servers?: readonly string[]
  /** Timeout of each of the two attempts. */
  timeoutMs?: number
  now?: () => number
}

const ATTEMPTS = 2
const KEPT_MS = 30_000
/** A receiver that was just set up must not stay unknown for long. */
const FAILURE_KEPT_MS = 5_000
const NAMES_KEPT = 1_000
const HOSTS_FILE = '/etc/hosts'

export function createHostResolver(options: ResolveOptions = {}): ResolveHost {
  const { servers, timeoutMs = 2_000, now = () => performance.now() } = options
  const resolver = new Resolver({ timeout: timeoutMs, tries: ATTEMPTS })
  if (servers) resolver.setServers(servers)
  const kept = new LRUCache<string, { addresses: Promise<LookupAddress[]>; until: number }>({ max: NAMES_KEPT })

  return (host) => {
    const known = kept.get(host)
    if (known && now() < known.until) return known.addresses
    const addresses = resolve(host)
    const entry = { addresses, until: Infinity }
    kept.set(host, entry)
    addresses.then(
      () => (entry.until = now() + KEPT_MS),
      () => (entry.until = now() + FAILURE_KEPT_MS),
    )
    return addresses
  }

  async function resolve(host: string): Promise<LookupAddress[]> {
    const family = isIP(host)
    if (family !== 0) return [{ address: host, family }]
    // Only the system knows these names. No tenant can make it ask their own name server.
    if (!host.includes('.') || (await isInHostsFile(host))) return lookup(host, { all: true })
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
    const found = [addressesOf(v4, 4), addressesOf(v6, 6)].flat()
    if (found.length === 0 && v4.status === 'rejected') throw v4.reason
    return found
  }
}

function addressesOf(result: PromiseSettledResult<string[]>, family: 4 | 6): LookupAddress[] {
  return result.status === 'fulfilled' ? result.value.map((address) => ({ address, family })) : []
}

async function isInHostsFile(host: string): Promise<boolean> {
  const text = await readFile(HOSTS_FILE, 'utf8').catch(() => '')
  const names = text.split('\n').flatMap((line) => line.replace(/#.*/, '').trim().split(/\s+/).slice(1))
  return names.some((name) => name.toLowerCase() === host.toLowerCase())
}
