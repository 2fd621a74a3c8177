/** What each engine does itself: all but the acts, which are the same statements on both. */
import type { EventBatchRows, EventVerdict } from './events.ts'
import type { Engine } from './tables.ts'

export interface Store {
  readonly engine: Engine
  /**
   * Stores the events of one batch durably and judges each. Run, agent, usage and rollup change in the same
   * transaction. Verdicts are in the order of `batch.events`. Concurrent batches may share a commit; an event of one
   * never fails another. Rejects with a StorageError if the commit failed or its result is unknown; then the whole
   * batch may be sent again.
   */
  appendEvents(batch: EventBatchRows): Promise<EventVerdict[]>
  /**
   * Why writes are refused now; null if they are accepted. Costs nothing, because it is called before a body is read.
   */
  writesRefused(): StorageErrorCode | null
  /** Resolves if the store answers a read and a write thread is alive; rejects with a StorageError otherwise. */
  ping(): Promise<void>
  /** Checks of the installation, for doctor. Reads only. */
  inspect(): Promise<StoreCheck[]>
  /** Writes a consistent snapshot of the whole store into a new file. Embedded engine only. */
  backup(file: string): Promise<BackupResult>
  /** Why nothing is safe in this store any longer; null if nothing speaks against it. Costs nothing. */
  damage(): string | null
  /** Numbers for /metrics. Costs nothing. */
  gauges(): StorageGauges
  /** Processes that serve this store now, including this one. Limits are divided by it. Costs nothing. */
  nodes(): number
  /**
   * Milliseconds by which the store's clock is ahead of this process's. Leases use the store's clock, so that nodes
   * with different clocks take no work from each other. Costs nothing.
   */
  clockOffsetMs(): number
  /** Waits for running writes, then closes the store. */
  close(): Promise<void>
}

export interface StoreCheck {
  name: string
  ok: boolean
  detail: string
}

export type BackupResult = { ok: true; bytes: number } | { ok: false; reason: 'exists' | 'unsupported' }

export interface StorageGauges {
  /** Bytes of events waiting for a commit. */
  queuedBytes: number
  /** Event commits since the start, and the events in them. */
  commits: number
  committedEvents: number
  /** Milliseconds that other writes have taken since the start, without waiting for their turn. */
  actMs: number
  damagedPayloads: number
  diskFreeBytes: number | null
  /** Size of the store in bytes, with its write-ahead log; null if unknown. */
  storeBytes: number | null
}

export type StoreWarning = (what: string, error: unknown) => void

/** `overloaded`: the write queue is full. `storage_full`: the disk is full. `storage_unavailable`: everything else. */
export type StorageErrorCode = 'overloaded' | 'storage_full' | 'storage_unavailable'

export class StorageError extends Error {
  readonly code: StorageErrorCode
  constructor(code: StorageErrorCode, message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'StorageError'
    this.code = code
  }
}

/** The store's own structures contradict each other, so its answers and what it writes may be wrong. */
export class StoreDamaged extends StorageError {
  constructor(message: string, cause?: unknown) {
    super('storage_unavailable', message, cause)
  }
}

/** A statement took too long: the store is slow, or the statement reads too much. */
export class StatementTimeout extends StorageError {
  constructor(message: string, cause?: unknown) {
    super('storage_unavailable', message, cause)
  }
}

/** The store cannot be opened. The message says why, in one sentence for people. */
export class StoreRefused extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'StoreRefused'
  }
}
