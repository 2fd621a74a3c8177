import { isIP } from 'node:net'
import type { Check } from '@tacho/contract/web/doctor.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import ipaddr from 'ipaddr.js'
import type { Config } from '../../config/config.ts'
import type { LostRequestsSum } from '../../storage/tenants/api-keys.ts'
import { workCheck } from './work-check.ts'
import type { OperatorDeps } from './serve.ts'

const CLOCK_DRIFT_MS = 60_000
/** Of the store, threads, files and requests to other servers. */
const OWN_DESCRIPTORS = 256
/** Keys whose latest lost request is older are not mentioned. */
const LOST_MS = 7 * 24 * 60 * 60_000
const EARLIEST_NOW = Date.UTC(2026, 0, 1)

/** Advice about settings does not make a check fail. */
export function doctorRoutes({ serve, storage, config, version, now, metrics: { processFacts } }: OperatorDeps): void {
  let inspecting: ReturnType<typeof storage.inspect> | null = null
  serve('readDoctor', async () => {
    const checks: Check[] = [
      { name: 'version', ok: true, detail: `Tacho ${version}, Node ${process.versions.node}, ${process.platform}` },
      ...(await (inspecting ??= storage.inspect().finally(() => (inspecting = null)))),
      workCheck(await storage.workBacklog(now()), now()),
      // `now` is the store's time.
      clockCheck(now() - storage.clockOffsetMs(), performance.timeOrigin + performance.now()),
      addressCheck(config),
      rateLimitCheck(config),
      descriptorsCheck(processFacts.maxDescriptors()),
      lostRequestsCheck(await storage.sumLostRequests(now() - LOST_MS), config),
    ]
    return { ok: checks.every(({ ok }) => ok), version, checks }
  })
}

function clockCheck(wallClock: number, runningClock: number): Check {
  const detail = `The clock says ${new Date(wallClock).toISOString()}`
  if (wallClock < EARLIEST_NOW) return { name: 'clock', ok: false, detail: `${detail}, which is in the past. Set it` }
  const drift = Math.abs(wallClock - runningClock)
  if (drift < CLOCK_DRIFT_MS) return { name: 'clock', ok: true, detail }
  const moved = `${detail} and has moved by ${Math.round(drift / 1000)} s since the start`
  return {
    name: 'clock',
    ok: false,
    detail: `${moved}. The server checks event times against it: synchronise it and restart`,
  }
}

function addressCheck({ host, port, trustProxy }: Config): Check {
  const name = 'address'
  if (isLoopback(host)) return { name, ok: true, detail: `Listens on ${host}, port ${port}: this machine only` }
  const found = `Listens on ${host}, port ${port}, without TLS`
  if (trustProxy.length > 0) return { name, ok: true, detail: `${found}, behind ${trustProxy.join(', ')}` }
  const advice = 'Warning: put a TLS proxy in front and set --trust-proxy to its address'
  return { name, ok: true, detail: `${found}. ${advice}` }
}

/** Each connection takes one; the store, threads and files take the others. */
function descriptorsCheck(limit: number | null): Check {
  const name = 'descriptors'
  const needed = LIMITS.idleConnections + OWN_DESCRIPTORS
  if (limit === null) return { name, ok: true, detail: 'This system does not say how many files a process may open' }
  const detail = `The process may open ${limit} files and connections`
  if (limit >= needed) return { name, ok: true, detail }
  return {
    name,
    ok: true,
    detail: `${detail}. Warning: ${needed} are needed for ${LIMITS.idleConnections} connections: raise ulimit -n`,
  }
}

/** Exporters drop such requests, so the runs they belong to look complete. */
function lostRequestsCheck({ keys, requests, latest }: LostRequestsSum, { otlpMaxBytes }: Config): Check {
  const name = 'telemetry'
  const limit = `OpenTelemetry requests may have ${otlpMaxBytes} bytes (--otlp-max-bytes)`
  if (latest === null) return { name, ok: true, detail: `${limit}. In the last 7 days, none was refused for good` }
  const { workspaceName, environmentName, keyName, at, reason } = latest
  const of = keys === 1 ? '' : ` of ${keys} keys, whose latest is`
  const key = `key ${JSON.stringify(keyName)} of ${workspaceName}/${environmentName}`
  const since = `last at ${new Date(at).toISOString()}: ${reason}`
  return {
    name,
    ok: true,
    detail: `Warning: ${requests} OpenTelemetry requests${of} from ${key} were refused and lost, because exporters do not repeat them; ${since}. ${limit}`,
  }
}

function rateLimitCheck({ rateLimit }: Config): Check {
  const detail = `The rate limit of keys without their own is ${rateLimit} requests per second`
  const advice = rateLimit === LIMITS.requestsPerSecondDefault ? ', the default; --rate-limit changes it' : ''
  return { name: 'rate limit', ok: true, detail: detail + advice }
}

function isLoopback(host: string): boolean {
  return isIP(host) === 0 ? host === 'localhost' : ipaddr.process(host).range() === 'loopback'
}
