import Database from 'better-sqlite3'
import { StorageError, StoreDamaged } from '../engine/store.ts'

const DATA_ERRORS = /^SQLITE_(CONSTRAINT|TOOBIG|MISMATCH|RANGE)/
const STORE_ERRORS = /^SQLITE_(IOERR|NOMEM|BUSY|LOCKED|READONLY|CANTOPEN|PROTOCOL|PERM|AUTH|INTERRUPT|NOLFS)/
const DAMAGE = /^SQLITE_(CORRUPT|NOTADB)/

export function isDataError(error: unknown): boolean {
  if (error instanceof Database.SqliteError) return DATA_ERRORS.test(error.code)
  // better-sqlite3 refuses values without an SQLite type. Any other TypeError is a bug, not the event's fault.
  return error instanceof TypeError && error.message.startsWith('SQLite3 can only bind')
}

/** Recognizes SQLite's errors by their codes: an error that ends a thread arrives without its class. */
export function storageError(error: unknown): unknown {
  if (!(error instanceof Error && 'code' in error && typeof error.code === 'string')) return error
  const { code, message } = error
  if (code.startsWith('SQLITE_FULL')) return new StorageError('storage_full', 'The disk is full', error)
  if (DAMAGE.test(code)) return new StoreDamaged(`The store is damaged: ${message} (${code})`, error)
  if (!STORE_ERRORS.test(code)) return error
  return new StorageError('storage_unavailable', `The store failed: ${message} (${code})`, error)
}
