/** What errors mean on PostgreSQL: trouble with the data, a race that was lost, trouble of the store, or a bug. */
import { DatabaseError } from 'pg'
import { StorageError, type StorageErrorCode } from '../storage.ts'

/** SQLSTATE classes: data exception, integrity constraint violation, program limit exceeded (an index row too long). */
const DATA_CLASSES = ['22', '23', '54']
/** Serialization failure and deadlock: the same transaction may succeed at once. */
const RACES = ['40001', '40P01']
/** Connection exception, authorization, insufficient resources, operator intervention, system error, internal error. */
const STORE_CLASSES = ['08', '28', '53', '57', '58', 'XX']
/** Read only (the other side of a failover), lock not available, not in the state that is needed, not allowed. */
const STORE_CODES = ['25006', '55P03', '55000', '42501']
const DISK_FULL = '53100'
const IN_FAILED_TRANSACTION = '25P02'
/** What pg says when all connections of a pool stay busy. */
const POOL_BUSY = 'timeout exceeded when trying to connect'

/** Whether the values, not the store, made a statement fail: the same statement would always fail. */
export function isDataError(error: unknown): boolean {
  return error instanceof DatabaseError && DATA_CLASSES.includes(error.code?.slice(0, 2) ?? '')
}

/** Whether another transaction was in the way, and trying again is likely to go well. */
export function isRace(error: unknown): boolean {
  return error instanceof DatabaseError && RACES.includes(error.code ?? '')
}

/** Whether a statement failed for no other reason than that one before it in its transaction had. */
export function followsFailure(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === IN_FAILED_TRANSACTION
}

/** Whether the connection may serve others after this error, once its transaction is rolled back. */
export function keepsConnection(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return false
  const { code = '' } = error
  // A statement that was cancelled (57014) leaves its connection as it was.
  return code === '57014' || !(['08', '57', '58', 'XX'].includes(code.slice(0, 2)) || code === '25006')
}

export function isPoolBusy(error: unknown): boolean {
  return error instanceof Error && error.message === POOL_BUSY
}

/** The error as a StorageError where it is trouble of the store; anything else as it is. */
export function storageError(error: unknown): unknown {
  if (error instanceof StorageError || error instanceof TypeError || error instanceof RangeError) return error
  const { message } = error as Error
  if (isPoolBusy(error)) return new StorageError('overloaded', 'All connections of the pool are busy', error)
  if (!(error instanceof DatabaseError)) {
    // What is not an answer of the server is trouble on the way to it.
    return new StorageError('storage_unavailable', `The database cannot be reached: ${message}`, error)
  }
  const { code = '' } = error
  const isStores = STORE_CLASSES.includes(code.slice(0, 2)) || STORE_CODES.includes(code) || isRace(error)
  if (!isStores) return error
  return new StorageError(storageCode(code), `The database failed: ${message} (${code})`, error)
}

function storageCode(sqlState: string): StorageErrorCode {
  return sqlState === DISK_FULL ? 'storage_full' : 'storage_unavailable'
}
