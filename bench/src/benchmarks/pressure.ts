/** What strangers and tenants can do to the service: its memory, and how long others wait. */
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { OPERATOR_ROUTES, OPERATOR_PREFIX } from '@tacho/contract/operator/routes.ts'
import { startChild } from '../child.ts'
import type { Setting } from '../benchmark.ts'
import { onBoth } from '../engines/on-both.ts'
import type { Engine } from '../engines/engine.ts'
import type { Attack, Attacked, Suffered } from '../load/attacks.ts'
import { BATCH_EVENTS } from '../load/events.ts'
import { newPlot } from '../load/shapes.ts'
import { startLoad } from '../load/start.ts'
import { below, row, type Budget, type Result, type Row } from '../result.ts'
import type { Server } from '../server.ts'
import { timesOf } from '../stats.ts'
import { whole } from '../text.ts'

const BATCH = '/openapi/v1/events/batch'
const TRACES = '/openapi/v1/otlp/v1/traces'

/** By name; `isKeyless`: sent without a credential. */
const ATTACKS: Record<string, Attacked & { isKeyless?: boolean }> = {
  'documents never read, pipelined': {
    kind: 'pipelined',
    path: `${OPERATOR_PREFIX}/openapi.json`,
    connections: 8,
    requests: 1_300,
    isKeyless: true,
  },
  'scripts never read, pipelined': {
    kind: 'pipelined',
    path: '/docs/assets/swagger-ui-bundle.js',
    connections: 16,
    requests: 1_300,
    isKeyless: true,
  },
  'refused bodies in one-byte chunks': {
    kind: 'chunked',
    path: BATCH,
    connections: 40,
    chunks: 400_000,
    type: 'application/json',
    isKeyless: true,
  },
  'a batch in one-byte chunks': {
    kind: 'chunked',
    path: BATCH,
    connections: 1,
    chunks: 1_000_000,
    type: 'application/json',
  },
  'OTLP bodies in one-byte chunks': {
    kind: 'chunked',
    path: TRACES,
    connections: 4,
    chunks: 4_000_000,
    type: 'application/json',
  },
  'OTLP bodies of empty lists': {
    kind: 'repeated',
    method: 'POST',
    path: TRACES,
    connections: 2,
    body: 'nested lists',
  },
}

const QUIET_MS = 20
const MEMORY_MS = 50
const PEAK_MEGABYTES = 400
const HEALTH_MS = 100

export const pressure = onBoth({
  sqlite: ['pressure', 'Under attack'],
  postgres: ['postgres-pressure', 'Under attack, on PostgreSQL'],
  about:
    'Each attack runs on a new server, from one other process, with the requests that a stranger or one key can send. `/healthz` is requested \
every 20 ms, from before the attack until after it; a request that waits counts as long as it waits. Memory is what the process holds, at its peak. The bare limit is the same server \
before the attack.',
  async measure(setting, engine) {
    const rows: Row[] = []
    for (const [name, { isKeyless = false, ...attack }] of Object.entries(ATTACKS)) {
      const store = await engine.createStore(`attack-${rows.length}`)
      await using server = await store.start()
      await using attacker = startChild<Attack, Suffered>(new URL('../load/attacks.ts', import.meta.url))
      const calm = await watch(server, () => sleep(setting.plan.seconds * 1_000))
      const seconds = 4 * setting.plan.seconds
      const headers = isKeyless ? {} : server.headers
      let suffered: Suffered = {}
      const found = await watch(server, async () => {
        suffered = await attacker.call({ ...attack, url: server.url, headers, seconds })
        await sleep(seconds * 250)
      })
      setting.say(`${name}: ${JSON.stringify(suffered)}`)
      rows.push(
        row(`${name}: memory at its peak`, 'MB', [found.megabytes], [calm.megabytes], below(PEAK_MEGABYTES)),
        row(`${name}: /healthz, p99`, 'ms', [found.p99], [calm.p99], below(HEALTH_MS)),
      )
    }
    return { rows, notes: [] }
  },
})

/** /healthz and memory during the work. */
async function watch(server: Server, work: () => Promise<unknown>) {
  const took: number[] = []
  let [isOver, megabytes] = [false, 0]
  resetPeak(server.pid)
  async function askHealth(): Promise<void> {
    while (!isOver) {
      const from = performance.now()
      await (await fetch(`${server.url}/healthz`)).text()
      took.push(performance.now() - from)
      await sleep(QUIET_MS)
    }
  }
  async function askMemory(): Promise<void> {
    while (!isOver) {
      megabytes = Math.max(megabytes, peakOf(server.pid) ?? (await server.usage()).megabytes)
      await sleep(MEMORY_MS)
    }
  }
  const watching = Promise.all([askHealth(), askMemory()])
  await work()
  isOver = true
  await watching
  return { megabytes, ...timesOf(took) }
}

