/** Reading a run with a great number of events. */
import path from 'node:path'
import { STORE_FILE } from '@tacho/server/storage/sqlite/database.ts'
import type { SqliteReads } from '../bare/sqlite-reads.ts'
import type { Benchmark } from '../benchmark.ts'
import { startChild } from '../child.ts'
import { BATCH_EVENTS } from '../load/events.ts'
import type { WalkLoad, WalkTimes } from '../load/read-load.ts'
import { newPlot, runIdOf } from '../load/shapes.ts'
import { row } from '../result.ts'
import { startServer } from '../server.ts'
import { megabytes, whole } from '../text.ts'
import { startIngestLoad } from './recording.ts'

export const largeRun: Benchmark = {
  name: 'large-run',
  title: 'Reading a run of 30,000 events',
  part: 'sqlite',
  about: [
    `One run of 30,000 events is read the way a client reads it: the run with its first 100 events (twenty times), then all further events in pages \
of 200, one after the other. The server has no other load. The bare limit is the same SQL through better-sqlite3 on the same file, without a server.`,
  ],
  run: async ({ plan, place, say }) => {
    await using server = await startServer(path.join(place, 'store'))
    await using load = startIngestLoad()
    await using read = startChild<WalkLoad, WalkTimes>(new URL('../load/read-load.ts', import.meta.url))
    await using bare = startChild<SqliteReads, WalkTimes>(new URL('../bare/sqlite-reads.ts', import.meta.url))
    const { url, apiKey } = server
    const plot = newPlot('long-run')
    await load.call({ url, apiKey, plot, connections: 4, requests: plan.longRunEvents / BATCH_EVENTS })
    const walk = runIdOf(plot, 0)
    const target = { url, apiKey, walk, events: plan.longRunEvents }
    const limit = { file: path.join(server.directory, STORE_FILE), walk }
    await read.call(target)
    await bare.call(limit)

    const ours: WalkTimes[] = []
    const bares: WalkTimes[] = []
    for (let round = 1; round <= plan.rounds; round++) {
      ours.push(await read.call(target))
      bares.push(await bare.call(limit))
      const last = ours.at(-1)
      say(`round ${round}: first page ${last?.firstPageMs.toFixed(2)} ms, all ${last?.allPagesMs.toFixed(0)} ms`)
    }
    const of = (name: 'firstPageMs' | 'allPagesMs') => ({
      ours: ours.map((times) => times[name]),
      bare: bares.map((times) => times[name]),
      unit: 'ms',
      better: 'less' as const,
    })
    const [first] = ours
    return {
      rows: [
        row({ what: 'first page', ...of('firstPageMs'), budgets: [{ of: 'ours', is: 'below', limit: 10 }] }),
        row({ what: 'all pages', ...of('allPagesMs') }),
      ],
      notes: first ? [`The run has ${whole(first.pages)} pages and ${megabytes(first.bytes)}.`] : [],
    }
  },
}
