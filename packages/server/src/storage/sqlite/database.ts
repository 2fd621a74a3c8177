import Database from 'better-sqlite3'
import { keepPrivate } from './files.ts'
import { firstRows } from '../engine/page.ts'
import { positional, type NamedParams, type Sql } from '../sql/engine/sql.ts'

export type { Database, Statement } from 'better-sqlite3'

export const APPLICATION_ID = 0x54414348

export const STORE_FILE = 'tacho.db'

/** Size to which the log is cut after a long backup made it grow. */
const LOG_BYTES_KEPT = 64 * 1_048_576

export function openDatabase(file: string, options: { readonly?: boolean; cacheKib?: number } = {}): Database.Database {
  if (!options.readonly) keepPrivate(file)
  const db = new Database(file, { readonly: options.readonly ?? false, timeout: 5_000 })
  // better-sqlite3 is built to default to NORMAL in WAL, on each connection.
  db.pragma('synchronous = FULL')
  if (!options.readonly) db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  // Off, because the writer checkpoints by itself.
  db.pragma('wal_autocheckpoint = 0')
  db.pragma(`journal_size_limit = ${LOG_BYTES_KEPT}`)
  db.pragma(`cache_size = -${options.cacheKib ?? 16_384}`)
  return db
}

export function assertDurable(db: Database.Database): void {
  // Only a write proves the setting: before the first one, better-sqlite3 may report a setting that it does not keep.
  db.prepare('UPDATE control SET revision = revision WHERE id = 1').run()
  const { synchronous, mode } = durability(db)
  if (synchronous !== 2 || mode !== 'wal') {
    throw new Error(`The store would not be durable: synchronous=${synchronous}, journal_mode=${mode}`)
  }
}

export type Durability = ReturnType<typeof durability>

export function durability(db: Database.Database) {
  return {
    synchronous: db.pragma('synchronous', { simple: true }) as number,
    mode: db.pragma('journal_mode', { simple: true }) as string,
  }
}

/** Promises are already resolved, because SQLite answers synchronously. */
export function sqliteSql(db: Database.Database, onDamage: Sql['onDamage'] = () => undefined): Sql {
  const prepared = statements(db)
  const prepare = (text: string, params: NamedParams = {}) => {
    const [statement, values] = positional(text, params)
    return { statement: prepared(statement), values }
  }
  return {
    dialect: 'sqlite',
    onDamage,
    async all<Row>(text: string, params?: NamedParams) {
      const { statement, values } = prepare(text, params)
      return statement.all(...values) as Row[]
    },
    async get<Row>(text: string, params?: NamedParams) {
      const { statement, values } = prepare(text, params)
      return (statement.get(...values) as Row | undefined) ?? null
    },
    async page<Row extends object>(text: string, params: NamedParams, limit: number) {
      const { statement, values } = prepare(`${text} LIMIT :mostRows`, { ...params, mostRows: limit + 1 })
      return firstRows(statement.iterate(...values) as Iterable<Row>, limit)
    },
    async run(text, params) {
      const { statement, values } = prepare(text, params)
      return statement.run(...values).changes
    },
  }
}

function statements(db: Database.Database) {
  // Unbounded, because the program has a bounded number of texts.
  const prepared = new Map<string, Database.Statement<unknown[]>>()
  return (text: string) => {
    let statement = prepared.get(text)
    if (statement === undefined) {
      statement = db.prepare(text)
      prepared.set(text, statement)
    }
    return statement
  }
}
