/** PostgreSQL with data on disk. Quick benchmarks use the test run's server. */
import path from 'node:path'
import { openPostgresStorage } from '@tacho/server/storage/postgres/open.ts'
import { databasesOf, startPostgres, testDatabases } from '../../../packages/server/test/setup/postgres-server.ts'
import { connect } from '../bare/postgres.ts'
import { withSql } from '../bare/sql.ts'
import type { Setting } from '../benchmark.ts'
import { startServer } from '../server.ts'
import type { Engine, Store } from './engine.ts'

/** Settings that let the server reuse its write-ahead log files. */
const SETTINGS = ['shared_buffers = 1GB', 'max_wal_size = 4GB', 'min_wal_size = 4GB']
const WAL_FILES = 4096 / 16

export async function openPostgres({ plan, place }: Setting): Promise<Engine> {
  const databases = plan.size === 'quick' ? await testDatabases() : await durableDatabases()
  return {
    name: 'postgres',
    createStore: async (name) => postgresStore(path.join(place, name), (await databases.create()).url),
    ways: { 'events, beside INSERT': 'insert', 'events, beside COPY': 'copy' },
    [Symbol.asyncDispose]: () => databases.close(),
  }
}

const SIZE = 'SELECT pg_database_size(current_database()) AS bytes'

function postgresStore(directory: string, url: string): Store {
  return {
    at: { url },
    start: (flags = [], options) => startServer(directory, ['--database-url', url, ...flags], options),
    open: () => openPostgresStorage({ url }),
    async size() {
      const found = await withSql({ url }, (sql) => sql.get<{ bytes: number }>(SIZE))
      return { bytes: found?.bytes ?? Number.NaN, freeBytes: null }
    },
  }
}

async function durableDatabases() {
  const server = await startPostgres({ durable: true, settings: SETTINGS })
  await fillWal(server.url())
  return { ...databasesOf(server.url()), close: () => server.close() }
}

/**
 * Creates as many write-ahead log files as a database has after a day. Otherwise commits would wait for the creation of
 * each file of 16 MiB.
 */
async function fillWal(url: string): Promise<void> {
  const client = await connect(url)
  for (let file = 0; file < WAL_FILES; file++) {
    await client.query("SELECT pg_logical_emit_message(false, '', ''); SELECT pg_switch_wal()")
  }
  await client.query('CHECKPOINT')
  await client.end()
}
