/** The copy holds the directory's lock, so no server runs on it. */
import { existsSync, mkdirSync } from 'node:fs'
import path from 'node:path'
import { checkApplied, COPYING } from '../sql/engine/migrations.ts'
import { openDatabase, STORE_FILE, type Database, sqliteSql } from '../sqlite/database.ts'
import { lockStore } from '../sqlite/files.ts'
import { appliedMigrations, knownMigrations, migrate } from '../sqlite/migrate.ts'
import { transaction } from '../sqlite/transaction.ts'
import { StoreRefused } from '../engine/store.ts'
import { readsOf, writesOf, type Row, type SeqSpan, type Side, type Source, type Target } from './side.ts'

const TARGET_CACHE_KIB = 262_144
/** A checkpoint at about 80 MB of log. */
const PAGES_PER_CHECKPOINT = 20_000

/** `isOther`: the store has another version's schema. */
export function openSqliteSource(directory: string, isOther = false): Source {
  const file = path.join(directory, STORE_FILE)
  if (!existsSync(file)) throw new StoreRefused(`There is no store in ${directory}.`)
  const unlock = lockStore(directory)
  try {
    const db = openDatabase(file, { readonly: true })
    const applied = appliedMigrations(db)
    if (!isOther) checkApplied(applied, knownMigrations())
    if (!isOther && applied.length < knownMigrations().length) {
      throw new StoreRefused(
        `The store in ${directory} is from an older version of Tacho. Start this version on it once, and stop it again.`,
      )
    }
    return { ...sideOf(db, directory, unlock), checkUnused: async () => undefined }
  } catch (error) {
    unlock()
    throw error
  }
}

export function openSqliteTarget(directory: string): Target {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const unlock = lockStore(directory)
  try {
    const db = openDatabase(path.join(directory, STORE_FILE), { cacheKib: TARGET_CACHE_KIB })
    // NORMAL is safe: a machine crash loses the last rows together with the state that counts them.
    db.pragma('synchronous = NORMAL')
    db.pragma(`wal_autocheckpoint = ${PAGES_PER_CHECKPOINT}`)
    const isBegun = appliedMigrations(db).at(-1)?.name === COPYING
    if (!isBegun) migrate(db)
    const side = sideOf(db, directory, unlock)
    return { ...side, ...targetOf(db, side) }
  } catch (error) {
    unlock()
    throw error
  }
}

function sideOf(db: Database, directory: string, unlock: () => void): Omit<Source, 'checkUnused'> {
  const spans = db.prepare<[number], SeqSpan & { count: number }>(
    'SELECT min(seq) AS min, max(seq) AS max, count(*) AS count FROM events WHERE run = ?',
  )
  return {
    engine: 'sqlite',
    place: directory,
    ...readsOf(sqliteSql(db), (table, column) => (isNumbered(table, column) ? `${ENVIRONMENT} AS ${column}` : column)),
    async columns(table) {
      const tableColumns = db.prepare<[string], { name: string; type: string }>(
        'SELECT name, type FROM pragma_table_info(?)',
      )
      return new Map(tableColumns.all(table).map(({ name, type }) => [name, type]))
    },
    async seqSpans(runs) {
      const runSpans = [...runs.keys()].map((run) => [run, spans.get(run)] as const)
      return new Map(runSpans.flatMap(([run, span]) => (span && span.count > 0 ? [[run, span]] : [])))
    },
    async close() {
      db.close()
      unlock()
    },
  }
}

/**
 * Events name their environment by a number that is valid only in this store, so the copy reads the environment's id.
 */
const isNumbered = (table: string, column: string) => table === 'events' && column === 'environment_id'
const ENVIRONMENT = '(SELECT n.environment_id FROM environment_numbers n WHERE n.number = events.environment_id)'
const NUMBER = '(SELECT number FROM environment_numbers WHERE environment_id = ?)'

function targetOf(db: Database, { columns: columnsOf }: Side): Pick<Target, 'state' | 'begin' | 'write' | 'finish'> {
  const number = db.prepare('INSERT INTO environment_numbers (environment_id) VALUES (?) ON CONFLICT DO NOTHING')
  async function insert(table: string, columns: readonly string[], rows: readonly Row[]): Promise<void> {
    if (table === 'events') for (const id of new Set(rows.map((row) => row['environment_id']))) number.run(id)
    const places = columns.map((column) => (isNumbered(table, column) ? NUMBER : '?'))
    const statement = db.prepare(`INSERT INTO ${table} (${columns.join(', ')}) VALUES (${places.join(', ')})`)
    for (const row of rows) statement.run(columns.map((column) => row[column]))
  }
  const writes = writesOf(sqliteSql(db), columnsOf, (work) => transaction(db, 'write', work), insert)
  return {
    ...writes,
    async finish(last) {
      db.pragma('synchronous = FULL')
      await writes.finish(last)
      db.pragma('wal_checkpoint(TRUNCATE)')
    },
  }
}
