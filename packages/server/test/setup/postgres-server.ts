/** A real PostgreSQL for tests: started here, or the one of TACHO_TEST_DATABASE_URL (PostgreSQL or Citus). */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { freePort } from './free-port.ts'
import { administer, isCitus, withDatabase } from './administer.ts'
import { citusDatabases } from './citus-databases.ts'
import { migratedDatabase, migrateEmpty } from './migrated-database.ts'
import type { Release } from './postgres-binaries.ts'
import type { KeeperOptions } from './postgres-keeper.ts'

export interface PostgresServer {
  /** The complete address of one of its databases. */
  url(database?: string): string
  /** `immediate` is a crash for PostgreSQL; `kill` is kill -9. */
  stop(how: 'fast' | 'immediate' | 'kill'): Promise<void>
  start(): Promise<void>
  /** Stops the server and removes its files. This also happens when this process ends. */
  close(): Promise<void>
}

export interface ServerOptions {
  release?: Release
  /** Whether commits survive a crash. Slower. */
  durable?: boolean
  /** Lines of postgresql.conf. */
  settings?: string[]
  /** Files in the data folder, such as certificates. */
  files?: Record<string, string>
}

/** The address of the PostgreSQL that several files of a test run share. */
export const SHARED_SERVER = 'TACHO_TEST_SHARED_SERVER'

const KEEPER = fileURLToPath(new URL('postgres-keeper.ts', import.meta.url))
const FAST = ['fsync = off', 'full_page_writes = off']
const SETTINGS = ['shared_buffers = 128MB', 'max_connections = 200', 'log_min_messages = warning']

export async function startPostgres(wanted: ServerOptions = {}): Promise<PostgresServer> {
  for (let tries = 1; ; tries++) {
    try {
      return await start(wanted)
    } catch (error) {
      // Another process took the port in the meantime.
      if (tries === 3 || !/could not bind|could not create any TCP/.test(String(error))) throw error
    }
  }
}

async function start({ release = 'newest', durable = false, settings = [], files = {} }: ServerOptions) {
  // The user that runs the server must be able to enter the folder.
  const folder = mkdtempSync(path.join(tmpdir(), 'tacho-postgres-'))
  chmodSync(folder, 0o755)
  const [port, password] = [await freePort(), randomBytes(16).toString('hex')]
  const lines = [...SETTINGS, ...(durable ? [] : FAST), ...settings]
  const options: KeeperOptions = { folder, release, port, password, settings: lines, files }
  const keeper = spawn(process.execPath, [KEEPER, JSON.stringify(options)], {
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const answers = createInterface({ input: keeper.stdout })[Symbol.asyncIterator]()

  async function expect(word: string): Promise<void> {
    const { value } = await answers.next()
    if (value !== word) throw new Error(`The test PostgreSQL: ${value ?? 'its keeper ended'}`)
  }

  async function tell(word: string): Promise<void> {
    keeper.stdin.write(`${word}\n`)
    await expect(word)
  }

  await expect('initialised')
  await tell('start')
  const server: PostgresServer = {
    url: (database = 'postgres') => `postgres://postgres:${password}@127.0.0.1:${port}/${database}`,
    stop: tell,
    start: () => tell('start'),
    async close() {
      keeper.stdin.end()
      if (keeper.exitCode === null) await once(keeper, 'close')
    },
  }
  return server
}

export interface TestDatabase {
  url: string
  drop(): Promise<void>
}

/** Creates databases, each for one store. */
export interface TestDatabases {
  /** Creates a database with the current schema, distributed on Citus. */
  create(): Promise<TestDatabase>
  /** Creates a database without tables, for tests of migrations and of a first start. */
  createEmpty(): Promise<TestDatabase>
  close(): Promise<void>
}

/** Databases of the given server, else of the server that the test run shares, else of a new one for this file. */
export async function testDatabases(given = process.env['TACHO_TEST_DATABASE_URL']): Promise<TestDatabases> {
  if (given && (await isCitus(given))) return citusDatabases(given)
  if (given) return withoutCopies(databasesOf(given))
  const shared = process.env[SHARED_SERVER]
  if (shared) return databasesOf(shared)
  const server = await startPostgres()
  return { ...databasesOf(server.url()), close: () => server.close() }
}

/** Migrates each database anew, for a server that is not ours: a migrated template would stay there. */
function withoutCopies({ createEmpty, close }: TestDatabases): TestDatabases {
  async function create() {
    const database = await createEmpty()
    await migrateEmpty(database.url)
    return database
  }
  return { create, createEmpty, close }
}

/** Fresh databases of one server. */
export function databasesOf(adminUrl: string): TestDatabases {
  let migrated: Promise<string> | null = null

  async function createFrom(template: string, how = ''): Promise<TestDatabase> {
    const name = `tacho_test_${randomBytes(8).toString('hex')}`
    await administer(adminUrl, `CREATE DATABASE ${name} TEMPLATE ${template} ${how}`)
    const drop = async () => void (await administer(adminUrl, `DROP DATABASE ${name} WITH (FORCE)`))
    return { url: withDatabase(adminUrl, name), drop }
  }

  return {
    // Copying files takes half the processor time of copying pages, if no commit waits for the disk.
    create: async () => createFrom(await (migrated ??= migratedDatabase(adminUrl)), 'STRATEGY FILE_COPY'),
    createEmpty: () => createFrom('template1'),
    close: async () => undefined,
  }
}

/** Runs a statement with the environment as its parameter, to damage a store. */
export async function changeDatabase(url: string, text: string, environmentId: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, options: '-c search_path=tacho' })
  await client.connect()
  await client.query(text.replace('?', '$1'), [environmentId])
  await client.end()
}
