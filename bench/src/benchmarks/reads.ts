/** Reading from the embedded engine. */
import path from 'node:path'
import { STORE_FILE } from '@tacho/server/storage/sqlite/database.ts'
import type { SqliteReads } from '../bare/sqlite-reads.ts'
import type { Benchmark, Setting } from '../benchmark.ts'
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

async function measure(setting: Setting): Promise<Result> {
  await using server = await startServer(path.join(setting.place, 'store'))
  await using child = startChild<SqliteReads, Times>(new URL('../bare/sqlite-reads.ts', import.meta.url))
  const file = path.join(server.directory, STORE_FILE)
  const { storedEvents } = setting.plan
  return await measureReading(setting, { server, storedEvents, bare: (task) => child.call({ ...task, file }) })
}
