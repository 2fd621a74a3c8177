import type {
  Retention,
  RetentionProgress,
  RetentionRows,
  RetentionRuns,
  RetentionSettings,
} from '@tacho/contract/data/retention.ts'
import type { RowFor } from '../engine/row-for.ts'
import type { RunPlace } from '../runs/runs.ts'

export interface Tenant {
  workspaceId: string
  environmentId: string
}

export type RetainedRuns = 'runs' | 'payloads'
export const RETAINED_ROWS = ['issues', 'approvals', 'auditEntries'] as const
export type RetainedRows = (typeof RETAINED_ROWS)[number]

export interface RetentionRow extends Pick<Retention, 'settings' | 'source'> {
  progress: RetentionProgressRow | null
}

export type RetentionProgressRow = RowFor<RetentionProgress>

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
export interface ChangedRuns {
  changedRunIds: string[]
}

export type CountedRuns = RowFor<RetentionRuns, 'oldest' | 'newest'>
export type CountedRows = RowFor<RetentionRows, 'oldest'>

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
