import type { RetentionCounts, RetentionSettings } from '@tacho/contract/operator/retention.ts'
import type { RunPlace } from './runs.ts'

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
  most: number
  reachedAt: number
}

/** External ids. The engine drops these runs from its caches. */
interface Changed {
  changedRunIds: string[]
}

export interface RemovedRuns extends Changed, DeletedEvents {
  runs: number
}

export interface RemovedPayloads extends Changed {
  events: number
  /** Runs of the slice that still have rows. */
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

export const KEEP_ALL: RetentionSettings = {
  runDays: null,
  payloadDays: null,
  issueDays: null,
  approvalDays: null,
  auditDays: null,
  keepOpenIssueRuns: true,
}

export const SETTING_NAMES = Object.keys(KEEP_ALL) as (keyof RetentionSettings)[]
