/** How long a client waits for its acknowledgement from a server with a low load. */
import path from 'node:path'
import type { BareWrites, BareWritten } from '../bare/sqlite.ts'
import type { Benchmark } from '../benchmark.ts'
import { startChild } from '../child.ts'
import { BATCH_EVENTS } from '../load/events.ts'
import type { Paced } from '../load/pace.ts'
import { newPlot } from '../load/shapes.ts'
import { row } from '../result.ts'
import { startServer } from '../server.ts'
import { whole } from '../text.ts'
import { CONNECTIONS, rateOf, startIngestLoad } from './recording.ts'

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
  run: async ({ plan, place, say }) => {
    await using server = await startServer(path.join(place, 'store'))
    await using load = startIngestLoad()
    await using bare = startChild<BareWrites, BareWritten>(new URL('../bare/sqlite.ts', import.meta.url))
    const plot = newPlot('whole-run')
    const target = { url: server.url, apiKey: server.apiKey, plot, connections: CONNECTIONS }
    const limit = { file: path.join(place, 'bare.db'), plot, eventsPerCommit: BATCH_EVENTS }
    await load.call({ ...target, seconds: plan.warmUpSeconds })
    const most = rateOf(await load.call({ ...target, seconds: plan.seconds / 2 }))
    const perSecond = (most * SHARE) / BATCH_EVENTS
    await bare.call({ ...limit, seconds: plan.warmUpSeconds / 2 })

    const ours: Paced['times'][] = []
    const bares: Paced['times'][] = []
    for (let round = 1; round <= plan.rounds; round++) {
      const { times } = await load.call({ ...target, seconds: plan.seconds, perSecond })
      const { times: bareTimes } = await bare.call({ ...limit, seconds: plan.seconds, perSecond })
      ours.push(times)
      bares.push(bareTimes)
      say(`round ${round}: p50 ${times.p50.toFixed(2)} ms, p99 ${times.p99.toFixed(2)} ms of ${times.count}`)
    }
    const of = (name: 'p50' | 'p99') => ({
      ours: ours.map((times) => times[name]),
      bare: bares.map((times) => times[name]),
      unit: 'ms',
      better: 'less' as const,
    })
    return {
      rows: [
        row({ what: 'p50', ...of('p50'), budgets: [{ of: 'ours', is: 'below', limit: 5 }] }),
        row({ what: 'p99', ...of('p99'), budgets: [{ of: 'ours', is: 'below', limit: 20 }] }),
      ],
      notes: [`The maximum was ${whole(most)} events/s, so ${whole(perSecond)} requests came each second.`],
    }
  },
}
