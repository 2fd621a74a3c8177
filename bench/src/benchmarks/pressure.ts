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
import { below, row, type Result, type Row } from '../result.ts'
import { inTurn } from '../rounds.ts'
import type { Server } from '../server.ts'
import { spreadOf, timesOf, type Spread } from '../stats.ts'
import { figure, spread, whole } from '../text.ts'

const BATCH = '/openapi/v1/events/batch'
const TRACES = '/openapi/v1/otlp/v1/traces'

interface Tried {
  attack: Exclude<Attacked, { kind: 'reads' }>
  /** Whose requests they are; by default, those of an API key. */
  by?: 'stranger' | 'operator'
  /** Prepares the store. Ids of what it made stand for `{name}` in the path. */
  prepare?: (server: Server) => Promise<Ids>
}

const ATTACKS: Record<string, Tried> = {
  'documents never read, pipelined': {
    attack: { kind: 'pipelined', path: `${OPERATOR_PREFIX}/openapi.json`, connections: 8, requests: 1_300 },
    by: 'stranger',
  },
  'scripts never read, pipelined': {
    attack: { kind: 'pipelined', path: '/docs/assets/swagger-ui-bundle.js', connections: 16, requests: 1_300 },
    by: 'stranger',
  },
  'refused bodies in one-byte chunks': {
    attack: { kind: 'chunked', path: BATCH, connections: 40, chunks: 400_000, type: 'application/json' },
    by: 'stranger',
  },
  'a batch in one-byte chunks': {
    attack: { kind: 'chunked', path: BATCH, connections: 1, chunks: 1_000_000, type: 'application/json' },
  },
  'OTLP bodies in one-byte chunks': {
    attack: { kind: 'chunked', path: TRACES, connections: 4, chunks: 4_000_000, type: 'application/json' },
  },
  'OTLP bodies of empty lists': {
    attack: { kind: 'repeated', method: 'POST', path: TRACES, connections: 2, body: 'nested lists' },
  },
  '200 messages to /mcp at once': {
    attack: { kind: 'repeated', method: 'POST', path: '/mcp', connections: 200, body: 'mcp message' },
    by: 'operator',
  },
  'two Parquet exports at once': {
    attack: {
      kind: 'repeated',
      method: 'GET',
      path: `${OPERATOR_PREFIX}/environments/{environmentId}/export/parquet?table=events`,
      connections: 2,
      body: 'none',
    },
    by: 'operator',
    async prepare(server) {
      await using load = startLoad()
      await load.fillHistory(server, EXPORTED_EVENTS)
      return server.home()
    },
  },
  'differences of long prompts': {
    attack: {
      kind: 'repeated',
      method: 'GET',
      path: `${OPERATOR_PREFIX}/workspaces/{workspaceId}/prompts/{promptId}/diff?from=1&to=2`,
      connections: 50,
      body: 'none',
    },
    by: 'operator',
    prepare: async (server) => ({ ...(await server.home()), ...(await addPrompt(server)) }),
  },
}

const EXPORTED_EVENTS = 100_000
/** As many lines as two versions may have to be compared line by line. */
const PROMPT_LINES = 2_000

const QUIET_MS = 20
const MEMORY_MS = 50
/** An answer takes at least this. */
const NOTHING_MS = 0.01
const PEAK_MEGABYTES = 400
const HEALTH_MS = 100

export const pressure = onBoth({
  sqlite: ['pressure', 'Under attack'],
  postgres: ['postgres-pressure', 'Under attack, on PostgreSQL'],
  about:
    'Each attack runs on a new server, from one other process, with the requests that a stranger or one key can send. `/healthz` is requested \
every 20 ms, from before the attack until after it; a request that waits counts as long as it waits, without the time in which other programs ran instead of the server or the one \
that asks, where the system counts it. Memory is what the process holds, at its peak. The bare limit is the same server before the attack.',
  async measure(setting, engine) {
    const rows: Row[] = []
    for (const [name, tried] of Object.entries(ATTACKS)) {
      const { found } = await inTurn(setting, {
        async found(round) {
          const store = await engine.createStore(`attack-${rows.length}-${round}`)
          await using server = await store.start()
          return await endure(server, tried, setting)
        },
      })
      rows.push(
        row(`${name}: memory at its peak`, 'MB', found.megabytes, found.calmMegabytes, below(PEAK_MEGABYTES)),
        row(`${name}: /healthz, p99`, 'ms', found.p99, found.calmP99, below(HEALTH_MS)),
      )
    }
    return { rows, notes: [] }
  },
})

