/** What errors mean on PostgreSQL: trouble with the data, a race that was lost, trouble of the store, or a bug. */
import { DatabaseError } from 'pg'
import { StorageError, type StorageErrorCode } from '../storage.ts'

/** SQLSTATE classes: data exception, integrity constraint violation, program limit exceeded (an index row too long). */
const DATA_CLASSES = ['22', '23', '54']
/** Serialization failure and deadlock: the same transaction may succeed at once. */
const RACES = ['40001', '40P01']
const UNIQUE_VIOLATION = '23505'
/** Connection exception, authorization, insufficient resources, operator intervention, system error. */
const STORE_CLASSES = ['08', '28', '53', '57', '58']
/**
 * Read only (the other side of a failover), lock not available, not in the state that is needed, not allowed, damaged
 * data, damaged index. XX000 is missing on purpose: an internal error of the database is a bug, ours or its own.
 */
const STORE_CODES = ['25006', '55P03', '55000', '42501', 'XX001', 'XX002']
/** What Node says of sockets and names, and OpenSSL of what arrives on them. */
const NETWORK_CODES = /^(ECONN|EPIPE|EHOST|ENET|ETIMEDOUT|EAI_|ENOTFOUND|EADDR|EMFILE|ENFILE|ENOBUFS|EPROTO|ERR_SSL_)/
/** pg's own errors for a connection that ended or fell silent have no code. */
const LOST_CONNECTION = new Set([
  'Connection terminated',
  'Connection terminated unexpectedly',
  'Connection terminated due to connection timeout',
  'Client has encountered a connection error and is not queryable',
  'Client was closed and is not queryable',
  'Query read timeout',
  'timeout expired',
  // Requests that arrive while the process ends.
  'Cannot use a pool after calling end on the pool',
])
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

/** Whether a row of that key is there already, in a table that no statement writes to without having looked. */
export function isTaken(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === UNIQUE_VIOLATION
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

/** Whether the connection to the database failed, as opposed to a statement or our own code. */
function isNetworkError(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof DatabaseError) return false
  const { code, message } = error as NodeJS.ErrnoException
  return NETWORK_CODES.test(code ?? '') || LOST_CONNECTION.has(message)
}

/** The error of an attempt to connect. Until there is a connection, nothing but the way to the database can fail. */
export function connectError(error: unknown): unknown {
  if (error instanceof StorageError || error instanceof DatabaseError || isPoolBusy(error)) return storageError(error)
  return unreachable(error)
}

function unreachable(error: unknown): StorageError {
  const message = error instanceof Error ? error.message : String(error)
  return new StorageError('storage_unavailable', `The database cannot be reached: ${message}`, error)
}

/** The error as a StorageError where it is trouble of the store; anything else, a bug, as it is. */
export function storageError(error: unknown): unknown {
  if (error instanceof StorageError) return error
  if (isPoolBusy(error)) return new StorageError('overloaded', 'All connections of the pool are busy', error)
  if (isNetworkError(error)) return unreachable(error)
  if (!(error instanceof DatabaseError)) return error
  const { code = '', message } = error
  const isStores = STORE_CLASSES.includes(code.slice(0, 2)) || STORE_CODES.includes(code) || isRace(error)
  if (!isStores) return error
  return new StorageError(storageCode(code), `The database failed: ${message} (${code})`, error)
}

function storageCode(sqlState: string): StorageErrorCode {
  return sqlState === DISK_FULL ? 'storage_full' : 'storage_unavailable'
}
