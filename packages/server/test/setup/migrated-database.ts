/** The migrated database of a server for tests. New stores are copies of it, because all migrations take half a second. */
import { hash, randomBytes } from 'node:crypto'
import pg from 'pg'
import { parseAddress } from '../../src/storage/postgres/connections.ts'
import { knownMigrations, prepareStore } from '../../src/storage/postgres/migrate.ts'
import { withDatabase } from './administer.ts'

/** `TACT`. An advisory lock applies to the database of the administrator. */
const LOCK = 0x54414354
const WAIT_MS = 10_000

/** Returns the name of the migrated database. The first process that needs it creates it. */
export async function migratedDatabase(adminUrl: string): Promise<string> {
  // The name depends on the migrations: with --watch, they can change while the server runs.
  const migrations = knownMigrations().map(({ sha256 }) => sha256)
  const name = `tacho_migrated_${hash('sha256', migrations.join()).slice(0, 16)}`
  const client = new pg.Client(adminUrl)
  await client.connect()
  try {
    await client.query('SELECT pg_advisory_lock($1)', [LOCK])
    const { rows } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [name])
    if (rows.length === 0) await create(client, adminUrl, name)
  } finally {
    await client.end()
  }
  return name
}

async function create(client: pg.Client, adminUrl: string, name: string): Promise<void> {
  // Rename it at the end, so that no process uses an incomplete one.
  const partial = `tacho_partial_${randomBytes(8).toString('hex')}`
  await client.query(`CREATE DATABASE ${partial}`)
  await migrateEmpty(withDatabase(adminUrl, partial))
  await client.query(`ALTER DATABASE ${partial} RENAME TO ${name}`)
  // A database with connections cannot be copied.
  await client.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`)
}

export async function migrateEmpty(url: string): Promise<void> {
  await prepareStore(parseAddress(url), WAIT_MS)
}
