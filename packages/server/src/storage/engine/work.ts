/**
 * The kind determines what a subject is. For `find_failures`, `derive_decisions` and `notify_people`, see failures.ts
 * and notifications.ts.
 */
export const WORK_KINDS = [
  'review_issue_record',
  'find_failures',
  'derive_decisions',
  'simulate',
  'deliver_webhook',
  'notify_people',
  'reopen_issue',
  'check_alert',
  'index_search',
  'retain',
  'erase',
  'delete_environment',
  'close_stalled',
  'end_trace',
  'tell_gaps',
] as const
export type WorkKind = (typeof WORK_KINDS)[number]

/** Counting stops here, so that a metrics scrape costs the same for any queue length. */
export const WORK_COUNTED = 10_000

/** An id is unique only within its environment, because imports choose ids. */
export interface WorkSubject {
  environmentId: string
  subjectId: string
}

/** At most one per environment, kind and subject. */
export interface NewWork extends WorkSubject {
  kind: WorkKind
  dueAt: number
}

export interface WorkItem extends WorkSubject {
  attempts: number
  lastError: string | null
}

export interface SharedWorkItem extends WorkItem {
  workspaceId: string
}

export interface WorkClaim {
  kind: WorkKind
  owner: string
  now: number
  leaseUntil: number
  limit: number
}

export interface WorkHold {
  kind: WorkKind
  owner: string
  items: readonly WorkSubject[]
}

export interface WorkPostponement {
  dueAt: number
  error: string | null
  /** Whether this attempt counts; an interrupted one does not. */
  counts: boolean
}

export interface WorkBacklog {
  kind: WorkKind
  items: number
  due: number
  dueSince: number | null
}

export const IDEMPOTENCY_KEPT_MS = 24 * 60 * 60 * 1000

export interface IdempotencyKey {
  actorKind: 'operator' | 'token'
  actorId: string
  key: string
}

export interface IdempotencyClaim {
  fingerprint: string
  now: number
  /** Keys claimed at or before this time can be claimed again. */
  freeUntil: number
  /** An unanswered claim of the same request, at or before this time, is taken over: its process has died. */
  deadUntil: number
}

export interface KeptReply {
  status: number
  /** The body of the reply, without secrets. */
  json: string
}

/** `other`: the key belongs to another request. `running`: the first request has no answer yet. */
export type IdempotencyOutcome = 'claimed' | 'running' | 'other' | KeptReply
