import { hash } from 'node:crypto'
import type { IssueActivity, IssueState } from '@tacho/contract/issues/issue.ts'
import type { ISSUE_FILTERS } from '@tacho/contract/issues/issue-filters.ts'
import type { StoredFilter } from '@tacho/contract/web/filter.ts'
import type { RunStatus } from '@tacho/contract/runs/run.ts'
import type { RecordKind, RecordOrigin, RecordStatus } from '@tacho/contract/issues/issue-record.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { PageAfter, RowFor } from '../engine/page.ts'
import type { RowOf } from '../engine/tables.ts'
import type { StopRow } from '../policies/policies.ts'
import type { ApprovalRow } from '../approvals/approvals.ts'
import type { StoredEvent } from '../record/events.ts'
import type { RunRow } from '../runs/runs.ts'

export interface IssueRef {
  environmentId: string
  id: string
}

export interface IssueActor {
  kind: 'operator' | 'token'
  id: string
  name: string
}

/** `id`: the id of its entry in the activity. */
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
  /** The issue of the fingerprint before a merge. */
  homeIssueId: string
}

export interface IssueWhole extends IssueRow {
  groups: IssueGroupRow[]
  mergedFrom: string[]
  firstPayload: string | null
  lastPayload: string | null
}

export interface IssueFilter extends StoredFilter<typeof ISSUE_FILTERS> {
  sort?: 'lastSeen' | 'firstSeen' | undefined
}

/** `agentIds`: external ids, only for issues with few agents. */
export type ListedIssueRow = IssueRow & { agentIds: string[] }

export type IssuePage = PageAfter<{ lastSeen: number; firstSeen?: number; id: string }>

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
  /** For each set of facts, only this many latest detections are counted. */
  most: number
}

export interface IssueRecordReceived {
  id: string
  status: RecordStatus
  isNew: boolean
  /** The evidence of the first record with this record key. */
  evidence: string
}

/** A refused claim, because nothing may run under the approval. `unclaimed` null: the approval was erased. */
export interface RefusedClaim {
  unclaimed: ApprovalRow | null
  /** The stop that overrides the approval. */
  stop?: StopRow
}

interface StoredRecord extends RowOf<'issue_records'> {
  recordKind: RecordKind
  status: RecordStatus
  origin: RecordOrigin
  /** The service's record of the same failure, which counts instead of this one. */
  sameAs: string | null
  /** `detectedAt`, but never after the arrival. Issues are ordered by it. */
  seenAt: number
  payload: string
}

type NotSent = 'status' | 'statusAt' | 'failure' | 'fingerprint' | 'origin' | 'sameAs' | 'seenAt'

export interface NewIssueRecord extends Omit<StoredRecord, NotSent> {
  environmentId: string
}

export interface IssueRecordWhole extends StoredRecord {
  issueId: string | null
  run: string | null
  /** Null: the event is not stored, or the record names none. */
  storedEventId: string | null
}

export type IssueRecordRow = Omit<IssueRecordWhole, 'payload' | 'evidence'>

export interface IssueRecordFilter {
  status?: RecordStatus | undefined
  recordKind?: RecordKind | undefined
}

type Reviewed = 'id' | 'recordKind' | 'runId' | 'eventId' | 'detectionType' | 'policyId' | 'payload'
export type RecordInReview = Pick<StoredRecord, Reviewed>

export interface IssueDecision {
  recordId: string
  /** The event that a client's detection names. If the service counted its failure, this record no longer counts. */
  reports: { runId: string; eventId: string } | null
  fingerprint: string
  facts: string
  detectionType: string
  title: string
  newIssueId: string
}

export interface DecidedIssues {
  opened: string[]
  regressed: string[]
}

/** Failures that the service detects in recorded events. Each becomes one issue record of the service. */

export interface NamedFailure {
  eventId: string
  title: string
}

export interface TimeSpan {
  from: number
  to: number
  /** One of the events ended the run as failed. */
  ends?: true
}

export interface RunInReview {
  run: RunRow
  events: StoredEvent[]
}

export interface NewFailure {
  id: string
  /** Null: no event ended the run, but the stalled rule did. */
  eventId: string | null
  clientId: string
  sessionId: string | null
  agentId: string
  promptVersionId: string | null
  time: number
  detectionType: string
  payload: string
  decision: Omit<IssueDecision, 'recordId' | 'reports'>
  broader: BroaderGroups
}

/** Groups that a failure joins if it may not open another issue. */
interface BroaderGroups {
  /** Prefix that the fingerprints of its place share. */
  family: string
  place: FailureGroup
  kind: FailureGroup
}

export type FailureGroup = Pick<IssueDecision, 'fingerprint' | 'facts' | 'title'>

export const failureSubject = (run: string, span: TimeSpan | null): string =>
  `${run}/${span === null ? 'stalled' : `${span.from}-${span.to}${span.ends ? '/end' : ''}`}`

export function readFailureSubject(subject: string): { run: string; span: TimeSpan | null } | null {
  const [, run = '', from, to, end] = /^([0-9a-f-]{36})\/(?:stalled|(\d{1,15})-(\d{1,15})(\/end)?)$/.exec(subject) ?? []
  if (run === '') return null
  if (from === undefined) return { run, span: null }
  return { run, span: { from: Number(from), to: Number(to), ...(end !== undefined && { ends: true }) } }
}

/** A loop: one tool is called again and again with the same input, as the SDKs' detectors count it. */

/** Characters of a call's hash: equal ones among twenty calls are hardly ever an accident. */
export const CALL_KEY_CHARS = 8

export const RECENT_CALLS_CHARS = LIMITS.loopWindowCalls * CALL_KEY_CHARS

/** `recent`: the keys of the latest calls, one after another. */
export function addCall(recent: string | null, key: string): string {
  return `${recent ?? ''}${key}`.slice(-RECENT_CALLS_CHARS)
}

/** Whether the latest call is in a loop. */
export function isLoop(recent: string): boolean {
  const latest = recent.slice(-CALL_KEY_CHARS)
  let times = 0
  for (let at = 0; at < recent.length; at += CALL_KEY_CHARS) {
    if (recent.startsWith(latest, at)) times++
  }
  return times >= LIMITS.loopCalls
}

const HASH_CHARS = 8

/** Tool name of a loop. Names that are too long for usage counts are cut, with a hash, so each tool has its own loop. */
export function loopTool(toolName: string): string {
  if (toolName.length <= LIMITS.searchChars) return toolName.toWellFormed()
  const start = toolName.slice(0, LIMITS.searchChars - HASH_CHARS - 1).toWellFormed()
  return `${start}…${hash('sha256', toolName, 'hex').slice(0, HASH_CHARS)}`
}

export interface NewLoop {
  id: string
  toolName: string
  clientId: string
  sessionId: string | null
  /** External id of the agent, or its name. */
  agentId: string
  time: number
}
