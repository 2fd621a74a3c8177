/** How long an environment keeps its data, and the removal of older data. */
import type { RetentionCounts, RetentionSettings } from '@tacho/contract/operator/retention.ts'
import type { AuditEntry } from './audit.ts'
import type { RunPlace } from './runs.ts'

export interface RetentionStore {
  /** The settings that count for an environment, and what was done. */
  readRetention(tenant: Tenant): Promise<RetentionRow>
  /** The settings of environments that have none; null: the workspace has none either. */
  readWorkspaceRetention(workspaceId: string): Promise<RetentionSettings | null>
  /**
   * `environmentId` null: of the workspace. `before`: the settings that counted when the change was made. Queues a pass for
   * whom it concerns. False: other settings count by now, and nothing was changed.
   */
  changeRetention(
    workspaceId: string,
    environmentId: string | null,
    change: { before: RetentionSettings; settings: RetentionSettings | null },
    now: number,
    audit: AuditEntry[],
  ): Promise<boolean>
  /** Returns when the run is pinned since; undefined: no such run. `pinnedAt` null: unpins it. */
  pinRun(
    environmentId: string,
    runIdOrUuid: string,
    pinnedAt: number | null,
    audit: AuditEntry[],
  ): Promise<{ id: string; runId: string; pinnedAt: number | null } | null>
  /** What the settings would remove now. Reads a bounded number of rows. */
  previewRetention(tenant: Tenant, settings: RetentionSettings, now: number): Promise<RetentionPreviewRow>
  /** Queues a pass over every environment with settings, if its last one ended before `endedBefore`. */
  queueRetention(now: number, endedBefore: number): Promise<void>
  /** Starts a pass, or continues one that did not end. Null: the environment has nothing to remove. */
  startRetention(environmentId: string, now: number): Promise<RetentionOrder | null>
  /** Runs to remove, or whose payloads to remove, oldest start first. Reads a bounded number of runs. */
  listExpiredRuns(environmentId: string, what: RetainedRuns, now: number, after: RunPlace | null): Promise<ExpiredRuns>
  /**
   * Removes the given runs that are still expired by the current settings. Readers no longer find them. Deletes at most
   * about `most` of their events; `deleteExpiredEvents` deletes the rest.
   */
  removeExpiredRuns(environmentId: string, now: number, slice: RetentionSlice): Promise<RemovedRuns>
  /** Deletes at most about `most` events of removed runs. */
  deleteExpiredEvents(environmentId: string, now: number, most: number): Promise<DeletedEvents>
  /**
   * Removes payloads of the given runs that are still expired by the current settings: at most `most`, and at least one.
   * `rest` has the runs that are left.
   */
  removeExpiredPayloads(environmentId: string, now: number, slice: RetentionSlice): Promise<RemovedPayloads>
  /** Removes at most about `most` rows. Returns how many; 0: there are no more. */
  removeExpiredRows(environmentId: string, what: RetainedRows, now: number, most: number): Promise<number>
  endRetention(environmentId: string, now: number): Promise<void>
}

export interface Tenant {
  workspaceId: string
  environmentId: string
}

export type RetainedRuns = 'runs' | 'payloads'
export const RETAINED_ROWS = ['issues', 'approvals', 'auditEntries'] as const
export type RetainedRows = (typeof RETAINED_ROWS)[number]

export interface RetentionRow {
  settings: RetentionSettings
  source: 'environment' | 'workspace' | 'none'
  progress: RetentionProgressRow | null
}

export interface RetentionProgressRow {
  passStartedAt: number
  passEndedAt: number | null
  lastSliceAt: number | null
  reachedAt: number | null
  pass: RetentionCounts
  total: RetentionCounts
}

export interface RetentionOrder {
  settings: RetentionSettings
}

export interface ExpiredRun extends RunPlace {
  events: number
}

export interface ExpiredRuns {
  runs: ExpiredRun[]
  /** Where the next call continues; null: all were examined. */
  after: RunPlace | null
}

export interface RetentionSlice {
  ids: string[]
  /** Events to delete, or payloads to remove. */
  most: number
  /** The start of the last run that was examined. */
  reachedAt: number
}

/** External ids of runs that changed. The engine drops them from its caches. */
interface Changed {
  changedRunIds: string[]
}

export interface RemovedRuns extends Changed, DeletedEvents {
  runs: number
}

export interface RemovedPayloads extends Changed {
  events: number
  /** Runs of the slice of which something is left. */
  rest: string[]
}

export interface DeletedEvents {
  events: number
  runsLeft: boolean
}

export interface CountedRuns {
  exact: boolean
  runs: number
  events: number
  bytes: number
  oldest: number | null
  newest: number | null
}

export interface CountedRows {
  exact: boolean
  count: number
  oldest: number | null
}

export interface RetentionPreviewRow extends Record<RetainedRuns, CountedRuns>, Record<RetainedRows, CountedRows> {}

/** Everything is kept forever. */
export const KEEP_ALL: RetentionSettings = {
  runDays: null,
  payloadDays: null,
  issueDays: null,
  approvalDays: null,
  auditDays: null,
  keepOpenIssueRuns: true,
}

export const SETTING_NAMES = Object.keys(KEEP_ALL) as (keyof RetentionSettings)[]

export const DAY_MS = 24 * 60 * 60 * 1000
