/**
 * THE storage interface: each method is one business act and one transaction, the same on every engine.
 * Arguments and results are plain data, for an act may run in another thread. Times are milliseconds since 1970;
 * the clock and the ids of control rows come from the caller, the store makes the ids of runs and agents. Expected
 * outcomes are values; a rejected promise is a StorageError or a bug.
 */
import type { RejectionCode } from '@tacho/contract/errors.ts'
import type { RunOutcome, RunStatus } from '@tacho/contract/run.ts'
import type { Scope } from '@tacho/contract/route.ts'
import type { Role } from '@tacho/contract/operator/access.ts'
import type { ApprovalStore } from './approvals.ts'
import type { AuditEntry, AuditStore } from './audit.ts'
import type { DeploymentStore } from './deployments.ts'
import type { PageById } from './page.ts'
import type { InvitationRow, OperatorStore } from './operators.ts'
import type { PolicyStore } from './policies.ts'
import type { PromptStore } from './prompts.ts'
import type { SignInStore } from './sign-in.ts'
import type { SimulationStore } from './simulations.ts'
import type { IssueRecordStore } from './issue-records.ts'
import type { IssueStore } from './issues.ts'
import type { IdempotencyStore } from './idempotency.ts'
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
  /** Why writes are refused just now, null when they are taken. Costs nothing: asked before a body is read. */
  writesRefused(): StorageErrorCode | null
  /** Resolves when the store answered a read and a write thread is alive; rejects with a StorageError otherwise. */
  ping(): Promise<void>
  /** Checks of the installation, for doctor. Reads only. */
  inspect(): Promise<StoreCheck[]>
  /** Writes a consistent snapshot of the whole store into a new file. Embedded engine only. */
  backup(file: string): Promise<BackupResult>
  /** Numbers for /metrics. Costs nothing. */
  gauges(): StorageGauges
  /** Processes that serve this store now, this one included: what they share out is divided by it. Costs nothing. */
  nodes(): number
  /** Waits for writes under way, then lets go of the store. */
  close(): Promise<void>
}

/** Tenants, keys and operator tokens: the control tables. */
export interface ControlStore {
  /** On an empty store, in one transaction, creates the first tenant with its key and token; else does nothing. */
  initialise(first: FirstTenant): Promise<'created' | 'not_empty'>
  createWorkspace(workspace: WorkspaceRow, audit: AuditEntry[]): Promise<'created' | 'name_taken'>
  /** Only those of the ids `within`, where it is given. */
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
  /** Any environment's key: looked up before the tenant is known. */
  findApiKey(id: string): Promise<(ApiKeyRow & { workspaceId: string }) | null>
  /** Revoking twice keeps the first time, and is audited once. Null: no such key in that environment. */
  revokeApiKey(environmentId: string, id: string, now: number, audit: AuditEntry[]): Promise<ApiKeyRow | null>
  createOperatorToken(token: OperatorTokenRow, audit: AuditEntry[]): Promise<void>
  /** Those of one workspace; null: those that hold in every workspace. */
  listOperatorTokens(workspaceId: string | null, page: PageById): Promise<OperatorTokenRow[]>
  /** As revokeApiKey, among the tokens that listOperatorTokens gives. */
  revokeOperatorToken(
    workspaceId: string | null,
    id: string,
    now: number,
    audit: AuditEntry[],
  ): Promise<OperatorTokenRow | null>
  findOperatorToken(id: string): Promise<OperatorTokenRow | null>
  /** Revokes every token but one; returns how many were good until now. */
  revokeOtherOperatorTokens(keptId: string, now: number): Promise<number>
  /** Records last uses; never moves one back. */
  touchCredentials(uses: CredentialUse[]): Promise<void>
  /** Grows whenever a key, token or tenant changes: what caches follow. */
  controlRevision(): Promise<number>
  /** A secret of the installation, made by the caller and kept by whoever came first. */
  secret(name: string, candidate: string): Promise<string>
}

export interface EventStore {
  /**
   * Stores the events of one batch durably and judges each: run, agent, usage and rollup in the same transaction.
   * Verdicts are in the order of `batch.events`. Concurrent batches may share a commit; one never fails another.
   * Rejects with a StorageError when nothing of this batch was stored.
   */
  appendEvents(batch: EventBatchRows): Promise<EventVerdict[]>
  findEvent(environmentId: string, runId: string, eventId: string): Promise<FoundEvent | null>
  /** The newest refusal of that id, among those kept (bounded per environment). */
  findRejection(environmentId: string, runId: string, eventId: string): Promise<RejectionRow | null>
}

export interface RunStore {
  /** External id first, then internal UUID. */
  findRun(environmentId: string, runIdOrUuid: string): Promise<RunRow | null>
  /** Newest startedAt first, then internal id, both descending. */
  listRuns(environmentId: string, filter: RunFilter, page: RunPage): Promise<RunRow[]>
  /**
   * Timeline order: time, then arrival. Ends at `limit` rows or `pageBytes` of what clients sent, with at least one row.
   * `run` is the internal id.
   */
  listEvents(environmentId: string, run: string, page: EventPage): Promise<EventsRead<StoredEvent>>
  /** The same without payloads, by time or by arrival; all or those that fit a filter. */
  listEventRows(environmentId: string, run: string, page: EventRowsPage): Promise<EventRowsRead>
  /** Sums of the hours from `fromHour` to `toHour` (both included, start of the hour), ordered by hour, agent, model. */
  readUsage(environmentId: string, fromHour: number, toHour: number): Promise<UsageHourRow[]>
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
  /** Null: it holds in every workspace, and as owner for the installation. */
  workspaceId: string | null
  role: Role
  createdAt: number
  expiresAt: number | null
  revokedAt: number | null
  lastUsedAt: number | null
}

