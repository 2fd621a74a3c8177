import { isIP } from 'node:net'
import type { Check } from '@tacho/contract/operator/doctor.ts'
import { LIMITS } from '@tacho/contract/limits.ts'
import ipaddr from 'ipaddr.js'
import type { Config } from '../../config/config.ts'
import { workCheck } from './work-check.ts'
import type { OperatorDeps } from './serve.ts'

const CLOCK_DRIFT_MS = 60_000
const EARLIEST_NOW = Date.UTC(2026, 0, 1)

/** Advice about settings does not make a check fail. */
export function doctorRoutes({ serve, storage, config, version, now }: OperatorDeps): void {
  let inspecting: ReturnType<typeof storage.inspect> | null = null
  serve('readDoctor', async () => {
    const checks: Check[] = [
      { name: 'version', ok: true, detail: `Tacho ${version}, Node ${process.versions.node}, ${process.platform}` },
      ...(await (inspecting ??= storage.inspect().finally(() => (inspecting = null)))),
      workCheck(await storage.workBacklog(now()), now()),
      clockCheck(now(), performance.timeOrigin + performance.now()),
      addressCheck(config),
      rateLimitCheck(config),
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

function rateLimitCheck({ rateLimit }: Config): Check {
  const detail = `The rate limit of keys without their own is ${rateLimit} requests per second`
  const advice = rateLimit === LIMITS.requestsPerSecondDefault ? ', the default; --rate-limit changes it' : ''
  return { name: 'rate limit', ok: true, detail: detail + advice }
}

function isLoopback(host: string): boolean {
  return isIP(host) === 0 ? host === 'localhost' : ipaddr.process(host).range() === 'loopback'
}