/** The largest memory of a process since `resetPeak`; null if the system does not say. */
function peakOf(pid: number): number | null {
  try {
    const kib = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]
    return kib === undefined ? null : (Number(kib) * 1_024) / 1e6
  } catch {
    return null
  }
}

function resetPeak(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5')
  } catch {
    // Not on this system, or not allowed: the peak is that since the start.
  }
}

/** Connections that read at the same time. */
const READERS = 50
const RECORDED_PER_SECOND = 2_000

/** Each read operation of the contract in turn, by one workspace, while another one records. */
export const operations = onBoth({
  sqlite: ['operations', 'Each read operation beside recording'],
  postgres: ['postgres-operations', 'Each read operation beside recording, on PostgreSQL'],
  about: `${READERS} connections with one token request the same address again and again, each read operation of the operator API in turn, and all in a mix, \
while another workspace records ${RECORDED_PER_SECOND} events a second in requests of ${BATCH_EVENTS}. Acknowledgements and \`/healthz\` are measured at fixed times. The bare limit is the same recording without readers.`,
  onDemand: true,
  measure: measureOperations,
})

async function measureOperations({ plan, say }: Setting, engine: Engine): Promise<Result> {
  const store = await engine.createStore('operations')
  await using server = await store.start(['--rate-limit', '1000000', '--operator-rate-limit', '1000000'])
  await using load = startLoad()
  await using reader = startChild<Attack, Suffered>(new URL('../load/attacks.ts', import.meta.url))
  await load.fillHistory(server, Math.min(plan.storedEvents, 200_000))
  const { workspaceId, environmentId } = await server.home()
  const other = await otherTenant(server)
  const [run = ''] = (
    await server.operator<{ items: { id: string }[] }>(`/environments/${environmentId}/runs`)
  ).items.map(({ id }) => id)
  const addresses = readAddresses({ workspaceId, environmentId, runId: run })
  const plot = newPlot('whole-run')
  const token = server.operatorHeaders
  async function beside(paths: readonly string[]) {
    const reading = paths.map((path) => ({ path, connections: Math.ceil(READERS / paths.length) }))
    let p99 = Number.NaN
    const { p99: health } = await watch(server, async () => {
      const until =
        reading.length === 0
          ? null
          : reader.call({
              kind: 'reads',
              reads: reading,
              url: server.url,
              headers: token,
              connections: 1,
              seconds: plan.seconds,
            })
      const paced = await load.send(other, {
        connections: 8,
        seconds: plan.seconds,
        perSecond: RECORDED_PER_SECOND / BATCH_EVENTS,
        send: { plot },
      })
      p99 = paced.times.p99
      say(`${paths.length === 1 ? paths[0] : `${paths.length} paths`}: ${whole(p99)} ms ${JSON.stringify(await until)}`)
    })
    return { p99, health }
  }
  const calm = await beside([])
  const rows: Row[] = []
  const add = (name: string, { p99, health }: typeof calm, budgets: { recording: Budget; health: Budget }[] = []) => {
    const ofRecording = budgets.map(({ recording }) => recording)
    const ofHealth = budgets.map((budget) => budget.health)
    rows.push(row(`${name}: acknowledgement, p99`, 'ms', [p99], [calm.p99], ...ofRecording))
    rows.push(row(`${name}: /healthz, p99`, 'ms', [health], [calm.health], ...ofHealth))
  }
  for (const [name, path] of addresses) add(name, await beside([path]))
  const mixed = await beside(addresses.map(([, path]) => path))
  add('all of them', mixed, [{ recording: below(100), health: below(50) }])
  return { rows, notes: [] }
}

async function otherTenant(server: Server) {
  const { id } = await server.operator<{ id: string }>('/workspaces', { name: 'other' })
  const made = await server.operator<{ id: string }>(`/workspaces/${id}/environments`, { name: 'production' })
  const key = { name: 'load', scopes: ['events:write'], requestsPerSecond: 1_000_000 }
  const { key: text } = await server.operator<{ key: string }>(`/environments/${made.id}/keys`, key)
  return { url: server.url, headers: { 'x-api-key': text } }
}

/** Name and address of each read whose path names only what the store has. */
function readAddresses(ids: Record<string, string>): [name: string, path: string][] {
  return Object.entries(OPERATOR_ROUTES).flatMap(([name, { method, path }]) => {
    if (method !== 'GET' || name === 'streamApprovals' || name === 'createBackup') return []
    const filled = path.replaceAll(/\{(\w+)\}/g, (whole, id: string) => ids[id] ?? whole)
    return filled.includes('{') ? [] : [[name, `${OPERATOR_PREFIX}${filled}`]]
  })
}
