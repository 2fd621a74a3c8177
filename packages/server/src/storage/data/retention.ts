import type {
  Retention,
  RetentionProgress,
  RetentionRows,
  RetentionRuns,
  RetentionSettings,
} from '@tacho/contract/data/retention.ts'
import type { RunStatus } from '@tacho/contract/runs/run.ts'
import type { StalledRule } from '@tacho/contract/runs/stalled-rule.ts'
import type { RowFor } from '../engine/page.ts'
import type { RunPlace } from '../runs/runs.ts'
import type { TimelinePlace } from '../record/events.ts'

export interface Tenant {
  workspaceId: string
  environmentId: string
}

export type RetainedRuns = 'runs' | 'payloads'
export const RETAINED_ROWS = ['issues', 'approvals', 'auditEntries'] as const
export type RetainedRows = (typeof RETAINED_ROWS)[number]

/** `damaged`: everything is kept. */
export type ReadSettings = Pick<Retention, 'settings' | 'damaged'>

export interface RetentionRow extends Pick<Retention, 'settings' | 'source' | 'damaged'> {
  progress: RetentionProgressRow | null
}

export type RetentionProgressRow = RowFor<RetentionProgress>

export interface ExpiredRun extends RunPlace {
  events: number
}

export interface ExpiredRuns {
  runs: ExpiredRun[]
  /** Place where the next call continues; null: all runs were examined. */
  after: RunPlace | null
}

export interface RetentionSlice {
  ids: string[]
  most: number
  reachedAt: number
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

interface PackedRun {
  id: string
  runId: string
}

export interface UnpackedRun extends PackedRun {
  number: number
  status: RunStatus
  lastEventAt: number
}

export interface PackedBlock {
  /** Payload texts in UTF-8, concatenated, as one Brotli stream. */
  packed: Uint8Array
  places: (TimelinePlace & { at: number; bytes: number })[]
}

export interface RunSlice {
  run: PackedRun
  slice: PackedSlice
}

export interface PackedSlice {
  number: number
  /** Events of the run when the slice was read. */
  events: number
  blocksBefore: number
  payloads: number
  blocks: PackedBlock[]
  after: TimelinePlace | null
  more: boolean
}

export type StalledRuleRow = Pick<StalledRule, 'idleMinutes' | 'closeAs' | 'damaged'>

export const DEFAULT_STALLED_RULE: StalledRuleRow = { idleMinutes: 15, closeAs: 'FAILED' }
/** Longer than nearly every model call and tool call, because many environments never choose a rule. */
const DEFAULT_CLOSE_MINUTES = 60

export function closeAfterMinutes(rule: StalledRuleRow | null): number {
  return rule?.idleMinutes ?? DEFAULT_CLOSE_MINUTES
}