export interface CredentialUse {
  /** A session is named by the hash of its token. */
  kind: 'api_key' | 'operator_token' | 'session'
  id: string
  at: number
}

export interface FirstTenant {
  workspace: WorkspaceRow
  environment: EnvironmentRow
  apiKey: ApiKeyRow
  operatorToken: OperatorTokenRow
  /** Of the first person, where one is named. */
  invitation?: InvitationRow
}

// --- events

/** A judged event: everything the store needs, flat. The payload is the JSON text as it was sent. */
export interface NewEvent {
  eventId: string
  clientId: string
  runId: string
  sessionId: string | null
  agentId: string | null
  agentName: string
  eventType: string
  label: string
  time: number
  payload: string
  spanId: string | null
  parentSpanId: string | null
  schemaVersion: string | null
  /** Set on a SESSION_OUTCOME with a valid status. */
  outcome: RunOutcome | null
  /** Set on an LLM_CALL. */
  usage: NewUsage | null
  /** Too old to be stored now, but accepted when it is already stored: looked up, never inserted. */
  onlyIfStored: boolean
}

export interface NewUsage {
  model: string
  promptTokens: number
  completionTokens: number
  totalTokens: number
  /** Integer of 1e-9 units. */
  costNanos: number
}

export interface EventBatchRows {
  environmentId: string
  receivedAt: number
  events: NewEvent[]
  /** Refused items that named a run and an id: kept for `doctor`, bounded. */
  rejections: RejectionRow[]
}

/** `stored` and `duplicate` are accepted; `absent`: an `onlyIfStored` event that is not; `unstorable`: refused by the store. */
export type EventVerdict = 'stored' | 'duplicate' | 'absent' | 'unstorable'

export interface RejectionRow {
  runId: string
  eventId: string
  code: RejectionCode
  rejectedAt: number
}

export interface EventRowRead {
  /** Arrival order within the store. */
  seq: number
  eventId: string
  sessionId: string | null
  agentId: string | null
  agentName: string
  clientId: string
  eventType: string
  label: string
  time: number
  receivedAt: number
  spanId: string | null
  parentSpanId: string | null
  schemaVersion: string | null
  payloadBytes: number
}

export interface StoredEvent extends EventRowRead {
  /** JSON text as sent. */
  payload: string
}

export interface FoundEvent {
  run: RunRow
  event: StoredEvent
  /** Place on the timeline, from 1. */
  position: number
  /** Whether it is the outcome that closed its run. */
  closedRun: boolean
}

export interface EventsRead<Row> {
  rows: Row[]
  /** Whether rows follow the last one. */
  more: boolean
}

export interface EventPage {
  limit: number
  pageBytes: number
  /** Rows after this place; null for the first page. */
  after: { time: number; seq: number } | null
}

export interface EventRowsPage {
  limit: number
  order: 'time' | 'arrival'
  after: { time: number; seq: number } | null
  /** At least one of its conditions is given. */
  filter?: EventFilter | undefined
}

export interface EventFilter {
  eventType?: string | undefined
  /** Text that the label contains; A to Z match a to z. */
  label?: string | undefined
  /** A page ends when so many rows were looked at, however few of them fit. */
  rowsLookedAt: number
}

/** `lookedTo`: where to go on when the page ended because enough rows were looked at; else that is its last row. */
export type EventRowsRead = EventsRead<EventRowRead> & { lookedTo?: { time: number; seq: number } }

// --- runs

export interface RunRow {
  id: string
  runId: string
  sessionId: string | null
  status: RunStatus
  startedAt: number
  endedAt: number | null
  agentId: string
  agentExternalId: string | null
  agentName: string
  promptTokens: number
  completionTokens: number
  totalTokens: number
  costNanos: number
  eventCount: number
  differingRetries: number
  lastEventAt: number
  /** When its first event was stored. */
  receivedAt: number
}

export interface RunFilter {
  /** Beginning of the external run id, or whole session id, agent id or name; looks as far as LIMITS.searched… say. */
  search?: string | undefined
  agentId?: string | undefined
  status?: RunStatus | undefined
  sessionId?: string | undefined
  /** startedAt at or after. */
  from?: number | undefined
  /** startedAt before. */
  to?: number | undefined
}

export interface RunPage {
  limit: number
  after: { startedAt: number; id: string } | null
}

export interface UsageHourRow {
  hour: number
  agentId: string
  agentName: string
  model: string
  events: number
  promptTokens: number
  completionTokens: number
  totalTokens: number
  costNanos: number
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
  /** Commits of events since the start, and the events in them. */
  commits: number
  committedEvents: number
  /** Bytes free where the store lies; null where it cannot be told. */
  diskFreeBytes: number | null
  /** Size of the store in bytes, with its write-ahead log; null where it cannot be told. */
  storeBytes: number | null
}

/** `overloaded`: the write queue is full; `storage_full`: the disk is; `storage_unavailable`: everything else. */
export type StorageErrorCode = 'overloaded' | 'storage_full' | 'storage_unavailable'

/** Trouble of the store, never of the data: the same act may succeed later. */
export class StorageError extends Error {
  readonly code: StorageErrorCode
  constructor(code: StorageErrorCode, message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'StorageError'
    this.code = code
  }
}

/** The store cannot be opened at all, and why, in one sentence for people. */
export class StoreRefused extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'StoreRefused'
  }
}
