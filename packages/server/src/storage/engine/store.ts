import type { EventBatchRows, EventVerdict } from '../record/events.ts'
import type { PackedBatch } from '../record/packed-batch.ts'
import type { Engine } from './tables.ts'

export interface Store {
  readonly engine: Engine
  /**
   * Stores a batch durably, with its runs, agents and usage in the same transaction. Verdicts are in the order of
   * `batch.events`. Concurrent batches may share a commit; an event of one never fails another. Rejects with a
   * StorageError if the commit failed or its result is unknown; then the whole batch may be sent again.
   */
  appendEvents(batch: EventBatchRows | PackedBatch): Promise<EventVerdict[]>
  /** Null: writes are accepted. Must be cheap, because it is called before a body is read. */
  writesRefused(): WriteRefusal | null
  /** Rejects with a StorageError unless the store answers a read and a write thread is alive. */
  ping(): Promise<void>
  /**
   * Why this node should get no requests; null: it should. Must be cheap. A full queue does not count, because it
   * drains.
   */
  trouble(): StoreTrouble | null
  inspect(): Promise<StoreCheck[]>
  backup(file: string): Promise<BackupResult>
  /** Why this store can no longer be trusted; null: no reason is known. Must be cheap. */
  damage(): string | null
  gauges(): StorageGauges
  /** Processes that serve this store now, including this one. Limits are divided by this number. Must be cheap. */
  nodes(): number
  /** Difference between the store's clock and this process's. Leases use the store's clock, so that all nodes agree. */
  clockOffsetMs(): number
  /** Waits for running writes before it closes. */
  close(): Promise<void>
}

/** The reason is for clients: it names no secret and no machine. */
export interface StoreTrouble {
  code: Exclude<WriteRefusal, 'overloaded'>
  reason: string
}

export interface StoreCheck {
  name: string
  ok: boolean
  detail: string
}

/** Counts of a backup's rows, to compare with the restored store. */
export type BackupCounts = Record<'runs' | 'events' | 'policies' | 'people', number>

export type BackupResult = { ok: true; bytes: number } | { ok: false; reason: 'exists' | 'unsupported' }

export interface StorageGauges {
  queuedBytes: number
  commits: number
  committedEvents: number
  /** Milliseconds that writes other than those of events took since the start, without waiting for their turn. */
  actMs: number
  damagedPayloads: number
  /** Reads of rows of the configuration that do not match their checksums. */
  damagedSettings: number
  diskFreeBytes: number | null
  storeBytes: number | null
  /** Free space for new rows; null: unknown. */
  freeBytes: number | null
  /** How long the oldest write has waited for its commit. */
  commitWaitMs: number
}

export type StoreWarning = (what: string, error: unknown) => void

/** Why a write is refused. `overloaded`: the write queue is full. `storage_unavailable`: anything but a full queue or disk. */
export type WriteRefusal = 'overloaded' | 'storage_full' | 'storage_unavailable'
/** `configuration_damaged`: one row is damaged, which the message names. */
export type StorageErrorCode = WriteRefusal | 'configuration_damaged'

export class StorageError extends Error {
  readonly code: StorageErrorCode
  constructor(code: StorageErrorCode, message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'StorageError'
    this.code = code
  }
}

/** The whole store is unavailable. The message is for clients, like the reason of a StoreTrouble. */
export class StoreAway extends StorageError {
  constructor(message: string, cause?: unknown) {
    super('storage_unavailable', message, cause)
  }
}

/** The store's structures contradict each other, so its answers and what it writes may be wrong. */
export class StoreDamaged extends StorageError {
  constructor(message: string, cause?: unknown) {
    super('storage_unavailable', message, cause)
  }
}

export class StatementTimeout extends StorageError {
  constructor(message: string, cause?: unknown) {
    super('storage_unavailable', message, cause)
  }
}

export class StoreRefused extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'StoreRefused'
  }
}
