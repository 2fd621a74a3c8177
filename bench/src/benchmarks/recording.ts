/** How many events a second reach the disk. Both engines are measured with it. */
import { startBareServer } from '../bare/http-server.ts'
import type { Recorded } from '../bare/rows.ts'
import type { Setting } from '../benchmark.ts'
import { startChild } from '../child.ts'
import { BATCH_EVENTS } from '../load/events.ts'
import type { IngestLoad } from '../load/ingest-load.ts'
import type { Paced } from '../load/pace.ts'
import { newPlot, type Plot } from '../load/shapes.ts'
import { row, type Budget, type Result } from '../result.ts'
import { cpuUsPerEvent, eventsPerCommit, type Server } from '../server.ts'
import { megabytes, whole } from '../text.ts'

export const CONNECTIONS = 8

export const WHOLE_RUNS = 'Recording. All events of a request belong to one run, which begins and ends in it.'
export const MIXED_RUNS = `Recording. The events of a request belong to different ones of 1,000 long runs, as from a gateway that batches the \
events of many agents. Every commit changes hundreds of runs and their index entries.`

export interface Recording {
  server: Server
  plot: Plot
  /** Name of the comparison with the driver alone. */
  name: string
  /** Records with the driver alone. */
  bare(args: { seconds: number; eventsPerCommit: number }): Promise<Recorded>
  /** Other tables, and faster ways to insert that lack something the server needs. */
  beside: { what: string; bare: Recording['bare'] }[]
  budgets: { rate: Budget[]; p99?: Budget[] }
}

/** Used until the mean of the server is known. */
const FIRST_COMMIT_EVENTS = 500

export function startIngestLoad() {
  return startChild<IngestLoad, Paced>(new URL('../load/ingest-load.ts', import.meta.url))
}

export async function measureRecording({ plan, place, say }: Setting, recording: Recording): Promise<Result> {
  const { server, plot, name, bare, beside, budgets } = recording
  await using load = startIngestLoad()
  const target = { url: server.url, apiKey: server.apiKey, plot, connections: CONNECTIONS }
  await load.call({ ...target, seconds: plan.warmUpSeconds })
  await bare({ seconds: plan.warmUpSeconds / 2, eventsPerCommit: FIRST_COMMIT_EVENTS })

  const ours: Paced[] = []
  const bares: Recorded[] = []
  const besides = beside.map(({ what }) => ({ what, recorded: [] as Recorded[] }))
  const commits: number[] = []
  const cpus: number[] = []
  for (let round = 1; round <= plan.rounds; round++) {
    const before = await server.metrics()
    const paced = await load.call({ ...target, seconds: plan.seconds })
    const after = await server.metrics()
    const perCommit = eventsPerCommit(before, after)
    const limit = await bare({ seconds: plan.seconds, eventsPerCommit: perCommit })
    ours.push(paced)
    commits.push(perCommit)
    cpus.push(cpuUsPerEvent(before, after))
    bares.push(limit)
    for (const [index, other] of beside.entries()) {
      besides[index]?.recorded.push(await other.bare({ seconds: plan.seconds, eventsPerCommit: perCommit }))
    }
    const rates = [rateOf(paced), limit.eventsPerSecond].map(whole)
    say(`round ${round}: ${rates.join(' events/s, bare ')} at ${whole(perCommit)} a commit`)
  }
  const memory = (await server.metrics()).get('process_resident_memory_bytes') ?? Number.NaN
  const ceiling = await ceilingOf(plan.seconds / 4)
  const times = ours.map((paced) => paced.times)
  const wait = { unit: 'ms', better: 'less' } as const
  return {
    rows: [
      row({
        what: name,
        unit: '/s',
        better: 'more',
        ours: ours.map(rateOf),
        bare: bares.map(({ eventsPerSecond }) => eventsPerSecond),
        budgets: budgets.rate,
      }),
      ...besides.map(({ what, recorded }) =>
        row({
          what,
          unit: '/s',
          better: 'more',
          ours: ours.map(rateOf),
          bare: recorded.map(({ eventsPerSecond }) => eventsPerSecond),
          budgets: budgets.rate,
        }),
      ),
      row({
        what: 'processor time of an event',
        unit: 'µs',
        better: 'less',
        ours: cpus,
        bare: bares.map((each) => each.cpuUsPerEvent),
      }),
      row({ what: 'acknowledgement, p50', ...wait, ours: times.map(({ p50 }) => p50) }),
      row({ what: 'acknowledgement, p99', ...wait, ours: times.map(({ p99 }) => p99), budgets: budgets.p99 ?? [] }),
      row({ what: 'acknowledgement, p99.9', ...wait, ours: times.map(({ p999 }) => p999) }),
      row({ what: 'events in a commit, on average', unit: '', better: 'more', ours: commits }),
    ],
    notes: [
      `After the last round the server uses ${megabytes(memory)} of memory.`,
      `The load generator is not the limit: it sends ${whole(ceiling)} events/s to a \`node:http\` server that only reads the body and answers.`,
    ],
  }

  async function ceilingOf(seconds: number): Promise<number> {
    await using sink = await startBareServer(place, 'sink')
    return rateOf(await load.call({ ...target, url: sink.url, plot: newPlot(plot.shape), seconds }))
  }
}

/** Events a second. */
export function rateOf({ answered, seconds }: Paced): number {
  return (answered * BATCH_EVENTS) / seconds
}
