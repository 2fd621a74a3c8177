/** Work that is done in the background, by whichever node takes it. */

/** What `subjectId` names: an issue record, a simulation, a delivery. */
export const WORK_KINDS = ['review_issue_record', 'simulate', 'deliver_webhook'] as const
export type WorkKind = (typeof WORK_KINDS)[number]

export interface WorkStore {
  /** Takes due work, the longest due first; nobody else gets it before the lease ends. Counts an attempt. */
  claimWork(claim: WorkClaim): Promise<WorkItem[]>
  /** Keeps what is still held until a later time. Like the next two, returns how many of the items were still held. */
  extendWork(hold: WorkHold, leaseUntil: number): Promise<number>
  /** Gives back what is still held, to be taken again at `dueAt`. */
  postponeWork(hold: WorkHold, postponement: WorkPostponement): Promise<number>
  /** Removes what is still held: there is nothing to do about it any more. Most acts do it in their own transaction. */
  finishWork(hold: WorkHold): Promise<number>
  /** How much work there is, counted up to WORK_COUNTED of each kind, and since when it is due. */
  workBacklog(now: number): Promise<WorkBacklog[]>
}

/** Counting ends here, so that a scrape of metrics costs the same however much is queued. */
export const WORK_COUNTED = 10_000

/** There is at most one for each kind and subject. */
export interface NewWork {
  kind: WorkKind
  environmentId: string
  subjectId: string
  dueAt: number
}

export interface WorkItem {
  environmentId: string
  subjectId: string
  /** This one included. */
  attempts: number
  /** What went wrong the last time. */
  lastError: string | null
}

export interface WorkClaim {
  kind: WorkKind
  /** Names the taker; no two running ones are named alike. */
  owner: string
  now: number
  leaseUntil: number
  limit: number
}

export interface WorkHold {
  kind: WorkKind
  owner: string
  subjectIds: string[]
}

export interface WorkPostponement {
  dueAt: number
  error: string | null
  /** Whether the attempt counts; one that was only interrupted does not. */
  counts: boolean
}

export interface WorkBacklog {
  kind: WorkKind
  /** All there is of the kind, due or not. */
  items: number
  /** Those that are due and held by nobody. */
  due: number
  /** Since when the oldest of them is due; null when none is. */
  dueSince: number | null
}
