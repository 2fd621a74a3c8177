/** Reading from a large store while events are recorded. */
import type { ReadAlone } from '../bare/process.ts'
import type { PagesAlone } from '../bare/reading.ts'
import type { Setting } from '../benchmark.ts'
import { startChild } from '../child.ts'
import type { Engine } from '../engines/engine.ts'
import { inFull, onBoth } from '../engines/on-both.ts'
import { BATCH_EVENTS } from '../load/events.ts'
import { longRunsOf, newPlot, runIdOf, type Plot } from '../load/shapes.ts'
import { CONNECTIONS, startLoad } from '../load/start.ts'
import { below, row, type Result, type Row } from '../result.ts'
import { inTurn } from '../rounds.ts'
import type { Server } from '../server.ts'
import type { Times } from '../stats.ts'
import { whole } from '../text.ts'

const READS_PER_SECOND = 200
const READ_CONNECTIONS = 4
const P99_MS = 20
const TIMELINES = 500
const POSTGRES_EVENTS_MAX = 200_000

const about = (events: string, runs: string) =>
  `Before the measurement, the store has ${events} events of ${runs} runs.`

export const reads = onBoth({
  sqlite: ['reads', 'Reading while recording'],
  postgres: ['postgres-reads', 'Reading from PostgreSQL while recording'],
  about: { sqlite: about('1 million', '100,000'), postgres: about('200,000', '20,000') },
  measure,
})

export const readsFull = inFull(reads, about('10 million', '1 million'))

async function measure(setting: Setting, engine: Engine): Promise<Result> {
  const { plan, say } = setting
  const isBounded = engine.name === 'postgres' && plan.size !== 'full'
  const storedEvents = isBounded ? Math.min(plan.storedEvents, POSTGRES_EVENTS_MAX) : plan.storedEvents
  const store = await engine.createStore('store')
  await using server = await store.start()
  const { environmentId } = await server.home()
  await using load = startLoad()
  await using reader = startLoad()
  await using alone = startChild<ReadAlone, Times>(new URL('../bare/process.ts', import.meta.url))
  const history = await load.fillHistory(server, storedEvents)
  say(`${whole(storedEvents)} events are stored`)

  const plot = newPlot('whole-run')
  const { rate: most } = await load.record(server, { send: plot, seconds: plan.seconds })
  const pace = { seconds: plan.seconds / 2, perSecond: READS_PER_SECOND }

  async function whileRecording(read: () => Promise<Times>) {
    const recording = { connections: CONNECTIONS, perSecond: most / 2 / BATCH_EVENTS, send: { plot } }
    const [{ p50, p99 }] = await Promise.all([read(), load.send(server, { ...recording, seconds: pace.seconds })])
    return { p50, p99 }
  }

  async function compare(what: string, paths: string[], items: number, pages: PagesAlone['pages']): Promise<Row[]> {
    const send = { paths: paths.map((path) => `/openapi/v1${path}`), status: 200, expected: { items } }
    const read = async () => (await reader.send(server, { ...pace, connections: READ_CONNECTIONS, send })).times
    const readAlone = () => alone.call({ ...pace, at: store.at, environmentId, pages })
    const sides = { [what]: () => whileRecording(read), bare: () => whileRecording(readAlone) }
    const found = await inTurn(setting, sides, { warmUp: true })
    return [
      row(`${what}, p50`, 'ms', found[what]?.p50 ?? [], found['bare']?.p50),
      row(`${what}, p99`, 'ms', found[what]?.p99 ?? [], found['bare']?.p99, below(P99_MS)),
    ]
  }

  const lists = await compare('list of runs', await listPaths(server), 1, 'lists')
  const runIds = longRuns(history, storedEvents)
  const paths = runIds.map((runId) => `/runs/${runId}/events?limit=${BATCH_EVENTS}`)
  const timelines = await compare('timeline', paths, BATCH_EVENTS, { timelines: runIds })
  return { rows: [...lists, ...timelines], notes: [`Half the maximum was ${whole(most / 2)} events/s.`] }
}

interface RunsPage {
  items: { agent: { id: string } }[]
  nextCursor: string
}

/** The newest runs, the failed ones, those of one agent, and a page further back. */
async function listPaths({ url, headers }: Server): Promise<string[]> {
  const reply = await fetch(`${url}/openapi/v1/runs?limit=100`, { headers })
  const { items, nextCursor } = (await reply.json()) as RunsPage
  return [
    '/runs',
    '/runs?status=FAILED',
    `/runs?agentId=${items[0]?.agent.id}`,
    `/runs?cursor=${encodeURIComponent(nextCursor)}`,
  ]
}

/** Runs with a hundred events, spread over the history. */
function longRuns(plot: Plot, events: number): string[] {
  const runs = longRunsOf(events / BATCH_EVENTS)
  const step = Math.max(1, Math.floor(runs.length / TIMELINES))
  return runs.filter((_, index) => index % step === 0).map((run) => runIdOf(plot, run))
}
