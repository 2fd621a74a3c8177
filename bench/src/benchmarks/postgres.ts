/** Recording and reading on PostgreSQL, and with two processes. */
import path from 'node:path'
import pg from 'pg'
import { openPostgresStorage } from '@tacho/server/storage/postgres/open.ts'
import {
  databasesOf,
  startPostgres,
  testDatabases,
  type TestDatabases,
} from '../../../packages/server/test/setup/postgres-server.ts'
import type { PostgresReads } from '../bare/postgres-reads.ts'
import type { BarePostgresWrites } from '../bare/postgres.ts'
import type { Recorded } from '../bare/rows.ts'
import type { Benchmark, Setting } from '../benchmark.ts'
import { startChild } from '../child.ts'
import { newPlot, type Shape } from '../load/shapes.ts'
import type { Plan } from '../plan.ts'
import { row, type Result } from '../result.ts'
import { startServer } from '../server.ts'
import { spreadOf, type Times } from '../stats.ts'
import { ratio, spread, whole } from '../text.ts'
import { ERASED, measureErasure } from './erasure.ts'
import { measurePacked, PACKED } from './packed.ts'
import { measureReading } from './reading.ts'
import {
  CONNECTIONS,
  measureRecording,
  MIXED_RUNS,
  rateOf,
  startIngestLoad,
  WHOLE_RUNS,
  type Recording,
} from './recording.ts'
import { KILLS_AT, measureRetention, RETAINED, type RetainedStore } from './retention.ts'
import { measureSearched, SEARCHED } from './searched.ts'
import { FULL_AND_EMPTY, measureStored } from './stored.ts'

/** The server reuses its write-ahead log files. */
const SETTINGS = ['shared_buffers = 1GB', 'max_wal_size = 4GB', 'min_wal_size = 4GB']
const WAL_FILES = 4096 / 16
const BARE_CONNECTIONS = 4
const STORED_EVENTS_MAX = 200_000

export const postgres: Benchmark = {
  name: 'postgres',
  title: 'Recording on PostgreSQL, a run in each request',
  part: 'postgres',
  about: [WHOLE_RUNS],
  run: (setting) => record(setting, 'whole-run'),
}

export const postgresMixed: Benchmark = {
  name: 'postgres-mixed',
  title: 'Recording on PostgreSQL, events of 1,000 runs mixed',
  part: 'postgres',
  about: [MIXED_RUNS],
  run: (setting) => record(setting, 'mixed'),
}

export const postgresStored: Benchmark = {
  name: 'postgres-stored',
  title: 'Recording on PostgreSQL, 10 million events stored',
  part: 'postgres',
  about: [`${WHOLE_RUNS} ${FULL_AND_EMPTY}`],
  onDemand: true,
  run: onDatabases((setting, create) => measureStored(setting, serversOf(setting.place, create))),
}

export const postgresSearched: Benchmark = {
  name: 'postgres-searched',
  title: 'Recording on PostgreSQL with search on',
  part: 'postgres',
  about: [SEARCHED],
  run: onDatabases((setting, create) => measureSearched(setting, serversOf(setting.place, create))),
}

export const postgresPacked: Benchmark = {
  name: 'postgres-packed',
  title: 'Recording on PostgreSQL while payloads are packed',
  part: 'postgres',
  about: [PACKED],
  run: onDatabases(async (setting, create) => measurePacked(setting, retainedStore(setting.place, await create()))),
}

export const postgresReads: Benchmark = {
  name: 'postgres-reads',
  title: 'Reading from PostgreSQL while recording',
  part: 'postgres',
  about: ['The store has 200,000 events of 20,000 runs before.'],
  run: (setting) => read(setting, Math.min(setting.plan.storedEvents, STORED_EVENTS_MAX)),
}

export const postgresReadsFull: Benchmark = {
  name: 'postgres-reads-full',
  title: 'Reading from PostgreSQL while recording, 10 million events stored',
  part: 'postgres',
  about: ['The store has 10 million events of 1 million runs before.'],
  onDemand: true,
  run: (setting) => read(setting, setting.plan.storedEvents),
}

export const postgresRetention: Benchmark = {
  name: 'postgres-retention',
  title: 'Removing old runs from PostgreSQL while recording',
  part: 'postgres',
  about: [RETAINED],
  run: onDatabases(async (setting, create) => {
    // After a kill, the lease of the dead node has to end first, which takes minutes.
    const killsAt = setting.plan.size === 'quick' ? [] : KILLS_AT
    return measureRetention(setting, { ...retainedStore(setting.place, await create()), killsAt })
  }),
}

export const postgresRetentionFull: Benchmark = {
  ...postgresRetention,
  name: 'postgres-retention-full',
  title: 'Removing old runs from PostgreSQL while recording, 10 million events stored',
  onDemand: true,
}

export const postgresErasure: Benchmark = {
  name: 'postgres-erasure',
  title: 'Erasing a session among a million runs on PostgreSQL',
  part: 'postgres',
  about: [ERASED],
  run: onDatabases(async (setting, create) => measureErasure(setting, retainedStore(setting.place, await create()))),
}

