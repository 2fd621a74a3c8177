import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { Check } from '@tacho/contract/web/operator-routes.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Config } from '../../config/config.ts'
import type { LostRequestsSum, SpoolTroubleSum } from '../../storage/tenants/tenants.ts'
import type { OperatorDeps } from './operator-serve.ts'
import type { WorkBacklog } from '../../storage/engine/work.ts'

const CLOCK_DRIFT_MS = 60_000
/** File descriptors reserved for the store, threads, files and requests to other servers. */
const OWN_DESCRIPTORS = 256
/** Keys whose latest lost request is older than this are not mentioned. */
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
      spoolsCheck(await storage.readSpoolTrouble(now() - LOST_MS)),
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
  const listenText = `Listens on ${host}, port ${port}, without TLS`
  if (trustProxy.length > 0) return { name, ok: true, detail: `${listenText}, behind ${trustProxy.join(', ')}` }
  const advice = 'Warning: put a TLS proxy in front and set --trust-proxy to its address'
  return { name, ok: true, detail: `${listenText}. ${advice}` }
}

/** Each connection takes one descriptor; the store, threads and files take the rest. */
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

/** Exporters drop refused requests, so the runs that they belong to look complete. */
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

const SPOOL_TROUBLE = {
  full: 'had a full spool and dropped or may lose what it records: give it more room (maxQueuedBytes, max_queued_bytes)',
  failed: 'cannot use its spool, so a killed process loses what it had not sent: see the diagnostics of the client',
}

function spoolsCheck({ keys, latest }: SpoolTroubleSum): Check {
  const name = 'spools'
  if (latest === null) return { name, ok: true, detail: 'In the last 7 days, no client said that its spool was full' }
  const { workspaceName, environmentName, keyName, at, trouble } = latest
  const of = keys === 1 ? '' : ` (${keys} keys have such clients)`
  const client = `a client with the key ${JSON.stringify(keyName)} of ${workspaceName}/${environmentName}`
  return {
    name,
    ok: true,
    detail: `Warning: ${client} ${SPOOL_TROUBLE[trouble]}; last at ${new Date(at).toISOString()}${of}`,
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

/** Due work starts within a second. If it is this late, no worker is taking it. */
const LATE_MS = 60_000

export function workCheck(backlog: WorkBacklog[], now: number): Check {
  const name = 'background work'
  const due = backlog.reduce((sum, kind) => sum + kind.due, 0)
  const items = backlog.reduce((sum, kind) => sum + kind.items, 0)
  const detail = `${items} waiting or running, ${due} of them due`
  const late = backlog.flatMap(({ kind, dueSince }) =>
    dueSince !== null && dueSince < now - LATE_MS ? [`${kind} since ${new Date(dueSince).toISOString()}`] : [],
  )
  if (late.length === 0) return { name, ok: true, detail }
  return { name, ok: false, detail: `${detail}; ${late.join(', ')}. See the log for the reason` }
}
