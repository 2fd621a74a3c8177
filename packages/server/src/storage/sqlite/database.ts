import Database from 'better-sqlite3'
import { keepPrivate } from './files.ts'

export type { Database, Statement } from 'better-sqlite3'

/** `TACH`: marks a file as a Tacho store. */
export const APPLICATION_ID = 0x54414348

export const STORE_FILE = 'tacho.db'

/** What is left of a log that a long backup made grow. */
const LOG_BYTES_KEPT = 64 * 1_048_576

/** Opens a connection of a store that exists, with the settings every connection of it needs. */
export function openDatabase(file: string, options: { readonly?: boolean; cacheKib?: number } = {}): Database.Database {
  if (!options.readonly) keepPrivate(file)
  const db = new Database(file, { readonly: options.readonly ?? false, timeout: 5_000 })
  // better-sqlite3 is built to fall back to NORMAL in WAL unless told, on each connection.
  db.pragma('synchronous = FULL')
  if (!options.readonly) db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  // Checkpoints are the writer's work, at sizes of its own.
  db.pragma('wal_autocheckpoint = 0')
  db.pragma(`journal_size_limit = ${LOG_BYTES_KEPT}`)
  db.pragma(`cache_size = -${options.cacheKib ?? 16_384}`)
  return db
}
