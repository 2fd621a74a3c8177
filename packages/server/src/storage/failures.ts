/** Failures that the service sees in recorded events. Each becomes an issue record of the service, once. */
import type { StoredEvent } from './events.ts'
import type { IssueDecision } from './issue-records.ts'
import type { RunRow } from './runs.ts'

export interface FailureStore {
  /** The events of a run that may tell a failure: those with these times, and others among the newest before them. */
  readFailures(environmentId: string, run: string, span: TimeSpan | null): Promise<RunInReview | null>
  /**
   * Stores and decides records of the service. Leaves out those that it has, that a client reported, and that an operator
   * erased. Returns how many it stored.
   */
  recordFailures(environmentId: string, runId: string, failures: NewFailure[], now: number): Promise<number>
  /**
   * Gives issues of failed tools that clients reported the title of the failure that the service saw, once for an issue: a
   * report has no message.
   */
  nameReported(environmentId: string, runId: string, failures: readonly NamedFailure[]): Promise<void>
}

export interface NamedFailure {
  eventId: string
  title: string
}

/** Times of events, both inclusive. */
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
  /** JSON text. */
  payload: string
  decision: Omit<IssueDecision, 'recordId' | 'reports'>
}

/** What the work names: the run by its internal id, and the times of its new events. Null: the stalled rule closed it. */
export const failureSubject = (run: string, span: TimeSpan | null): string =>
  `${run}/${span === null ? 'stalled' : `${span.from}-${span.to}${span.ends ? '/end' : ''}`}`

export function readFailureSubject(subject: string): { run: string; span: TimeSpan | null } | null {
  const [, run = '', from, to, end] = /^([0-9a-f-]{36})\/(?:stalled|(\d{1,15})-(\d{1,15})(\/end)?)$/.exec(subject) ?? []
  if (run === '') return null
  if (from === undefined) return { run, span: null }
  return { run, span: { from: Number(from), to: Number(to), ...(end !== undefined && { ends: true }) } }
}
