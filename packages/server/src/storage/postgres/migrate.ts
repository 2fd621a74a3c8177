/** Migrates a database to the current schema before the store is served, on a separate connection without timeouts. */
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import pg, { type Client, type ClientBase, DatabaseError } from 'pg'
import { ROOT } from '../../program/program.ts'
import { checkApplied, readMigrations, type Applied, type Migration } from '../sql/engine/migrations.ts'
import { StoreRefused } from '../engine/store.ts'
import { inTransaction, SCHEMA, parseAddress, type Address } from './connections.ts'

/** `TACH` in ASCII. An advisory lock applies to the whole database. */
const LOCK = 0x54414348
const LOCK_POLL_MS = 100
const OLDEST_MAJOR = 15

/**
 * Marks a migration that consists of one statement and cannot run in a transaction, such as CREATE INDEX CONCURRENTLY.
 */
const NO_TRANSACTION = '-- no transaction'

export function knownMigrations(): Migration[] {
  return readMigrations(path.join(ROOT, 'packages/server/src/storage/postgres/migrations'))
}

/** `client` must have no timeouts. Returns the names of the applied migrations. */
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

/** Polls the lock instead of waiting for it, because CREATE INDEX CONCURRENTLY waits for every running statement. */
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
 * A statement ends with a line that ends with a semicolon, outside of $$. Each becomes a separate query, because Citus
 * sends the whole query to its workers with each change of a distributed table.
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

/** A Citus cluster distributes the tables whose environment_id is a uuid: all rows of a tenant are on one machine. */
const DATA_TABLES = `SELECT c.relname AS name FROM pg_class c
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'environment_id' AND a.atttypid = 'uuid'::regtype
  WHERE c.relnamespace = '${SCHEMA}'::regnamespace AND c.relkind = 'r' ORDER BY c.relname`

const FIRST = 'runs'

export async function dataTables(client: Pick<Client, 'query'>): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(DATA_TABLES)
  return [FIRST, ...rows.map(({ name }) => name).filter((name) => name !== FIRST)]
}

export function distribution(table: string): string {
  const beside = table === FIRST ? 'none' : `${SCHEMA}.${FIRST}`
  return `SELECT create_distributed_table('${SCHEMA}.${table}', 'environment_id', colocate_with => '${beside}')`
}

async function distribute(client: Pick<Client, 'query'>): Promise<string[]> {
  if (!(await isCitus(client))) {
    throw new StoreRefused('The database has no Citus extension. Run CREATE EXTENSION citus.')
  }
  const distributed = await distributedTables(client)
  const due = (await dataTables(client)).filter((table) => !distributed.includes(table))
  for (const table of due) await client.query(distribution(table))
  return due
}

async function distributeNew(client: Pick<Client, 'query'>): Promise<void> {
  if ((await isCitus(client)) && (await distributedTables(client)).includes(FIRST)) await distribute(client)
}

export async function isCitus(client: Pick<ClientBase, 'query'>): Promise<boolean> {
  return (await client.query("SELECT 1 FROM pg_extension WHERE extname = 'citus'")).rows.length > 0
}

async function distributedTables(client: Pick<Client, 'query'>): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT c.relname AS name FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid
      WHERE c.relnamespace = '${SCHEMA}'::regnamespace`,
  )
  return rows.map(({ name }) => name)
}

const POLL_MS = 250
const CONNECT_MS = 5_000

export function prepareStore(address: Address, waitMs: number): Promise<string[]> {
  return onConnection(address, waitMs, (client) => migrate(client))
}

export function distributeStore(url: string, waitMs = 10_000): Promise<string[]> {
  return onConnection(parseAddress(url), waitMs, async (client) => {
    await migrate(client)
    return distribute(client)
  })
}

async function onConnection<Result>(
  address: Address,
  waitMs: number,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = await connect(address, performance.now() + waitMs)
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

async function connect({ config, shown }: Address, deadline: number): Promise<pg.Client> {
  for (;;) {
    const client = new pg.Client({ ...config, connectionTimeoutMillis: CONNECT_MS, keepAlive: true })
    client.on('error', () => undefined)
    try {
      return await client.connect()
    } catch (error) {
      const isOver = performance.now() + POLL_MS >= deadline
      if (isOver || !isPassing(error)) throw unusable(shown, error)
      await wait(POLL_MS)
    }
  }
}

const NETWORK_CODES = /^(ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)$/

/** Whether waiting may help: the database is starting, stopping, overloaded or not yet reachable. */
function isPassing(error: unknown): boolean {
  if (error instanceof DatabaseError) return /^(57|53)/.test(error.code ?? '')
  const { code = '', message } = error as NodeJS.ErrnoException
  return NETWORK_CODES.test(code) || /^(timeout|Connection terminated)/.test(message)
}

export function unusable(shown: string, error: unknown): StoreRefused {
  const { message, code } = error as NodeJS.ErrnoException
  return new StoreRefused(`The database ${shown} cannot be used: ${message || code}.`)
}
