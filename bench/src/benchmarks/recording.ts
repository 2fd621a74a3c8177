/** How many events per second reach the disk. */
import { startBareServer } from '../bare/http-server.ts'
import type { RecordAlone } from '../bare/process.ts'
import type { RecordedAlone } from '../bare/recording.ts'
import type { Setting } from '../benchmark.ts'
import { startChild } from '../child.ts'
import type { Engine } from '../engines/engine.ts'
import { onBoth } from '../engines/on-both.ts'
import { newPlot, type Shape } from '../load/shapes.ts'
import { CONNECTIONS, eventsPerSecond, startLoad } from '../load/start.ts'
import { atLeast, below, ratioAtLeast, row, type Result } from '../result.ts'
import { inTurn } from '../rounds.ts'
import { megabytes, whole } from '../text.ts'

export const WHOLE_RUNS = 'Recording. All events of a request belong to one run, which begins and ends in it.'

export const ingest = onBoth({
  sqlite: ['ingest', 'Recording, a run in each request'],
  postgres: ['postgres', 'Recording on PostgreSQL, a run in each request'],
  about: WHOLE_RUNS,
  measure: (setting, engine) => measure(setting, engine, 'whole-run'),
})

export const mixed = onBoth({
  sqlite: ['mixed', 'Recording, events of 1,000 runs mixed'],
  postgres: ['postgres-mixed', 'Recording on PostgreSQL, events of 1,000 runs mixed'],
  about: `Recording. The events of a request belong to different ones of 1,000 long runs, as from a gateway that batches the \
events of many agents. Every commit changes hundreds of runs and their index entries.`,
  measure: (setting, engine) => measure(setting, engine, 'mixed'),
})

/** Assumed until the server's mean is known. */
const FIRST_COMMIT_EVENTS = 500

async function measure(setting: Setting, engine: Engine, shape: Shape): Promise<Result> {
  const { plan, place } = setting
  const plot = newPlot(shape)
  const { seconds } = plan
  const store = await engine.createStore('store')
  await using server = await store.start()
  await using load = startLoad()
  await using alone = startChild<RecordAlone, RecordedAlone>(new URL('../bare/process.ts', import.meta.url))
  const { at } = await engine.createStore('bare')
  await load.record(server, { send: plot, seconds: plan.warmUpSeconds })
  const warmUp = { seconds: plan.warmUpSeconds / 2, eventsPerCommit: FIRST_COMMIT_EVENTS }
  await alone.call({ at, plot, way: 'insert', ...warmUp })

  let eventsPerCommit = FIRST_COMMIT_EVENTS
  const ours = async () => {
    const recorded = await load.record(server, { send: plot, seconds })
    eventsPerCommit = recorded.perCommit
    return recorded
  }
  const limits = Object.entries(engine.ways).map(
    ([name, way]) => [name, () => alone.call({ at, plot, way, seconds, eventsPerCommit })] as const,
  )
  const { server: found, ...others } = await inTurn(setting, { server: ours, ...Object.fromEntries(limits) })
  const bare = Object.entries(others as Record<string, Record<keyof RecordedAlone, number[]>>)
  const memory = (await server.metrics()).get('process_resident_memory_bytes') ?? Number.NaN
  await using sink = await startBareServer(place, 'sink')
  const send = { plot: newPlot(shape) }
  const ceiling = eventsPerSecond(await load.send(sink, { connections: CONNECTIONS, seconds: seconds / 4, send }))
  const isBudgeted = engine.name === 'sqlite' && shape === 'whole-run'
  return {
    rows: [
      ...bare.map(([name, { rate }]) =>
        row(name, '/s', found.rate, rate, ratioAtLeast(0.6), ...(isBudgeted ? [atLeast(60_000)] : [])),
      ),
      row('processor time of an event', 'µs', found.cpuUs, bare[0]?.[1].cpuUs),
      row('acknowledgement, p50', 'ms', found.p50),
      row('acknowledgement, p99', 'ms', found.p99, null, ...(isBudgeted ? [below(50)] : [])),
      row('acknowledgement, p99.9', 'ms', found.p999),
      row('events in a commit, on average', '', found.perCommit),
    ],
    notes: [
      `After the last round the server uses ${megabytes(memory)} of memory.`,
      `The load generator is not the limit: it sends ${whole(ceiling)} events/s to a \`node:http\` server that only reads the body and answers.`,
    ],
  }
}
