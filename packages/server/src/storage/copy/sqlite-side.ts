/** The copy holds the directory's lock, so no server runs on it. */
import { hash } from 'node:crypto'
import { existsSync, mkdirSync } from 'node:fs'
import path from 'node:path'
import { checkApplied, COPYING, COPYING_VERSION } from '../sql/migrations.ts'
import { openDatabase, STORE_FILE, type Database, type Statement } from '../sqlite/database.ts'
import { lockStore } from '../sqlite/lock.ts'
import { appliedMigrations, knownMigrations, migrate } from '../sqlite/migrate.ts'
import { StoreRefused } from '../store.ts'
import { COPIES, type CopyState, type Row, type SeqSpan, type Side } from './side.ts'
import type { Source, Target, Value } from './side.ts'
import { walkOf } from '../tables.ts'

const TARGET_CACHE_KIB = 262_144
/** About 80 MB of log. */
const PAGES_PER_CHECKPOINT = 20_000

export function openSqliteSource(directory: string): Source {
  const file = path.join(directory, STORE_FILE)
  if (!existsSync(file)) throw new StoreRefused(`There is no store in ${directory}.`)
  const unlock = lockStore(directory)
  try {
    const db = openDatabase(file, { readonly: true })
    const applied = appliedMigrations(db)
    checkApplied(applied, knownMigrations())
    if (applied.length < knownMigrations().length) {
      throw new StoreRefused(
        `The store in ${directory} is from an older version of Tacho. Start this version on it once, and stop it again.`,
      )
    }
    return {
      ...sideOf(db, directory, unlock),
      identity: async () => identityOf(db.prepare('SELECT name, value FROM secrets ORDER BY name').raw().all()),
      checkUnused: async () => undefined,
    }
  } catch (error) {
    unlock()
    throw error
  }
}

export function identityOf(secrets: unknown): string {
  return hash('sha256', JSON.stringify(secrets))
}

export function openSqliteTarget(directory: string): Target {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const unlock = lockStore(directory)
  try {
    const db = openDatabase(path.join(directory, STORE_FILE), { cacheKib: TARGET_CACHE_KIB })
    // A machine crash may lose the last rows together with the state that counts them.
    db.pragma('synchronous = NORMAL')
    db.pragma(`wal_autocheckpoint = ${PAGES_PER_CHECKPOINT}`)
    const isBegun = appliedMigrations(db).at(-1)?.name === COPYING
    if (!isBegun) migrate(db)
    return { ...sideOf(db, directory, unlock), ...targetOf(db) }
  } catch (error) {
    unlock()
    throw error
  }
}

function sideOf(db: Database, directory: string, unlock: () => void): Side {
  const statements = new Map<string, Statement<Value[], Row>>()
  const prepare = (text: string) => {
    let statement = statements.get(text)
    if (statement === undefined) statements.set(text, (statement = db.prepare<Value[], Row>(text)))
    return statement
  }
  const spans = db.prepare<[number], SeqSpan & { count: number }>(
    'SELECT min(seq) AS min, max(seq) AS max, count(*) AS count FROM events WHERE run = ?',
  )
  return {
    engine: 'sqlite',
    place: directory,
    async columns(table) {
      const found = db.prepare<[string], { name: string; type: string }>('SELECT name, type FROM pragma_table_info(?)')
      return new Map(found.all(table).map(({ name, type }) => [name, type]))
    },
    count: async (table) => db.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get() ?? 0,
    async read(table, columns, after, limit) {
      const walk = walkOf(table, 'sqlite').join(', ')
      const from = after === null ? '' : `WHERE (${walk}) > (${after.map(() => '?').join(', ')})`
      const names = [...new Set([...columns, ...walkOf(table, 'sqlite')])]
      const selected = names
        .map((name) => (isNumbered(table.name, name) ? `${ENVIRONMENT} AS ${name}` : name))
        .join(', ')
      const text = `SELECT ${selected} FROM ${table.name} ${from} ORDER BY ${walk} LIMIT ?`
      return prepare(text).all(...(after ?? []), limit)
    },
    async seqSpans(runs) {
      const found = [...runs.keys()].map((run) => [run, spans.get(run)] as const)
      return new Map(found.flatMap(([run, span]) => (span && span.count > 0 ? [[run, span]] : [])))
    },
    async close() {
      db.close()
      unlock()
    },
  }
}

/** Events name their environment by a number that only this store uses. The copy sees its id. */
const isNumbered = (table: string, column: string) => table === 'events' && column === 'environment_id'
const ENVIRONMENT = '(SELECT n.environment_id FROM environment_numbers n WHERE n.number = events.environment_id)'
const NUMBER = '(SELECT number FROM environment_numbers WHERE environment_id = ?)'

function targetOf(db: Database): Pick<Target, 'state' | 'begin' | 'write' | 'finish'> {
  const keep = (state: CopyState) =>
    db
      .prepare('INSERT INTO copies (id, state) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET state = excluded.state')
      .run(JSON.stringify(state))
  return {
    async state() {
      if (db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'copies'").get() === undefined) return null
      const text = db.prepare<[], string>('SELECT state FROM copies').pluck().get()
      return text === undefined ? null : (JSON.parse(text) as CopyState)
    },
    begin: async (state) =>
      db.transaction(() => {
        db.exec(COPIES)
        db.prepare("INSERT INTO migrations (version, name, sha256, applied_at) VALUES (?, ?, '', ?)").run(
          COPYING_VERSION,
          COPYING,
          state.startedAt,
        )
        // The row that every new store contains.
        db.exec('DELETE FROM control')
        keep(state)
      })(),
    write: async (table, columns, rows, state) =>
      db.transaction(() => {
        const places = columns.map((column) => (isNumbered(table, column) ? NUMBER : '?'))
        const insert = db.prepare(`INSERT INTO ${table} (${columns.join(', ')}) VALUES (${places.join(', ')})`)
        if (table === 'events') numberEnvironments(db, rows)
        for (const row of rows) insert.run(columns.map((column) => row[column]))
        keep(state)
      })(),
    async finish(state) {
      db.pragma('synchronous = FULL')
      db.transaction(() => {
        keep(state)
        db.prepare('DELETE FROM migrations WHERE name = ?').run(COPYING)
      })()
      db.pragma('wal_checkpoint(TRUNCATE)')
    },
  }
}

function numberEnvironments(db: Database, rows: readonly Row[]): void {
  const add = db.prepare('INSERT INTO environment_numbers (environment_id) VALUES (?) ON CONFLICT DO NOTHING')
  for (const environment of new Set(rows.map((row) => row['environment_id']))) add.run(environment)
}
