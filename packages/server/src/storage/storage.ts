/**
 * THE storage interface: each method is one business act and one transaction, the same on every engine. Arguments and
 * results are plain data, because an act may run in another thread. Times are milliseconds since 1970. The caller
 * supplies the clock and the ids of control rows; the store makes the ids of runs and agents. Expected outcomes are
 * values; a rejected promise is a StorageError or a bug.
 */
import type { Scope } from '@tacho/contract/route.ts'
import type { Role } from '@tacho/contract/operator/access.ts'
import type { ApprovalStore } from './approvals.ts'
import type { AuditEntry, AuditStore } from './audit.ts'
import type { DeploymentStore } from './deployments.ts'
import type { EventStore } from './events.ts'
import type { PageById } from './page.ts'
import type { InvitationRow, OperatorStore } from './operators.ts'
import type { PolicyStore } from './policies.ts'
import type { PromptStore } from './prompts.ts'
import type { SignInStore } from './sign-in.ts'
import type { SimulationStore } from './simulations.ts'
import type { IssueRecordStore } from './issue-records.ts'
import type { IssueStore } from './issues.ts'
import type { IdempotencyStore } from './idempotency.ts'
import type { RunStore } from './runs.ts'
import type { WebhookStore } from './webhooks.ts'
import type { WorkStore } from './work.ts'

export type { PageById }

export interface Storage
  extends
    ControlStore,
    EventStore,
    RunStore,
    ApprovalStore,
    AuditStore,
    OperatorStore,
    SignInStore,
    PromptStore,
    PolicyStore,
    DeploymentStore,
    SimulationStore,
    WorkStore,
    IssueRecordStore,
    IssueStore,
    WebhookStore,
    IdempotencyStore {
  readonly engine: 'sqlite' | 'postgres'
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

/** Tenants, keys and operator tokens: the control tables. */
export interface ControlStore {
  /** On an empty store, creates the first tenant with its key and token in one transaction. Otherwise does nothing. */
  initialise(first: FirstTenant): Promise<'created' | 'not_empty'>
  createWorkspace(workspace: WorkspaceRow, audit: AuditEntry[]): Promise<'created' | 'name_taken'>
  /** Only the ids in `within`, if given. */
  listWorkspaces(page: PageById, within?: readonly string[] | null): Promise<WorkspaceRow[]>
  findWorkspace(id: string): Promise<WorkspaceRow | null>
  createEnvironment(
    environment: EnvironmentRow,
    audit: AuditEntry[],
  ): Promise<'created' | 'name_taken' | 'no_workspace'>
  listEnvironments(workspaceId: string, page: PageById): Promise<EnvironmentRow[]>
  findEnvironment(id: string): Promise<EnvironmentRow | null>
  createApiKey(key: ApiKeyRow, audit: AuditEntry[]): Promise<'created' | 'no_environment'>
  listApiKeys(environmentId: string, page: PageById): Promise<ApiKeyRow[]>
  /** A key of any environment, because the tenant is not yet known. */
  findApiKey(id: string): Promise<(ApiKeyRow & { workspaceId: string }) | null>
  /** A second revocation keeps the first time and is not audited again. Null: no such key in that environment. */
  revokeApiKey(environmentId: string, id: string, now: number, audit: AuditEntry[]): Promise<ApiKeyRow | null>
  createOperatorToken(token: OperatorTokenRow, audit: AuditEntry[]): Promise<void>
  /** Tokens of one workspace; null: tokens for every workspace. */
  listOperatorTokens(workspaceId: string | null, page: PageById): Promise<OperatorTokenRow[]>
  /** Like revokeApiKey, for the tokens that listOperatorTokens returns. */
  revokeOperatorToken(
    workspaceId: string | null,
    id: string,
    now: number,
    audit: AuditEntry[],
  ): Promise<OperatorTokenRow | null>
  findOperatorToken(id: string): Promise<OperatorTokenRow | null>
  /** Revokes every token but one. Returns how many were valid until now. */
  revokeOtherOperatorTokens(keptId: string, now: number): Promise<number>
  /** Records last uses; never moves a time back. */
  touchCredentials(uses: CredentialUse[]): Promise<void>
  /** Increases whenever a key, token or tenant changes. Caches follow it. */
  controlRevision(): Promise<number>
  /** A secret of the installation. The caller generates it; the store keeps the first. */
  secret(name: string, candidate: string): Promise<string>
}

// --- control rows

export interface WorkspaceRow {
  id: string
  name: string
  createdAt: number
}

export interface EnvironmentRow {
  id: string
  workspaceId: string
  name: string
  createdAt: number
}

export interface ApiKeyRow {
  /** Public part of the key. */
  id: string
  environmentId: string
  name: string
  /** SHA-256 of the whole key text as presented, hex. */
  hash: string
  scopes: Scope[]
  requestsPerSecond: number | null
  createdAt: number
  expiresAt: number | null
  revokedAt: number | null
  lastUsedAt: number | null
}

export interface OperatorTokenRow {
  id: string
  name: string
  hash: string
  /** Null: valid in every workspace, with the role owner for the installation. */
  workspaceId: string | null
  role: Role
  createdAt: number
  expiresAt: number | null
  revokedAt: number | null
  lastUsedAt: number | null
}

export interface CredentialUse {
  /** A session is identified by the hash of its token. */
  kind: 'api_key' | 'operator_token' | 'session'
  id: string
  at: number
}

export interface FirstTenant {
  workspace: WorkspaceRow
  environment: EnvironmentRow
  apiKey: ApiKeyRow
  operatorToken: OperatorTokenRow
  /** Of the first person, if one is named. */
  invitation?: InvitationRow
}

// --- operation

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
  /** Free bytes on the store's disk; null if unknown. */
  diskFreeBytes: number | null
  /** Size of the store in bytes, with its write-ahead log; null if unknown. */
  storeBytes: number | null
}

/** `overloaded`: the write queue is full. `storage_full`: the disk is full. `storage_unavailable`: everything else. */
/** Receives errors that no caller sees, because the store continues without the failed work. */
export type StoreWarning = (what: string, error: unknown) => void

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

/** The store cannot be opened. The message says why, in one sentence for people. */
export class StoreRefused extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'StoreRefused'
  }
}
