/** Sends to public and allowed addresses only, against server-side request forgery. */
import type { LookupAddress } from 'node:dns'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import { lookup, Resolver } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import ipaddr from 'ipaddr.js'
import type { Agent, buildConnector, request as requestWith } from 'undici'
import { LRUCache } from 'lru-cache'
import type { WebhookMessage } from '../../domain/messages/webhook.ts'

const TIMEOUT_MS = 10_000
const RESPONSE_BYTES = 64 * 1024
/** Maximum number of bytes that one connection may send: an answer with its headers and framing. */
const RECEIVED_BYTES = 2 * RESPONSE_BYTES

export type Sent = { ok: true; status: number } | { ok: false; status: number | null; error: string; isFinal?: boolean }

export interface WebhookSender {
  /** Resolves the host. Returns why the address is refused, to append to the field name; null if it is allowed. */
  check(url: string): Promise<string | null>
  send(message: Omit<WebhookMessage, 'body'> & { body: string | Buffer }): Promise<Sent>
  close(): Promise<void>
}

export function createWebhookSender(allowedNetworks: readonly string[]): WebhookSender {
  const guard = addressGuard(allowedNetworks)
  const faultOf = (addresses: LookupAddress[]) =>
    addresses.map(({ address }) => guard(address)).find((fault) => fault !== null) ?? null
  const resolveHost = createHostResolver()
  // Checked during DNS resolution: the connection uses the same address without a second lookup.
  const checkedLookup: LookupFunction = (hostname, options, callback) => {
    const useAddresses = (addresses: LookupAddress[]) => {
      const refused = faultOf(addresses)
      if (refused !== null) return callback(new NotPublic(`The address ${refused}`), [])
      const [first] = addresses
      if (options.all || !first) callback(null, addresses)
      else callback(null, first.address, first.family)
    }
    resolveHost(hostname).then(useAddresses, (error: Error) => callback(error, []))
  }
  // Opened at the first message, because most installations send none.
  let opened: Promise<{ agent: Agent; request: typeof requestWith }> | null = null
  async function open() {
    const { default: undici } = await import('undici')
    const open = undici.buildConnector({ lookup: checkedLookup, timeout: TIMEOUT_MS, allowH2: false })
    const connect: buildConnector.connector = (to, callback) =>
      open(to, (...opened: Parameters<buildConnector.Callback>) => {
        if (opened[1]) boundReceived(opened[1])
        callback(...opened)
      })
    const timeouts = { headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS }
    return {
      // A new connection for each message. With keep-alive, receivers would decide how many stay open, for ten minutes.
      agent: new undici.Agent({ connect, ...timeouts, pipelining: 0, maxResponseSize: RESPONSE_BYTES }),
      request: undici.request,
    }
  }

  return {
    async check(addressText) {
      const url = URL.parse(addressText)
      if (url === null || !['http:', 'https:'].includes(url.protocol)) return 'must be an http or https address'
      if (url.username !== '' || url.password !== '') return 'must not contain a user or password'
      return resolveHost(literalOf(url)).then(faultOf, () => 'names a host that does not resolve')
    },
    async send({ url, headers, body }) {
      // A literal address connects without a lookup, so check it here.
      const literal = literalOf(new URL(url))
      const refused = isIP(literal) === 0 ? null : guard(literal)
      if (refused) return { ok: false, status: null, error: `The address ${refused}` }
      try {
        const { agent, request } = await (opened ??= open())
        const signal = AbortSignal.timeout(TIMEOUT_MS)
        // Redirects are not followed, because they could bypass the address check.
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

/** The library bounds headers and body, but not interim answers and the framing of chunks. */
function boundReceived(socket: Socket): void {
  const before = socket.bytesRead
  // Registered before the library's own listener, which parses what has arrived.
  socket.on('readable', () => {
    if (socket.bytesRead - before > RECEIVED_BYTES) socket.destroy(new TooLarge())
  })
}

/**
 * Metadata services of clouds, which serve credentials and settings of the machine: AWS, Google, DigitalOcean and
 * others, Azure's host, Alibaba, Oracle, and AWS and Google by IPv6. Allowing a network does not allow these; each
 * address must be allowed by itself.
 */
const METADATA = new Set(
  [
    '169.254.169.254',
    '169.254.170.2',
    '169.254.170.23',
    '168.63.129.16',
    '100.100.100.200',
    '192.0.0.192',
    'fd00:ec2::254',
    'fd00:ec2::23',
    'fd20:ce::254',
  ].map((address) => ipaddr.parse(address).toString()),
)

function addressGuard(allowed: readonly string[]): (address: string) => string | null {
  const networks = allowed.filter((network) => !NAMED.has(network)).map(parseNetwork)
  return (address) => {
    const parsed = ipaddr.process(address)
    const refusal = 'resolves to an address that is not public; allow it with --webhook-networks'
    const isIn = ([network, bits]: Network) => network.kind() === parsed.kind() && parsed.match(network, bits)
    if (METADATA.has(parsed.toString())) {
      return networks.some((network) => network[1] === parsed.toByteArray().length * 8 && isIn(network))
        ? null
        : refusal
    }
    const range = rangeOf(parsed)
    if (range === 'unicast' || [...NAMED].some(([name, known]) => known.includes(range) && allowed.includes(name)))
      return null
    // Leaves out the address and its range: they would show tenants the network of the service.
    return networks.some(isIn) ? null : refusal
  }
}

/** Only 2000::/3 of IPv6 is assigned (RFC 4291 2.4), but the library calls the rest unicast too. */
function rangeOf(address: ipaddr.IPv4 | ipaddr.IPv6): string {
  const range = address.range()
  const isUnassigned = address instanceof ipaddr.IPv6 && (address.parts[0] ?? 0) >> 13 !== 1
  return range === 'unicast' && isUnassigned ? 'reserved' : range
}

const NAMED = new Map([
  ['loopback', ['loopback']],
  ['linklocal', ['linkLocal']],
  ['uniquelocal', ['private', 'uniqueLocal']],
])

function literalOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}

type Network = [ipaddr.IPv4 | ipaddr.IPv6, number]

function parseNetwork(network: string): Network {
  if (network.includes('/')) return ipaddr.parseCIDR(network)
  const address = ipaddr.parse(network)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}

const REASONS = new Map([
  ['ECONNREFUSED', 'The receiver refused the connection'],
  ['ECONNRESET', 'The receiver closed the connection'],
  ['UND_ERR_SOCKET', 'The receiver closed the connection'],
  ['EHOSTUNREACH', 'The receiver cannot be reached'],
  ['ENETUNREACH', 'The receiver cannot be reached'],
  ['ENOTFOUND', 'The host does not resolve'],
  ['EAI_AGAIN', 'The host does not resolve'],
  ['UND_ERR_RES_EXCEEDED_MAX_SIZE', 'The answer is too large'],
])

class NotPublic extends Error {}

class TooLarge extends Error {
  readonly code = 'UND_ERR_RES_EXCEEDED_MAX_SIZE'
}

/** The reason without addresses, stacks or bodies: system messages reveal the address behind a name. */
function reasonOf(error: unknown): string {
  const { name, message, code = '' } = error as NodeJS.ErrnoException
  if (error instanceof NotPublic) return message
  if (name === 'TimeoutError' || code.includes('TIMEOUT') || code === 'ETIMEDOUT') {
    return `No answer within ${TIMEOUT_MS / 1000} seconds`
  }
  // Report only the code of TLS errors: their messages may quote names in the certificate.
  return (
    REASONS.get(code) ?? (/^[A-Z][A-Z0-9_]+$/.test(code) ? `The connection failed (${code})` : 'The connection failed')
  )
}

/**
 * `dns.lookup` waits on threads of the whole process: a few names with a silent name server would stop every delivery.
 */

type ResolveHost = (host: string) => Promise<LookupAddress[]>

interface ResolveOptions {
  servers?: readonly string[]
  /** Timeout of each of the two attempts. */
  timeoutMs?: number
  now?: () => number
}

const ATTEMPTS = 2
const KEPT_MS = 30_000
/** Short, because a receiver that was just set up must not stay unknown for long. */
const FAILURE_KEPT_MS = 5_000
const NAMES_KEPT = 1_000
const HOSTS_FILE = '/etc/hosts'

export function createHostResolver(options: ResolveOptions = {}): ResolveHost {
  const { servers, timeoutMs = 2_000, now = () => performance.now() } = options
  const resolver = new Resolver({ timeout: timeoutMs, tries: ATTEMPTS })
  if (servers) resolver.setServers(servers)
  const resolvedNames = new LRUCache<string, { addresses: Promise<LookupAddress[]>; until: number }>({
    max: NAMES_KEPT,
  })

  return (host) => {
    const known = resolvedNames.get(host)
    if (known && now() < known.until) return known.addresses
    const addresses = resolve(host)
    const entry = { addresses, until: Infinity }
    resolvedNames.set(host, entry)
    addresses.then(
      () => (entry.until = now() + KEPT_MS),
      () => (entry.until = now() + FAILURE_KEPT_MS),
    )
    return addresses
  }

  async function resolve(host: string): Promise<LookupAddress[]> {
    const family = isIP(host)
    if (family !== 0) return [{ address: host, family }]
    // Only the system resolver knows names without a dot and names in the hosts file. Tenants cannot use such a name to make
    // it query a name server of theirs.
    if (!host.includes('.') || (await isInHostsFile(host))) return lookup(host, { all: true })
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
    const resolvedAddresses = [addressesOf(v4, 4), addressesOf(v6, 6)].flat()
    if (resolvedAddresses.length === 0 && v4.status === 'rejected') throw v4.reason
    return resolvedAddresses
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
