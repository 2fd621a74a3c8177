import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { type Client, DatabaseError } from 'pg'
import { ROOT } from '../../program/program.ts'
import { checkApplied, readMigrations, type Applied, type Migration } from '../sql/engine/migrations.ts'
import { StoreRefused } from '../engine/store.ts'
import { distributeNew } from './citus.ts'
import { inTransaction, SCHEMA } from './connections.ts'

/** `TACH`. An advisory lock applies to the whole database. */
const LOCK = 0x54414348
const LOCK_POLL_MS = 100
const OLDEST_MAJOR = 15

/** Marks a migration of one statement that cannot run in a transaction, such as CREATE INDEX CONCURRENTLY. */
const NO_TRANSACTION = '-- no transaction'

export function knownMigrations(): Migration[] {
  return readMigrations(path.join(ROOT, 'packages/server/src/storage/postgres/migrations'))
}

/** `client` has no timeouts. Returns the names of the applied migrations. */
export async function migrate(client: Client, migrations: Migration[] = knownMigrations()): Promise<string[]> {
  await checkServer(client)
  await client.query(`SET search_path = ${SCHEMA}`)
  const present = await appliedMigrations(client)
  checkApplied(present, migrations)
  if (present.length === migrations.length) return []
  await takeLock(client)
  try {
    const applied = await applyDue(client, migrations)
    await distributeNew(client)
    return applied
  } catch (error) {
    throw refusal(error) ?? error
  } finally {
    await client.query('SELECT pg_advisory_unlock($1)', [LOCK])
  }
}

async function checkServer(client: Client): Promise<void> {
  const { rows } = await client.query<{ version: string; encoding: string }>(
    "SELECT current_setting('server_version') AS version, current_setting('server_encoding') AS encoding",
  )
  const [{ version, encoding } = { version: '0', encoding: '' }] = rows
  if (Number.parseInt(version, 10) < OLDEST_MAJOR) {
    throw new StoreRefused(`The database is PostgreSQL ${version}; Tacho needs ${OLDEST_MAJOR} or newer.`)
  }
  if (encoding !== 'UTF8') {
    throw new StoreRefused(`The database has the encoding ${encoding}; create one with the encoding UTF8.`)
  }
}

export async function appliedMigrations(client: Pick<Client, 'query'>): Promise<Applied[]> {
  const { rows: tables } = await client.query(`SELECT 1 WHERE to_regclass('${SCHEMA}.migrations') IS NOT NULL`)
  if (tables.length === 0) return []
  const text = `SELECT version, name, sha256 FROM ${SCHEMA}.migrations ORDER BY version`
  return (await client.query<Applied>(text)).rows
}

/** Polled instead of awaited, because CREATE INDEX CONCURRENTLY waits for every running statement. */
async function takeLock(client: Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ taken: boolean }>('SELECT pg_try_advisory_lock($1) AS taken', [LOCK])
    if (rows[0]?.taken) return
    await wait(LOCK_POLL_MS)
  }
}

async function applyDue(client: Client, migrations: Migration[]): Promise<string[]> {
  await client.query(`CREATE SCHEMA IF NOT EXISTS ${SCHEMA}`)
  const applied = await appliedMigrations(client)
  checkApplied(applied, migrations)
  if (applied.length === 0) {
    await client.query(`CREATE TABLE IF NOT EXISTS migrations (
      version integer PRIMARY KEY,
      name text NOT NULL,
      sha256 text NOT NULL,
      applied_at bigint NOT NULL
    )`)
  }
  const due = migrations.slice(applied.length)
  for (const migration of due) await apply(client, migration)
  return due.map(({ name }) => name)
}

async function apply(client: Client, { version, name, sha256, text }: Migration): Promise<void> {
  const record = () =>
    client.query('INSERT INTO migrations (version, name, sha256, applied_at) VALUES ($1, $2, $3, $4)', [
      version,
      name,
      sha256,
      Date.now(),
    ])
  if (text.startsWith(NO_TRANSACTION)) {
    await client.query(text)
    await record()
  } else {
    await inTransaction(client, async () => {
      for (const statement of statementsOf(text)) await client.query(statement)
      await record()
    })
  }
}

/**
 * A statement ends with a line that ends with a semicolon, outside of $$. Each is a query of its own, because Citus sends
 * the whole query to its workers with each change of a distributed table.
 */
function statementsOf(text: string): string[] {
  const statements = ['']
  for (const line of text.trimEnd().split('\n')) {
    const statement = `${statements.pop()}${line}\n`
    statements.push(statement)
    const isOpen = statement.split('$$').length % 2 === 0
    if (!isOpen && /;\s*(--.*)?$/.test(line)) statements.push('')
  }
  return statements.filter((statement) => statement !== '')
}

function refusal(error: unknown): StoreRefused | null {
  if (!(error instanceof DatabaseError) || error.code !== '42501') return null
  return new StoreRefused(`Tacho may not create its tables in this database: ${error.message}.`)
}