function retainedStore(place: string, url: string): Omit<RetainedStore, 'killsAt'> {
  const query = async (text: string) => {
    const client = new pg.Client({ connectionString: url, options: '-c search_path=tacho' })
    await client.connect()
    try {
      return (await client.query<Record<string, unknown>>(text)).rows
    } finally {
      await client.end()
    }
  }
  return {
    start: (flags = []) => startServer(path.join(place, 'server'), ['--database-url', url, ...flags]),
    open: () => openPostgresStorage({ url }),
    query,
    size: async () => {
      const [row] = await query('SELECT pg_database_size(current_database()) AS bytes')
      return { bytes: Number(row?.['bytes']), freeBytes: null }
    },
  }
}

export const postgresWorkers: Benchmark = {
  name: 'postgres-workers',
  title: 'From one process to two',
  part: 'postgres',
  about: [
    `${WHOLE_RUNS} One server has one process, the other has two (\`--workers 2\`), each with its own database. Here the bare limit is the server with \
one process. The database and the load generator run on the same machine, so two cores leave little for a second process.`,
  ],
  run: async ({ plan, place, say }) => {
    await using databases = await startDatabases(plan)
    await using load = startIngestLoad()
    const serve = async (workers: number) => {
      const flags = ['--database-url', await databases.create(), '--workers', String(workers)]
      return startServer(path.join(place, `server-${workers}`), flags)
    }
    await using pair = await serve(2)
    await using single = await serve(1)
    const targets = [pair, single].map(({ url, apiKey }) => {
      return { url, apiKey, plot: newPlot('whole-run'), connections: CONNECTIONS }
    })
    const rates: number[][] = targets.map(() => [])
    for (let round = 0; round <= plan.rounds; round++) {
      for (const [index, target] of targets.entries()) {
        const rate = rateOf(await load.call({ ...target, seconds: round === 0 ? plan.warmUpSeconds : plan.seconds }))
        if (round > 0) rates[index]?.push(rate)
      }
      if (round > 0)
        say(`round ${round}: two ${whole(rates[0]?.at(-1) ?? 0)} events/s, one ${whole(rates[1]?.at(-1) ?? 0)}`)
    }
    const [two = [], one = []] = rates
    const growth = spreadOf(two.map((rate, round) => rate / (one[round] ?? Number.NaN)))
    return {
      rows: [row({ what: 'events, two processes', unit: '/s', better: 'more', ours: two, bare: one })],
      notes: [`From one process to two the rate grows ${spread(growth, ratio)} times.`],
    }
  },
}

/** Starts servers, each on a database of its store's name. */
function serversOf(place: string, createDatabase: CreateDatabase) {
  const urls = new Map<string, Promise<string>>()
  return async (store: string) => {
    const url = urls.get(store) ?? createDatabase()
    urls.set(store, url)
    return startServer(path.join(place, store), ['--database-url', await url])
  }
}

async function read(setting: Setting, storedEvents: number): Promise<Result> {
  await using databases = await startDatabases(setting.plan)
  const url = await databases.create()
  await using server = await startServer(path.join(setting.place, 'server'), ['--database-url', url])
  await using child = startChild<PostgresReads, Times>(new URL('../bare/postgres-reads.ts', import.meta.url))
  return await measureReading(setting, { server, storedEvents, bare: (task) => child.call({ ...task, url }) })
}

async function record(setting: Setting, shape: Shape): Promise<Result> {
  await using databases = await startDatabases(setting.plan)
  await using server = await startServer(path.join(setting.place, 'server'), [
    '--database-url',
    await databases.create(),
  ])
  await using child = startChild<BarePostgresWrites, Recorded>(new URL('../bare/postgres.ts', import.meta.url))
  const plot = newPlot(shape)
  const url = await databases.create()
  const by =
    (way: BarePostgresWrites['way']): Recording['bare'] =>
    (args) =>
      child.call({ ...args, url, plot, connections: BARE_CONNECTIONS, way })
  const budgets = { rate: [{ of: 'ratio', is: 'at least', limit: 0.6 } as const] }
  const beside = [{ what: 'events, beside COPY', bare: by('copy') }]
  const name = 'events, beside INSERT'
  return await measureRecording(setting, { server, plot, name, bare: by('insert'), beside, budgets })
}

type CreateDatabase = () => Promise<string>

/** A benchmark that gets a function to create databases, which exist until it ends. */
function onDatabases(measure: (setting: Setting, create: CreateDatabase) => Promise<Result>): Benchmark['run'] {
  return async (setting) => {
    await using databases = await startDatabases(setting.plan)
    return await measure(setting, databases.create)
  }
}

/** A PostgreSQL that syncs its commits to disk. Quick benchmarks use that of the test run. */
async function startDatabases({ size }: Plan) {
  const databases = size === 'quick' ? await testDatabases() : await durableDatabases()
  const create = async () => (await databases.create()).url
  return { create, [Symbol.asyncDispose]: () => databases.close() }
}

async function durableDatabases(): Promise<TestDatabases> {
  const server = await startPostgres({ durable: true, settings: SETTINGS })
  await fillWal(server.url())
  return { ...databasesOf(server.url()), close: () => server.close() }
}

/**
 * Creates the write-ahead log files that a database has after a day. Otherwise commits wait while each file of 16 MiB is
 * created.
 */
async function fillWal(url: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  for (let file = 0; file < WAL_FILES; file++) {
    await client.query("SELECT pg_logical_emit_message(false, '', ''); SELECT pg_switch_wal()")
  }
  await client.query('CHECKPOINT')
  await client.end()
}
