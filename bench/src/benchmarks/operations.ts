/** Each read operation of the operator API, while another workspace records. */
import { setTimeout as sleep } from 'node:timers/promises'
import { OPERATOR_ROUTES, OPERATOR_PREFIX } from '@tacho/contract/web/operator-routes.ts'
import type { Setting } from '../benchmark.ts'
import { startChild } from '../child.ts'
import type { Engine } from '../engines/engine.ts'
import { onBoth } from '../engines/on-both.ts'
import type { Attack, Suffered } from '../load/attacks.ts'
import { BATCH_EVENTS } from '../load/events.ts'
import { newPlot } from '../load/shapes.ts'
import { startLoad } from '../load/start.ts'
import { below, row, type Result } from '../result.ts'
import { inTurn } from '../rounds.ts'
import type { Server } from '../server.ts'
import { spreadOf, type Spread } from '../stats.ts'
import { figure, spread, whole } from '../text.ts'
import { watch } from '../watch.ts'
import { addPrompt, addTenant, filled, type Ids } from './sample-ids.ts'

/** Connections that read at the same time. */
const READERS = 50
const RECORDED_PER_SECOND = 2_000
const RECORDING_MS = 100
const HEALTH_MS = 50
/** Runs with gaps. A single query for sums does not read so many. */
const GAPS = 12_000
const OCCURRENCES = 2_000

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
  const other = { url: server.url, headers: await addTenant(server, 'other') }
  const { versionId, ...ids } = await idsOf(server, Math.min(plan.storedEvents / 100, OCCURRENCES))
  await recordGaps(server, versionId, Math.min(plan.storedEvents / 10, GAPS))
  const operations = readAddresses(ids)
  const plot = newPlot('whole-run')
  const { url, operatorHeaders: headers } = server
  const isQuick = plan.size === 'quick'
  // A quick run only checks that each of the seventy operations answers.
  const seconds = isQuick ? 0.001 : plan.seconds
  const readers = Math.min(READERS, plan.connectionsMax)

  async function beside(...paths: string[]) {
    const reads = paths.map((path) => ({ path, connections: Math.ceil(readers / paths.length) }))
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
  for (const [name, path] of isQuick ? operations.slice(0, 5) : operations) {
    const first = await beside(path)
    const more: (typeof first)[] = []
    const isAbove = first.recording >= RECORDING_MS || first.health >= HEALTH_MS
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
      row('all of them: /healthz, p99', 'ms', mixed.health, calm.health, below(HEALTH_MS)),
      row('the slowest of them alone: acknowledgement, p99', 'ms', slowest('recording'), null, below(RECORDING_MS)),
      row('the slowest of them alone: /healthz, p99', 'ms', slowest('health'), null, below(HEALTH_MS)),
    ],
    notes: [],
    table: [
      '| one operation alone | acknowledgement, p99 | /healthz, p99 |',
      '|---|---|---|',
      ...alone.map(({ name, recording, health }) => `| \`${name}\` | ${spread(recording)} ms | ${spread(health)} ms |`),
    ],
  }
}

/** Records runs with gaps. Their calls name a prompt version. */
async function recordGaps({ url, headers }: Server, promptVersionId: string, runs: number): Promise<void> {
  const usage = { promptTokens: 900, completionTokens: 100 }
  for (let first = 0; first < runs; first += BATCH_EVENTS) {
    const now = Date.now()
    const events = Array.from({ length: BATCH_EVENTS }, (_, at) => ({
      eventId: `gap ${first + at}`,
      clientId: `client ${at}`,
      runId: `run with gaps ${first + at}`,
      agentName: 'Support bot',
      eventType: 'LLM_CALL',
      label: 'answer',
      timestamp: now,
      n: 'bench9',
      dropped: { queue_full: [2, now] },
      payload: { promptVersionId, model: 'gpt-5', latency: at, usage },
    }))
    const json = { ...headers, 'content-type': 'application/json' }
    const reply = await fetch(`${url}/openapi/v1/events/batch`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify(events),
    })
    const { success } = (await reply.json()) as { success: boolean }
    if (!success) throw new Error('An event of a run with gaps was refused')
  }
}

/** Adds an issue and waits until all occurrences have been reviewed, at most a minute. */
async function addIssue(server: Server, environment: string, occurrences: number): Promise<string> {
  for (let at = 0; at < occurrences; at++) {
    const record = {
      sdkInstanceId: 'bench',
      clientRecordId: `record ${at}`,
      recordKind: 'DETECTION',
      detectionType: 'TOOL_BLOCKED',
      runId: `run with gaps ${at}`,
      agentId: 'support',
      policyId: 'limit',
      detectedAt: Date.now(),
      payload: { toolName: 'refund', reasonCode: 'OVER_LIMIT' },
    }
    const headers = { ...server.headers, 'content-type': 'application/json' }
    const sent = { method: 'POST', headers, body: JSON.stringify(record) }
    const reply = await fetch(`${server.url}/openapi/v1/issue-records`, sent)
    await reply.arrayBuffer()
    if (!reply.ok) throw new Error(`An issue record was refused: ${reply.status}`)
  }
  for (const end = performance.now() + 60_000; performance.now() < end; await sleep(50)) {
    const { items } = await server.operator<{ items: Issue[] }>(`${environment}/issues`)
    const issue = items.find((found) => found.occurrences >= occurrences)
    if (issue) return issue.id
  }
  throw new Error('The issue records were not reviewed within a minute')
}

interface Issue {
  id: string
  occurrences: number
}

/** Ids of stored items, by parameter name. */
async function idsOf(server: Server, occurrences: number): Promise<Ids & { versionId: string }> {
  const home = await server.home()
  const environment = `/environments/${home.environmentId}`
  const firstOf = async <Item extends object>(path: string): Promise<Partial<Item>> =>
    (await server.operator<{ items: Item[] }>(`${environment}${path}`)).items[0] ?? {}
  const { id: runId = '' } = await firstOf<{ id: string }>('/runs')
  const issueId = await addIssue(server, environment, occurrences)
  const { eventId = '' } = await firstOf<{ eventId: string }>(`/runs/${runId}/events`)
  const draft = { condition: 'true', action: 'BLOCK', days: 1 }
  const { id: simulationId } = await server.operator<{ id: string }>(`${environment}/simulations`, draft)
  const policy = { policyId: 'limit', condition: 'true', severity: 'LOW', action: 'WARN' }
  await server.operator(`/workspaces/${home.workspaceId}/policies`, policy)
  const { policyId } = policy
  return { ...home, runId, issueId, eventId, simulationId, policyId, version: '1', ...(await addPrompt(server)) }
}

const DAY_MS = 86_400_000

/** Name and address of each read operation for which the store has ids. */
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

/** Excluded: a stream stays open, and an answer of the identity provider works only once. */
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
