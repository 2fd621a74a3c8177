/** Reading from a large store while events are recorded. Both engines are measured with it. */
import type { BareReads } from '../bare/reads.ts'
import type { Setting } from '../benchmark.ts'
import { startChild } from '../child.ts'
import { BATCH_EVENTS } from '../load/events.ts'
import type { ReadLoad } from '../load/read-load.ts'
import { newPlot } from '../load/shapes.ts'
import { row, type Result, type Row } from '../result.ts'
import type { Server } from '../server.ts'
import type { Times } from '../stats.ts'
import { whole } from '../text.ts'
import { fillHistory, listPaths, timelinePaths } from './history.ts'
import { CONNECTIONS, rateOf, startIngestLoad } from './recording.ts'

const READS_PER_SECOND = 200
const READ_CONNECTIONS = 4
const P99_MS = 20

export interface Reading {
  server: Server
  storedEvents: number
  /** The same reads from the store alone. */
  bare(task: BareReads): Promise<Times>
}

export async function measureReading({ plan, say }: Setting, { server, storedEvents, bare }: Reading): Promise<Result> {
  await using load = startIngestLoad()
  await using read = startChild<ReadLoad, Times>(new URL('../load/read-load.ts', import.meta.url))
  const history = await fillHistory(load, server, storedEvents)
  say(`${whole(storedEvents)} events are stored`)

  const access = { url: server.url, apiKey: server.apiKey }
  const live = { ...access, plot: newPlot('whole-run'), connections: CONNECTIONS }
  const most = rateOf(await load.call({ ...live, seconds: plan.seconds }))
  const recording = { ...live, perSecond: most / 2 / BATCH_EVENTS }
  const pace = { seconds: plan.seconds / 2, perSecond: READS_PER_SECOND }
  const asking = { ...access, ...pace, connections: READ_CONNECTIONS }
  const lists = await listPaths(server)
  const { runIds, paths } = timelinePaths(history)

  /** The rounds for one kind of page, after a warm-up round. */
  async function inTurn(kind: string, ours: () => Promise<Times>, limit: () => Promise<Times>): Promise<Row[]> {
    const [found, limits]: [Times[], Times[]] = [[], []]
    for (let round = 0; round <= plan.rounds; round++) {
      const written = load.call({ ...recording, seconds: 2 * pace.seconds })
      const [times, bareTimes] = [await ours(), await limit()]
      await written
      if (round === 0) continue
      found.push(times)
      limits.push(bareTimes)
      say(`${kind}, round ${round}: p50 ${times.p50.toFixed(2)} ms, p99 ${times.p99.toFixed(2)} ms of ${times.count}`)
    }
    return (['p50', 'p99'] as const).map((name) =>
      row({
        what: `${kind}, ${name}`,
        unit: 'ms',
        better: 'less',
        ours: found.map((times) => times[name]),
        bare: limits.map((times) => times[name]),
        budgets: name === 'p99' ? [{ of: 'ours', is: 'below', limit: P99_MS }] : [],
      }),
    )
  }

  const ofRuns = await inTurn(
    'list of runs',
    () => read.call({ ...asking, paths: lists, items: 1 }),
    () => bare({ ...pace, read: 'runs' }),
  )
  const ofEvents = await inTurn(
    'timeline',
    () => read.call({ ...asking, paths, items: BATCH_EVENTS }),
    () => bare({ ...pace, read: { timelines: runIds } }),
  )
  return { rows: [...ofRuns, ...ofEvents], notes: [`Half the maximum was ${whole(most / 2)} events/s.`] }
}