async function endure(server: Server, { attack, by, prepare }: Tried, { plan, say }: Setting) {
  const ids = (await prepare?.(server)) ?? {}
  await using attacker = startChild<Attack, Suffered>(new URL('../load/attacks.ts', import.meta.url))
  const calm = await watch(server, () => sleep(plan.seconds * 1_000))
  const headers = by === 'stranger' ? {} : by === 'operator' ? server.operatorHeaders : server.headers
  const seconds = 2 * plan.seconds
  const { megabytes, p99 } = await watch(server, async () => {
    const suffered = await attacker.call({
      ...attack,
      path: filled(attack.path, ids),
      url: server.url,
      headers,
      seconds,
    })
    say(JSON.stringify(suffered))
    await sleep(seconds * 250)
  })
  return { megabytes, p99, calmMegabytes: calm.megabytes, calmP99: calm.p99 }
}

type Ids = Record<string, string>

const filled = (path: string, ids: Ids): string =>
  path.replaceAll(/\{(\w+)\}/g, (whole, name: string) => ids[name] ?? whole)

/** Two versions of which no line is the same. */
async function addPrompt(server: Server): Promise<Ids> {
  const { workspaceId } = await server.home()
  const prompts = `/workspaces/${workspaceId}/prompts`
  const content = (version: number) =>
    Array.from({ length: PROMPT_LINES }, (_, line) => `Line ${line} of version ${version} of a long prompt.`).join('\n')
  const { promptId } = await server.operator<{ promptId: string }>(prompts, { name: 'long', content: content(1) })
  await server.operator(`${prompts}/${promptId}/versions`, { content: content(2), follows: '1' })
  return { promptId }
}

