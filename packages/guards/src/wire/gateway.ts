/**
 * The proxy for a team: one address, and a Tacho API key for each client, in the path or a header. Each key records into
 * its own environment, under the policies of that environment.
 *
 *   unknown --Tacho knows it--> accepted --a minute--> checked again
 *      |--Tacho refuses it--> refused for ten seconds, and longer while Tacho is unreachable
 *      \--Tacho is unreachable--> accepted if it has the form of a key: recording fails open. A guard decides by the last
 *                                 known policies, and refuses every call without them
 */
import { isUtf8 } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'
import type { Tacho } from '@tacho/sdk'
import { completePath, redirected } from './clients.ts'
import { startProxy, type Door, type Proxy } from './proxy.ts'
import { openWireClient } from './wire-client.ts'
import { WireRecorder, type GuardSettings } from './wire-recorder.ts'

export interface GatewayOptions {
  /** URL of the Tacho service. */
  readonly url: string
  readonly host: string
  readonly port: number
  readonly capture: 'full' | 'metadata-only'
  readonly guard?: GuardSettings | undefined
  /** Environment variables that name the upstreams. */
  readonly variables: Readonly<Record<string, string | undefined>>
  readonly warn: (message: string) => void
}

export interface Gateway extends Pick<Proxy, 'origin'> {
  /** Names of the upstreams, with their address. */
  readonly routes: ReadonlyMap<string, URL>
  close(graceMs: number): Promise<void>
}

interface Tenant {
  readonly tacho: Tacho
  readonly close: () => Promise<void>
  readonly recorders: Map<string, WireRecorder>
  requests: number
  /** Whether Tacho has accepted the key. */
  isKnown: boolean
  readonly openedAt: number
}

interface Checked {
  readonly status: 'accepted' | 401 | 403
  readonly until: number
  /** Whether Tacho sent this status. Otherwise it was assumed because Tacho is unreachable. */
  readonly isHeard: boolean
}

const ACCEPTED_MS = 60_000
const REFUSED_MS = 10_000
const CHECK_MS = 5_000
const CHECKS_MAX = 50
const KEYS_MAX = 1_000
/**
 * Maximum number of keys that are accepted unconfirmed while Tacho is unreachable: anybody can invent keys, and each
 * gets a folder.
 */
const UNKNOWN_MAX = 100
/** Maximum number of concurrent requests of one key. */
const REQUESTS_MAX = 256
const RECORDERS_MAX = 1_000
/** A conversation ends after this time without a request. */
const IDLE_MS = 300_000
const LOOK_MS = 15_000
const KEY = /^tacho_[\w-]{16,200}$/
const NAME_CHARS = 200

