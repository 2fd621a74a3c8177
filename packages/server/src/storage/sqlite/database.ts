import Database from 'better-sqlite3'
import { keepPrivate } from './files.ts'

export type { Database, Statement } from 'better-sqlite3'

export const APPLICATION_ID = 0x54414348

export const STORE_FILE = 'tacho.db'

/** Size the log keeps after a long backup made it grow. */
const LOG_BYTES_KEPT = 64 * 1_048_576

export function openDatabase(file: string, options: { readonly?: boolean; cacheKib?: number } = {}): Database.Database {
  if (!options.readonly) keepPrivate(file)
  const db = new Database(file, { readonly: options.readonly ?? false, timeout: 5_000 })
  // better-sqlite3 is built to default to NORMAL in WAL, on each connection.
  db.pragma('synchronous = FULL')
  if (!options.readonly) db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  // The writer checkpoints.
  db.pragma('wal_autocheckpoint = 0')
  db.pragma(`journal_size_limit = ${LOG_BYTES_KEPT}`)
  db.pragma(`cache_size = -${options.cacheKib ?? 16_384}`)
  return db
}

export function assertDurable(db: Database.Database): void {
  // Only a write proves it: before the first one, better-sqlite3 may report a setting it does not keep.
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
