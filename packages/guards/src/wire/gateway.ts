/**
 * The proxy for a team: one address, and a key of Tacho for each client, in the path or in a header. Each key records into its own
 * environment, under the policies of that environment.
 *
 *   unknown --Tacho knows it--> accepted --a minute--> checked again
 *      |--Tacho refuses it--> refused for ten seconds
 *      \--Tacho is away--> accepted, as far as it looks like a key: recording fails open. A guard decides by the last known
 *                          policies, and refuses every call without them
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Tacho } from '@tacho/sdk'
import { completePath, redirected } from './clients.ts'
import { startProxy, type Door, type Proxy } from './proxy.ts'
import { openWireClient } from './wire-client.ts'
import { WireRecorder, type GuardSettings } from './wire-recorder.ts'

export interface GatewayOptions {
  /** Of Tacho. */
  readonly url: string
  readonly host: string
  readonly port: number
  readonly capture: 'full' | 'metadata-only'
  readonly guard?: GuardSettings | undefined
  /** They name the upstreams. */
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
}

interface Checked {
  readonly status: 'accepted' | 401 | 403
  readonly until: number
}

const ACCEPTED_MS = 60_000
const REFUSED_MS = 10_000
const CHECK_MS = 5_000
const CHECKS_MAX = 50
const KEYS_MAX = 1_000
/** Of one key at a time. */
const REQUESTS_MAX = 256
const RECORDERS_MAX = 1_000
/** A conversation that nobody goes on with is over. */
const IDLE_MS = 300_000
const LOOK_MS = 15_000
const KEY = /^tacho_[\w-]{16,200}$/
const NAME = /^[\x20-\x7e]{1,200}$/

export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { routes, unreadable } = redirected('', options.variables)
  for (const name of unreadable) options.warn(`${name} is not an http or https address.`)
  const tenants = new Map<string, Tenant>()
  const checked = new Map<string, Checked>()
  const checks = new Map<string, Promise<Checked>>()

  async function enter(first: string, headers: IncomingHttpHeaders): Promise<Door | number> {
    const key = first === '-' ? (textOf(headers['x-tacho-key']) ?? '') : first
    if (!KEY.test(key)) return 401
    const known = checked.get(key)
    if (!known && checks.size >= CHECKS_MAX && !checks.has(key)) return 503
    const { status } = known && known.until > Date.now() ? known : await check(key)
    if (status !== 'accepted') return status
    const tenant = tenants.get(key) ?? open(key)
    if (!tenant) return 503
    if (tenant.requests >= REQUESTS_MAX) return 429
    tenant.requests++
    const recorder = recorderOf(tenant, headers)
    const leave = () => void tenant.requests--
    return { routes, completePath, isDurable: true, leave, observe: (request) => recorder.observe(request) }
  }

  function check(key: string): Promise<Checked> {
    const running = checks.get(key) ?? checkKey(options, key).finally(() => checks.delete(key))
    checks.set(key, running)
    return running.then((result) => {
      checked.delete(key)
      checked.set(key, result)
      const [oldest] = checked.size > KEYS_MAX ? checked.keys() : []
      if (oldest !== undefined) checked.delete(oldest)
      return result
    })
  }

  function open(apiKey: string): Tenant | undefined {
    if (tenants.size >= KEYS_MAX) return undefined
    const account = { url: options.url, apiKey }
    const { tacho, close } = openWireClient({ ...options, account })
    const tenant: Tenant = { tacho, close, recorders: new Map(), requests: 0 }
    tenants.set(apiKey, tenant)
    return tenant
  }

  function recorderOf({ tacho, recorders }: Tenant, headers: IncomingHttpHeaders): WireRecorder {
    const agentName = textOf(headers['x-tacho-agent']) ?? 'gateway'
    const sessionId = textOf(headers['x-tacho-session'])
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
    for (const { recorders } of tenants.values()) {
      for (const [name, recorder] of recorders) if (!recorder.endIdle(since)) recorders.delete(name)
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
  const accepted = (ms: number): Checked => ({ status: 'accepted', until: Date.now() + ms })
  try {
    const signal = AbortSignal.timeout(CHECK_MS)
    const answer = await fetch(`${url}/openapi/v1/runtime-config`, { headers: { 'x-api-key': key }, signal })
    await answer.body?.cancel()
    if (answer.status === 401) return { status: 401, until: Date.now() + REFUSED_MS }
    // The key is valid, and records.
    if (answer.status === 403) return guard ? { status: 403, until: Date.now() + REFUSED_MS } : accepted(ACCEPTED_MS)
    return accepted(answer.ok ? ACCEPTED_MS : REFUSED_MS)
  } catch {
    return accepted(REFUSED_MS)
  }
}

function textOf(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' && NAME.test(header) ? header : undefined
}
