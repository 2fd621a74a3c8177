import type { IssueActivity, IssueState } from '@tacho/contract/issues/issue.ts'
import type { RunStatus } from '@tacho/contract/runs/run.ts'
import type { PageAfter } from '../engine/page.ts'
import type { RowFor } from '../engine/row-for.ts'
import type { RowOf } from '../engine/tables.ts'

export interface IssueRef {
  environmentId: string
  id: string
}

export interface IssueActor {
  kind: 'operator' | 'token'
  id: string
  name: string
}

/** `id` identifies its entry in the activity. */
export interface IssueChange {
  id: string
  at: number
  actor: IssueActor
}

export interface IssueRow extends Omit<RowOf<'issues'>, 'stateBy'> {
  state: IssueState
  stateBy: IssueActor | null
}

type OfGroup = 'firstSeen' | 'lastSeen' | 'occurrences' | 'recoveries' | 'runs' | 'agents'
export interface IssueGroupRow extends Pick<IssueRow, OfGroup> {
  fingerprint: string
  facts: string
  /** Its issue before the merge. */
  homeIssueId: string
}

export interface IssueWhole extends IssueRow {
  groups: IssueGroupRow[]
  mergedFrom: string[]
  firstPayload: string | null
  lastPayload: string | null
}

export interface IssueFilter {
  state?: IssueState | undefined
  detectionType?: string | undefined
  agentId?: string | undefined
  runId?: string | undefined
  assignee?: string | undefined
  assigned?: boolean | undefined
  /** Of the last detection: from inclusive, to exclusive. */
  seenFrom?: number | undefined
  seenTo?: number | undefined
}

export type IssuePage = PageAfter<{ lastSeen: number; id: string }>

export type PageBySeen = PageAfter<{ at: number; key: string }>

interface AffectedRow extends Pick<RowOf<'issue_affected'>, 'firstSeen' | 'lastSeen' | 'occurrences'> {
  key: string
}

export interface AffectedRunRow extends AffectedRow {
  runId: string
  internalRunId: string | null
  status: RunStatus | null
}

export interface AffectedAgentRow extends AffectedRow {
  agentId: string
  internalAgentId: string | null
  name: string | null
}

export interface IssueActivityRow extends RowFor<Omit<IssueActivity, 'detail'>, 'at' | 'importedAt'> {
  detail: string
}

export interface ChangedIssue {
  changed: boolean
  issue: IssueWhole
}

export type MergeOutcome =
  | { outcome: 'merged'; issue: IssueWhole }
  | { outcome: 'no_issue' | 'no_target' | 'same_issue' | 'too_many_groups' }
  | { outcome: 'merged_already'; into: string }

export interface IssueSplit {
  fingerprints: string[]
  newIssueId: string
}

export type SplitOutcome =
  | { outcome: 'split'; issue: IssueWhole }
  | { outcome: 'no_issue' | 'no_such_group' | 'nothing_left' }
  | { outcome: 'merged_already'; into: string }

/** `count` slots of `width` milliseconds from `from` on. */
export interface TrendSlots {
  from: number
  width: number
  count: number
  /** Only this many latest detections of each set of facts are counted. */
  most: number
}
