/** How long a client waits for its acknowledgement from a server with a low load. */
import path from 'node:path'
import type { RecordAlone } from '../bare/process.ts'
import type { RecordedAlone } from '../bare/recording.ts'
import type { Benchmark } from '../benchmark.ts'
import { startChild } from '../child.ts'
import { BATCH_EVENTS } from '../load/events.ts'
import { newPlot } from '../load/shapes.ts'
import { startLoad } from '../load/start.ts'
import { below, row } from '../result.ts'
import { inTurn } from '../rounds.ts'
import { startServer } from '../server.ts'
import { whole } from '../text.ts'

const SHARE = 0.1

export const acknowledgement: Benchmark = {
  name: 'acknowledgement',
  title: 'Acknowledgement at a tenth of the maximum',
  part: 'sqlite',
  about: [
    `First the maximum is measured briefly, with a run in each request. Then requests of ${BATCH_EVENTS} events come at a tenth of that rate, at fixed \
times, however slow the answers are. The wait for a free connection counts.`,
    `The bare limit is one transaction of the same ${BATCH_EVENTS} rows through better-sqlite3, at the same rate.`,
  ],
  run: async (setting) => {
    const { plan, place } = setting
    await using server = await startServer(path.join(place, 'store'))
    await using load = startLoad()
    const plot = newPlot('whole-run')
    await using alone = startChild<RecordAlone, RecordedAlone>(new URL('../bare/process.ts', import.meta.url))
    const limit = {
      at: { file: path.join(place, 'bare.db') },
      plot,
      way: 'insert',
      eventsPerCommit: BATCH_EVENTS,
    } as const
    await load.record(server, { send: plot, seconds: plan.warmUpSeconds })
    const { rate: most } = await load.record(server, { send: plot, seconds: plan.seconds / 2 })
    const rate = most * SHARE

    await alone.call({ ...limit, seconds: plan.warmUpSeconds / 2 })
    const { server: ours, bare } = await inTurn(setting, {
      server: () => load.record(server, { send: plot, seconds: plan.seconds, rate }),
      bare: () => alone.call({ ...limit, seconds: plan.seconds, perSecond: rate / BATCH_EVENTS }),
    })
    return {
      rows: [row('p50', 'ms', ours.p50, bare.p50, below(5)), row('p99', 'ms', ours.p99, bare.p99, below(20))],
      notes: [`The maximum was ${whole(most)} events/s, so ${whole(rate / BATCH_EVENTS)} requests came each second.`],
    }
  },
}
