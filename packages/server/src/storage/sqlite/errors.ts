/** What SQLite's errors mean: trouble with the data, trouble of the store, or a bug. */
import Database from 'better-sqlite3'
import { StorageError } from '../storage.ts'

const DATA_ERRORS = /^SQLITE_(CONSTRAINT|TOOBIG|MISMATCH|RANGE)/
const STORE_ERRORS =
  /^SQLITE_(IOERR|NOMEM|BUSY|LOCKED|READONLY|CANTOPEN|CORRUPT|NOTADB|PROTOCOL|PERM|AUTH|INTERRUPT|NOLFS)/

/** Whether the values, not the store, made a statement fail: the same statement would always fail. */
export function isDataError(error: unknown): boolean {
  if (error instanceof Database.SqliteError) return DATA_ERRORS.test(error.code)
  // better-sqlite3 refuses values that SQLite has no type for; any other TypeError is a bug and not the event's fault.
  return error instanceof TypeError && error.message.startsWith('SQLite3 can only bind')
}

/** SQLite's error as a StorageError where it is trouble of the store; anything else as it is. */
export function storageError(error: unknown): unknown {
  if (!(error instanceof Database.SqliteError)) return error
  if (error.code.startsWith('SQLITE_FULL')) return new StorageError('storage_full', 'The disk is full', error)
  if (!STORE_ERRORS.test(error.code)) return error
  return new StorageError('storage_unavailable', `The store failed: ${error.message} (${error.code})`, error)
}
