/**
 * THE storage interface: each method is one business act and one transaction, the same on every engine. Arguments and
 * results are plain data, because an act may run in another thread. Times are milliseconds since 1970. The caller
 * supplies the clock and the ids of control rows; the store makes the ids of runs and agents. Expected outcomes are
 * values; a rejected promise is a StorageError or a bug.
 */
import type { AlertStore } from './alerts.ts'
import type { ApiKeyStore } from './api-keys.ts'
import type { ApprovalStore } from './approvals.ts'
import type { AuditStore } from './audit.ts'
import type { ConfigurationClientStore } from './configuration-clients.ts'
import type { ControlStore } from './control.ts'
import type { DeploymentStore } from './deployments.ts'
import type { EnvironmentStore } from './environments.ts'
import type { ErasureStore } from './erasures.ts'
import type { EventStore } from './events.ts'
import type { ExportStore } from './exports.ts'
import type { FailureStore } from './failures.ts'
import type { OperatorStore } from './operators.ts'
import type { OperatorTokenStore } from './operator-tokens.ts'
import type { PackingStore } from './packing.ts'
import type { PolicyStore } from './policies.ts'
import type { PriceStore } from './prices.ts'
import type { PromptStore } from './prompts.ts'
import type { SignInStore } from './sign-in.ts'
import type { SimulationStore } from './simulations.ts'
import type { IssueRecordStore } from './issue-records.ts'
import type { IssueStore } from './issues.ts'
import type { IdempotencyStore } from './idempotency.ts'
import type { RetentionStore } from './retention.ts'
import type { AgentStore } from './agents.ts'
import type { RunViewStore } from './run-views.ts'
import type { RunStore } from './runs.ts'
import type { SearchStore } from './search.ts'
import type { StalledStore } from './stalled.ts'
import type { Engine } from './tables.ts'
import type { UsageStore } from './usage.ts'
import type { WebhookStore } from './webhooks.ts'
import type { WorkStore } from './work.ts'
import type { WorkspaceStore } from './workspaces.ts'

export interface Storage
  extends
    ControlStore,
    WorkspaceStore,
    EnvironmentStore,
    ApiKeyStore,
    OperatorTokenStore,
    EventStore,
    ErasureStore,
    PackingStore,
    ExportStore,
    RunStore,
    AgentStore,
    RunViewStore,
    RetentionStore,
    SearchStore,
    StalledStore,
    UsageStore,
    PriceStore,
    AlertStore,
    ApprovalStore,
    AuditStore,
    OperatorStore,
    SignInStore,
    PromptStore,
    PolicyStore,
    DeploymentStore,
    ConfigurationClientStore,
    SimulationStore,
    WorkStore,
    IssueRecordStore,
    FailureStore,
    IssueStore,
    WebhookStore,
    IdempotencyStore {
  readonly engine: Engine
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
  /** Reads of payloads since the start that did not match their checksums. */
  damagedPayloads: number
  /** Free bytes on the store's disk; null if unknown. */
  diskFreeBytes: number | null
  /** Size of the store in bytes, with its write-ahead log; null if unknown. */
  storeBytes: number | null
}

/** Receives errors that no caller sees, because the store continues without the failed work. */
export type StoreWarning = (what: string, error: unknown) => void

/** `overloaded`: the write queue is full. `storage_full`: the disk is full. `storage_unavailable`: everything else. */
export type StorageErrorCode = 'overloaded' | 'storage_full' | 'storage_unavailable'

/** A failure of the store, never of the data: retrying the same act may succeed. */
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
