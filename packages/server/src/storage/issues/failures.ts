/** Failures that the service sees in recorded events. Each becomes one issue record of the service. */
import type { StoredEvent } from '../record/events.ts'
import type { IssueDecision } from './issue-records.ts'
import type { RunRow } from '../runs/runs.ts'

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
  /** Null: the stalled rule closed the run. */
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

/** Joined where the failure would open one issue too many. */
export interface BroaderGroups {
  /** Prefix of the fingerprints of its place. */
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