/** /healthz and memory during the work. */
async function watch(server: Server, work: () => Promise<unknown>) {
  const took: number[] = []
  let [isOver, megabytes] = [false, 0]
  resetPeak(server.pid)
  const processes = [server.pid, process.pid]
  const delays = (): number => processes.reduce((sum, pid) => sum + waitedMs(pid), 0)
  async function askHealth(): Promise<void> {
    while (!isOver) {
      const [from, delayed] = [performance.now(), delays()]
      await (await fetch(`${server.url}/healthz`)).text()
      const waited = performance.now() - from - (delays() - delayed)
      took.push(Math.max(waited, NOTHING_MS))
      // Those that would have been sent meanwhile waited too.
      for (let left = waited - QUIET_MS; left > 0; left -= QUIET_MS) took.push(left)
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
  try {
    await work()
  } finally {
    isOver = true
    await watching
  }
  return { megabytes, ...timesOf(took) }
}

/** How long the main thread of a process was ready to run while others ran, since its start; 0 if the system does not say. */
function waitedMs(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
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
const RECORDING_MS = 100
const HEALTH_BESIDE_MS = 50

/** Each read operation of the contract in turn, by one workspace, while another one records. */
export const operations = onBoth({
  sqlite: ['operations', 'Each read operation beside recording'],
  postgres: ['postgres-operations', 'Each read operation beside recording, on PostgreSQL'],
  about: `${READERS} connections with one token request the same address again and again, each read operation of the operator API in turn, and all in a mix, \
while another workspace records ${RECORDED_PER_SECOND} events a second in requests of ${BATCH_EVENTS}. Acknowledgements and \`/healthz\` are measured at fixed times. The bare limit is the same recording without readers. \
An operation that is above a goal is measured in every round, the others once.`,
  onDemand: true,
  measure: measureOperations,
})

async function measureOperations(setting: Setting, engine: Engine): Promise<Result> {
  const { plan, say } = setting
  const store = await engine.createStore('operations')
  await using server = await store.start(['--rate-limit', '1000000', '--operator-rate-limit', '1000000'])
  await using load = startLoad()
  await using reader = startChild<Attack, Suffered>(new URL('../load/attacks.ts', import.meta.url))
  await load.fillHistory(server, Math.min(plan.storedEvents, 200_000))
  const other = await otherTenant(server)
  const operations = readAddresses(await idsOf(server))
  const plot = newPlot('whole-run')
  const { url, operatorHeaders: headers } = server
  const { seconds } = plan

  async function beside(...paths: string[]) {
    const reads = paths.map((path) => ({ path, connections: Math.ceil(READERS / paths.length) }))
    let [recording, counts] = [Number.NaN, '']
    const { p99: health, megabytes } = await watch(server, async () => {
      const reading = reader.call({ kind: 'reads', reads, url, headers, connections: 1, seconds })
      const perSecond = RECORDED_PER_SECOND / BATCH_EVENTS
      const paced = await load.send(other, { connections: 8, seconds, perSecond, send: { plot } })
      recording = paced.times.p99
      counts = JSON.stringify(await reading)
    })
    say(
      `${paths.length} paths ${paths[0]}: ${figure(recording)}, /healthz ${figure(health)} ms, ${whole(megabytes)} MB ${counts}`,
    )
    return { recording, health }
  }

  const all = operations.map(([, path]) => path)
  const { calm, mixed } = await inTurn(setting, { calm: () => beside(), mixed: () => beside(...all) })
  const alone: { name: string; recording: Spread; health: Spread }[] = []
  for (const [name, path] of operations) {
    const first = await beside(path)
    const more: (typeof first)[] = []
    const isAbove = first.recording >= RECORDING_MS || first.health >= HEALTH_BESIDE_MS
    while (isAbove && more.length + 1 < plan.rounds) more.push(await beside(path))
    const rounds = [first, ...more]
    alone.push({
      name,
      recording: spreadOf(rounds.map(({ recording }) => recording)),
      health: spreadOf(rounds.map(({ health }) => health)),
    })
  }
  const slowest = (of: 'recording' | 'health'): number[] => [Math.max(...alone.map((each) => each[of].median))]
  return {
    rows: [
      row('all of them: acknowledgement, p99', 'ms', mixed.recording, calm.recording, below(RECORDING_MS)),
      row('all of them: /healthz, p99', 'ms', mixed.health, calm.health, below(HEALTH_BESIDE_MS)),
      row('the slowest of them alone: acknowledgement, p99', 'ms', slowest('recording'), null, below(RECORDING_MS)),
      row('the slowest of them alone: /healthz, p99', 'ms', slowest('health'), null, below(HEALTH_BESIDE_MS)),
    ],
    notes: [],
    table: [
      '| one operation alone | acknowledgement, p99 | /healthz, p99 |',
      '|---|---|---|',
      ...alone.map(({ name, recording, health }) => `| \`${name}\` | ${spread(recording)} ms | ${spread(health)} ms |`),
    ],
  }
}

async function otherTenant(server: Server) {
  const { id } = await server.operator<{ id: string }>('/workspaces', { name: 'other' })
  const made = await server.operator<{ id: string }>(`/workspaces/${id}/environments`, { name: 'production' })
  const key = { name: 'load', scopes: ['events:write'], requestsPerSecond: 1_000_000 }
  const { key: text } = await server.operator<{ key: string }>(`/environments/${made.id}/keys`, key)
  return { url: server.url, headers: { 'x-api-key': text } }
}

/** Ids of what the store has, by the names of parameters. */
async function idsOf(server: Server): Promise<Ids> {
  const home = await server.home()
  const environment = `/environments/${home.environmentId}`
  const firstOf = async <Item extends object>(path: string): Promise<Partial<Item>> =>
    (await server.operator<{ items: Item[] }>(`${environment}${path}`)).items[0] ?? {}
  const { id: runId = '' } = await firstOf<{ id: string }>('/runs')
  const { id: issueId = '' } = await firstOf<{ id: string }>('/issues')
  const { eventId = '' } = await firstOf<{ eventId: string }>(`/runs/${runId}/events`)
  const draft = { condition: 'true', action: 'BLOCK', days: 1 }
  const { id: simulationId } = await server.operator<{ id: string }>(`${environment}/simulations`, draft)
  const policy = { policyId: 'limit', condition: 'true', severity: 'LOW', action: 'WARN' }
  await server.operator(`/workspaces/${home.workspaceId}/policies`, policy)
  const { policyId } = policy
  return { ...home, runId, issueId, eventId, simulationId, policyId, version: '1', ...(await addPrompt(server)) }
}

const DAY_MS = 86_400_000

/** Name and address of each read whose path names what the store has. */
function readAddresses(ids: Ids): [name: string, path: string][] {
  const to = new Date(Date.now()).toISOString()
  const from = new Date(Date.now() - 30 * DAY_MS).toISOString()
  const valueOf = (name: string, { enum: values, format }: Parameter): string =>
    format === 'date-time' ? (name === 'from' ? from : to) : (values?.[0] ?? VALUES[name] ?? ids['issueId'] ?? '')
  return Object.entries(OPERATOR_ROUTES).flatMap(([name, { method, path, ...route }]) => {
    const place = filled(path, ids)
    if (method !== 'GET' || NOT_READ.has(name) || place.includes('{')) return []
    const { required = [], properties = {} } = ('query' in route ? route.query : {}) as Query
    const query = new URLSearchParams(required.map((each) => [each, valueOf(each, properties[each] ?? {})])).toString()
    return [[name, `${OPERATOR_PREFIX}${place}${query === '' ? '' : `?${query}`}`]]
  })
}

/** A stream stays open; a person comes back from the identity provider once. */
const NOT_READ = new Set(['streamApprovals', 'finishOidc'])
const VALUES: Readonly<Record<string, string>> = { from: '1', to: '2', q: 'order' }

interface Parameter {
  enum?: string[]
  format?: string
}

interface Query {
  required?: string[]
  properties?: Record<string, Parameter>
}
