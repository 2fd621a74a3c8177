/** Sends webhook requests to public addresses only, to prevent server-side request forgery. */
import { lookup as lookupAll } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { Agent, request as requestWith } from 'undici'
import type { WebhookMessage } from '../domain/webhook.ts'

const TIMEOUT_MS = 10_000
const RESPONSE_BYTES = 64 * 1024

export type Sent = { ok: true; status: number } | { ok: false; status: number | null; error: string }

export interface WebhookSender {
  /** Why this address is not allowed, to append to the field name; null if it is allowed. Resolves the host. */
  check(url: string): Promise<string | null>
  send(url: string, message: WebhookMessage): Promise<Sent>
  close(): Promise<void>
}

/** `allowed`: private networks that webhooks may reach. */
export function createWebhookSender(allowed: readonly string[]): WebhookSender {
  const guard = addressGuard(allowed)
  // Checks the address during DNS resolution: the connection uses the same address without a second lookup.
  const checkedLookup: LookupFunction = (hostname, options, callback) => {
    lookupAll(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, [])
      const refused = addresses.map(({ address }) => guard(address)).find((fault) => fault !== null)
      if (refused) return callback(new Error(`The address ${refused}`), [])
      const [first] = addresses
      if (options.all || !first) callback(null, addresses)
      else callback(null, first.address, first.family)
    })
  }
  // Load the library for the first message: most installations send none.
  let opened: Promise<{ agent: Agent; request: typeof requestWith }> | null = null
  async function open() {
    const { default: undici } = await import('undici')
    const connect = { lookup: checkedLookup, timeout: TIMEOUT_MS }
    const timeouts = { headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS }
    return {
      agent: new undici.Agent({ connect, ...timeouts, maxResponseSize: RESPONSE_BYTES }),
      request: undici.request,
    }
  }

  return {
    async check(given) {
      const url = URL.parse(given)
      if (url === null || !['http:', 'https:'].includes(url.protocol)) return 'must be an http or https address'
      if (url.username !== '' || url.password !== '') return 'must not contain a user or password'
      return lookup(literalOf(url), { all: true }).then(
        (addresses) => addresses.map(({ address }) => guard(address)).find((fault) => fault !== null) ?? null,
        () => 'names a host that does not resolve',
      )
    },
    async send(url, { headers, body }) {
      // A literal address connects without a lookup.
      const literal = literalOf(new URL(url))
      const refused = isIP(literal) === 0 ? null : guard(literal)
      if (refused) return { ok: false, status: null, error: `The address ${refused}` }
      try {
        const { agent, request } = await (opened ??= open())
        const signal = AbortSignal.timeout(TIMEOUT_MS)
        // Do not follow redirects: they could bypass the address check.
        const response = await request(url, { method: 'POST', headers, body, dispatcher: agent, signal })
        const status = response.statusCode
        await response.body.dump({ limit: RESPONSE_BYTES })
        if (status >= 200 && status < 300) return { ok: true, status }
        return { ok: false, status, error: `The receiver answered ${status}` }
      } catch (error) {
        return { ok: false, status: null, error: reasonOf(error) }
      }
    },
    async close() {
      await (await opened)?.agent.close()
    },
  }
}

/** Why a connection to an address is not allowed, or null. */
function addressGuard(allowed: readonly string[]): (address: string) => string | null {
  const networks = allowed.filter((network) => !NAMED.has(network)).map(parseNetwork)
  return (address) => {
    const parsed = ipaddr.process(address)
    const range = rangeOf(parsed)
    if (range === 'unicast' || [...NAMED].some(([name, known]) => known.includes(range) && allowed.includes(name)))
      return null
    if (networks.some(([network, bits]) => network.kind() === parsed.kind() && parsed.match(network, bits))) return null
    return `resolves to ${address}, which is not public (${range}); allow it with --webhook-networks`
  }
}

/**
 * The library's range name. Of IPv6, only 2000::/3 is assigned (RFC 4291 2.4), but the library calls the rest unicast
 * too.
 */
function rangeOf(address: ipaddr.IPv4 | ipaddr.IPv6): string {
  const range = address.range()
  const isUnassigned = address instanceof ipaddr.IPv6 && (address.parts[0] ?? 0) >> 13 !== 1
  return range === 'unicast' && isUnassigned ? 'reserved' : range
}

/** Names of networks in settings, and the library's names for their ranges. */
const NAMED = new Map([
  ['loopback', ['loopback']],
  ['linklocal', ['linkLocal']],
  ['uniquelocal', ['private', 'uniqueLocal']],
])

/** Removes the brackets that a URL puts around an IPv6 address. */
function literalOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}

function parseNetwork(network: string): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  if (network.includes('/')) return ipaddr.parseCIDR(network)
  const address = ipaddr.parse(network)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}

/** A sentence without internal addresses, stacks or bodies. */
function reasonOf(error: unknown): string {
  const { name, message, code } = error as NodeJS.ErrnoException
  if (name === 'TimeoutError' || code?.includes('TIMEOUT')) return `No answer within ${TIMEOUT_MS / 1000} seconds`
  return message || code || 'The connection failed'
}