export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { routes, unreadable } = redirected('', options.variables)
  for (const name of unreadable) options.warn(`${name} is not an http or https address.`)
  const tenants = new Map<string, Tenant>()
  const checked = new Map<string, Checked>()
  const checks = new Map<string, Promise<Checked>>()
  const warnedOf = new Set<string>()
  /** Time of Tacho's last answer. */
  let heardAt = -Infinity

  async function enter(first: string, headers: IncomingHttpHeaders): Promise<Door | number> {
    const key = first === '-' ? String(headers['x-tacho-key']) : first
    if (!KEY.test(key)) return 401
    const known = checked.get(key)
    if (!known && checks.size >= CHECKS_MAX && !checks.has(key)) return 503
    const { status, isHeard } = known && known.until > Date.now() ? known : await check(key)
    if (status !== 'accepted') return status
    const tenant = tenants.get(key) ?? open(key, isHeard)
    if (!tenant) return 503
    tenant.isKnown ||= isHeard
    if (tenant.requests >= REQUESTS_MAX) return 429
    tenant.requests++
    const recorder = recorderOf(tenant, headers)
    const leave = () => void tenant.requests--
    const isGuarded = options.guard !== undefined
    return { routes, completePath, isDurable: true, isGuarded, leave, observe: (request) => recorder.observe(request) }
  }

  function check(key: string): Promise<Checked> {
    const running = checks.get(key) ?? checkKey(options, key).finally(() => checks.delete(key))
    checks.set(key, running)
    return running.then((answer) => {
      if (answer.isHeard) heardAt = Date.now()
      const { status = 'accepted' } = checked.get(key) ?? {}
      // Keep refusing a refused key while Tacho does not answer.
      const result = answer.isHeard ? answer : { ...answer, status }
      checked.delete(key)
      checked.set(key, result)
      const [oldest] = checked.size > KEYS_MAX ? checked.keys() : []
      if (oldest !== undefined) checked.delete(oldest)
      return result
    })
  }

  /** Clients send non-ASCII names as UTF-8, but Node reads each byte as a character. */
  function nameIn(headers: IncomingHttpHeaders, header: string): string | undefined {
    const bytes = Buffer.from(String(headers[header.toLowerCase()] ?? ''), 'latin1')
    const name = isUtf8(bytes) ? bytes.toString() : undefined
    if (name === '') return undefined
    if (name !== undefined && name.length <= NAME_CHARS && !/\p{Cc}/u.test(name)) return name
    if (!warnedOf.has(header)) {
      const fault =
        name === undefined ? 'UTF-8' : `a text of at most ${NAME_CHARS} characters without control characters`
      options.warn(
        `A request had a header ${header} that is not ${fault}. It was ignored, like all others of this kind.`,
      )
    }
    warnedOf.add(header)
    return undefined
  }

  function open(apiKey: string, isKnown: boolean): Tenant | undefined {
    const sameTenants = [...tenants.values()].filter((one) => one.isKnown === isKnown)
    if (sameTenants.length >= (isKnown ? KEYS_MAX : UNKNOWN_MAX)) return undefined
    const account = { url: options.url, apiKey }
    const { tacho, close } = openWireClient({ ...options, account })
    const tenant: Tenant = { tacho, close, recorders: new Map(), requests: 0, isKnown, openedAt: Date.now() }
    tenants.set(apiKey, tenant)
    return tenant
  }

  function recorderOf({ tacho, recorders }: Tenant, headers: IncomingHttpHeaders): WireRecorder {
    const agentName = nameIn(headers, 'X-Tacho-Agent') ?? 'gateway'
    const sessionId = nameIn(headers, 'X-Tacho-Session')
    const name = JSON.stringify([agentName, sessionId])
    const recorder =
      recorders.get(name) ??
      new WireRecorder(tacho, { agentName, agentId: agentName, sessionId }, { isShared: true, guard: options.guard })
    recorders.delete(name)
    recorders.set(name, recorder)
    const [oldest] = recorders.size > RECORDERS_MAX ? recorders : []
    if (oldest) {
      recorders.delete(oldest[0])
      void oldest[1].end('COMPLETED', {})
    }
    return recorder
  }

  const timer = setInterval(() => {
    const since = Date.now() - IDLE_MS
    for (const [key, { recorders, requests, close, isKnown, openedAt }] of tenants) {
      for (const [name, recorder] of recorders) if (!recorder.endIdle(since) && requests === 0) recorders.delete(name)
      // Close an unused key, to make room. Its folder keeps undelivered events.
      if (requests > 0 || recorders.size > 0 || !(isKnown || heardAt > openedAt)) continue
      tenants.delete(key)
      void close().catch(() => undefined)
    }
  }, LOOK_MS)
  timer.unref()
  const proxy = await startProxy({ enter, host: options.host, port: options.port })
  return {
    origin: proxy.origin,
    routes,
    async close(graceMs) {
      clearInterval(timer)
      await proxy.close(graceMs)
      const ended = [...tenants.values()].map(async ({ close, recorders }) => {
        await Promise.all([...recorders.values()].map((recorder) => recorder.end('CANCELLED', {})))
        await close()
      })
      await Promise.all(ended)
    },
  }
}

async function checkKey({ url, guard }: GatewayOptions, key: string): Promise<Checked> {
  const result = (status: Checked['status'], ms: number, isHeard = true): Checked => {
    return { status, until: Date.now() + ms, isHeard }
  }
  try {
    const signal = AbortSignal.timeout(CHECK_MS)
    const answer = await fetch(`${url}/openapi/v1/runtime-config`, { headers: { 'x-api-key': key }, signal })
    await answer.body?.cancel()
    if (answer.status === 401) return result(401, REFUSED_MS)
    // 403: the key is valid and can record.
    if (answer.status === 403) return guard ? result(403, REFUSED_MS) : result('accepted', ACCEPTED_MS)
    return answer.ok ? result('accepted', ACCEPTED_MS) : result('accepted', REFUSED_MS, false)
  } catch {
    return result('accepted', REFUSED_MS, false)
  }
}
