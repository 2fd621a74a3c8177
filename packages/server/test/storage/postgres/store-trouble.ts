/** A database for the tests of one file, and functions that block it or make it fail. */
import { after, before } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { openPostgresStorage, type PostgresOptions } from '../../../src/storage/postgres/open.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import { StorageError } from '../../../src/storage/engine/store.ts'
import { testDatabases, type TestDatabase, type TestDatabases } from '../../setup/postgres-server.ts'

/** Creates a database before the tests of a file and drops it after them. */
export function useTestDatabase() {
  let databases: TestDatabases
  let database: TestDatabase
  let outsider: pg.Client
  before(async () => {
    databases = await testDatabases()
    database = await databases.create()
    outsider = new pg.Client(database.url)
    await outsider.connect()
  })
  after(async () => {
    await outsider.end()
    await database.drop()
    await databases.close()
  })

  /** Runs SQL beside the storage. */
  function query(text: string) {
    return outsider.query<Record<string, unknown>>(text)
  }

  return {
    url: () => database.url,
    createEmpty: () => databases.createEmpty(),
    query,

    async withStorage(options: Partial<PostgresOptions>, work: (storage: Storage) => Promise<void>): Promise<void> {
      const storage = await openPostgresStorage({ url: database.url, ...options })
      try {
        await work(storage)
      } finally {
        await storage.close()
      }
    },

    /** Blocks all reads and writes of the table during the work. */
    async whileLocked(table: string, work: () => Promise<void>): Promise<void> {
      await query(`BEGIN; LOCK TABLE tacho.${table} IN ACCESS EXCLUSIVE MODE`)
      try {
        await work()
      } finally {
        await query('ROLLBACK')
      }
    },

    /** Makes inserts into the table fail during the work: all, or only those of rows that match `of`. */
    async whileFailing(table: string, condition: string, work: () => Promise<void>, of = 'true'): Promise<void> {
      await query(`CREATE FUNCTION tacho.fail() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'on purpose' USING ERRCODE = '${condition}'; END $$`)
      await query(`CREATE TRIGGER fail BEFORE INSERT ON tacho.${table}
        ${of === 'true' ? '' : `FOR EACH ROW WHEN (${of})`} EXECUTE FUNCTION tacho.fail()`)
      try {
        await work()
      } finally {
        await query('DROP FUNCTION tacho.fail CASCADE')
      }
    },
  }
}

export const refusal = (code: StorageError['code']) => (error: unknown) =>
  error instanceof StorageError && error.code === code

/** Repeats an act that fails with a StorageError, like a client. */
export async function retried<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries++) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof StorageError) || tries === 50) throw error
      await sleep(20)
    }
  }
}
