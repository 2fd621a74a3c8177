import type { EventEmitter } from 'node:events'
import { DatabaseError, type ClientBase } from 'pg'
import { StatementTimeout, StorageError, type StorageErrorCode } from '../engine/store.ts'

/** SQLSTATE classes: data exception, integrity constraint violation, program limit exceeded (an index row too long). */
const DATA_CLASSES = ['22', '23', '54']
/** Serialization failure and deadlock: a retry may succeed at once. */
const RACES = ['40001', '40P01']
const UNIQUE_VIOLATION = '23505'
/** Citus repeats the message of a failed COPY, which names the key of the shard, as an internal error. */
const INTERNAL_ERROR = 'XX000'
const KEY_OF_SHARD = /"\w+_pkey_\d+"/
/** libpq's words for a lost connection. Citus passes them on, as an internal error, when it loses one to a worker. */
const LOST_WORKER =
  /SSL SYSCALL error|invalid socket|server closed the connection|connection not open|could not (?:receive|send) data/
/** Connection exception, authorization, insufficient resources, operator intervention, system error. */
const STORE_CLASSES = ['08', '28', '53', '57', '58']
/**
 * SQLSTATE after an earlier statement failed; which one is unknown. Citus passes this on from a worker that lost its
 * transaction.
 */
const IN_FAILED_TRANSACTION = '25P02'
/** The database ends the connection of a transaction whose next statement does not come, or comes only in part. */
const IDLE_IN_TRANSACTION = '25P03'
/**
 * Read only (a failover's other side), failed transaction, lock not available, object not in prerequisite state, not
 * allowed, damaged data, damaged index. XX000 is missing on purpose: an internal database error is a bug, ours or the
 * database's.
 */
const STORE_CODES = ['25006', IN_FAILED_TRANSACTION, IDLE_IN_TRANSACTION, '55P03', '55000', '42501', 'XX001', 'XX002']
const NETWORK_CODES = /^(ECONN|EPIPE|EHOST|ENET|ETIMEDOUT|EAI_|ENOTFOUND|EADDR|EMFILE|ENFILE|ENOBUFS|EPROTO|ERR_SSL_)/
/** pg's own errors for a connection that ended or timed out have no code. */
const LOST_CONNECTION = new Set([
  'Connection terminated',
  'Connection terminated unexpectedly',
  'Connection terminated due to connection timeout',
  'Client has encountered a connection error and is not queryable',
  'Client was closed and is not queryable',
  'Query read timeout',
  'timeout expired',
  // This error ends requests that arrive during shutdown.
  'Cannot use a pool after calling end on the pool',
])
const DISK_FULL = '53100'
const CANCELLED = '57014'
const POOL_BUSY = 'timeout exceeded when trying to connect'

export function isDataError(error: unknown): boolean {
  return error instanceof DatabaseError && DATA_CLASSES.includes(error.code?.slice(0, 2) ?? '')
}

export function isRace(error: unknown): boolean {
  return error instanceof DatabaseError && RACES.includes(error.code ?? '')
}

/** Whether a key already exists. Only a race causes this, because the writers of these tables check first. */
export function isTaken(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return false
  return error.code === UNIQUE_VIOLATION || (error.code === INTERNAL_ERROR && KEY_OF_SHARD.test(error.message))
}

function followsFailure(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === IN_FAILED_TRANSACTION
}

/** Whether the connection can be used again, once its transaction is rolled back. */
export function keepsConnection(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return false
  const { code = '' } = error
  if (code === CANCELLED || isTaken(error)) return true
  return !(['08', '57', '58', 'XX'].includes(code.slice(0, 2)) || code === '25006' || code === IDLE_IN_TRANSACTION)
}

export function isPoolBusy(error: unknown): boolean {
  return error instanceof Error && error.message === POOL_BUSY
}

function isNetworkError(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof DatabaseError) return false
  const { code, message } = error as NodeJS.ErrnoException
  return NETWORK_CODES.test(code ?? '') || LOST_CONNECTION.has(message)
}

/** Before the connection exists, only the path to the database can fail. */
export function connectError(error: unknown): unknown {
  if (error instanceof StorageError || error instanceof DatabaseError || isPoolBusy(error)) return storageError(error)
  return unreachable(error)
}

function unreachable(error: unknown): StorageError {
  const message = error instanceof Error ? error.message : String(error)
  return new StorageError('storage_unavailable', `The database cannot be reached: ${message}`, error)
}

export function storageError(error: unknown): unknown {
  if (error instanceof StorageError) return error
  if (isPoolBusy(error)) return new StorageError('overloaded', 'All connections of the pool are busy', error)
  if (isNetworkError(error)) return unreachable(error)
  if (!(error instanceof DatabaseError)) return error
  const { code = '', message } = error
  const isLostWorker = code === INTERNAL_ERROR && LOST_WORKER.test(message)
  const isStores =
    STORE_CLASSES.includes(code.slice(0, 2)) || STORE_CODES.includes(code) || isRace(error) || isLostWorker
  if (!isStores) return error
  if (code === CANCELLED) return new StatementTimeout(`A statement took too long: ${message} (${code})`, error)
  return new StorageError(storageCode(code), `The database failed: ${message} (${code})`, error)
}

function storageCode(sqlState: string): StorageErrorCode {
  return sqlState === DISK_FULL ? 'storage_full' : 'storage_unavailable'
}

/** Statements are sent together, so one may fail only because an earlier one did. The first error is the cause. */

interface FirstFailure {
  behind(error: unknown): unknown
}

const failures = new WeakMap<ClientBase, FirstFailure>()

export function firstFailure(client: ClientBase): FirstFailure {
  const known = failures.get(client)
  if (known !== undefined) return known
  let first: DatabaseError | null = null
  const { connection } = client as unknown as { connection: EventEmitter }
  connection.on('errorMessage', (error: DatabaseError) => (first ??= error))
  connection.on('readyForQuery', ({ status }: { status: string }) => {
    if (status === 'I') first = null
  })
  const failure: FirstFailure = { behind: (error) => (followsFailure(error) ? (first ?? error) : error) }
  failures.set(client, failure)
  return failure
}
