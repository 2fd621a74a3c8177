/** Reading from the embedded engine. */
import path from 'node:path'
import { STORE_FILE } from '@tacho/server/storage/sqlite/database.ts'
import type { SqliteReads } from '../bare/sqlite-reads.ts'
import { withEnds, type Benchmark, type Setting } from '../benchmark.ts'
import { startChild } from '../child.ts'
import type { Result } from '../result.ts'
import { startServer } from '../server.ts'
import type { Times } from '../stats.ts'
import { measureReading } from './reading.ts'

const about = (events: string, runs: string) => [`The store has ${events} events of ${runs} runs before.`]

export const reads: Benchmark = {
  name: 'reads',
  title: 'Reading while recording',
  part: 'sqlite',
  about: about('1 million', '100,000'),
  run: measure,
}

export const readsFull: Benchmark = {
  name: 'reads-full',
  title: 'Reading while recording, 10 million events stored',
  part: 'sqlite',
  about: about('10 million', '1 million'),
  onDemand: true,
  run: measure,
}

function measure(setting: Setting): Promise<Result> {
  return withEnds(async (end) => {
    const server = await startServer(path.join(setting.place, 'store'))
    end(server.stop)
    const child = startChild<SqliteReads, Times>(new URL('../bare/sqlite-reads.ts', import.meta.url))
    end(child.end)
    const file = path.join(server.directory, STORE_FILE)
    const { storedEvents } = setting.plan
    return measureReading(setting, { server, storedEvents, bare: (task) => child.call({ ...task, file }) })
  })
}
