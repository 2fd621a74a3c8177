/** Erasures: what operators erased on request, from the request to the receipt. */
import type { ErasureKind, ErasureStatus } from '@tacho/contract/operator/erasure.ts'
import type { AuditEntry } from './audit.ts'
import type { NewEvent } from './events.ts'
import type { PageById } from './page.ts'

export interface ErasureStore {
  /** After its commit, late retries of erased data are refused. The same transaction queues its work. */
  createErasure(erasure: NewErasure, audit: AuditEntry[]): Promise<ErasureRow>
  findErasure(environmentId: string, id: string): Promise<ErasureRow | null>
  /** Newest first. */
  listErasures(environmentId: string, page: PageById): Promise<ErasureRow[]>
  /** Runs that an erasure has to search, because no index finds them. */
  countToSearch(environmentId: string, subject: Pick<ErasureSubject, 'kind' | 'field'>): Promise<number>
  /** What such an erasure would remove now; counts end at `most` runs. */
  previewErasure(environmentId: string, subject: ErasureSubject, most: number): Promise<ErasurePreviewRow>
  /** The next runs to remove or to search, at most `limit`. Null: no such erasure. */
  listErasable(environmentId: string, id: string, limit: number): Promise<Erasable | null>
  /** Names of models and tools that usage is summed up by. All others are summed up as one. */
  listCountedNames(environmentId: string): Promise<string[]>
  /** Removes runs, and notes that all up to `searchedTo` were searched. */
  removeErased(environmentId: string, id: string, slice: ErasureSlice, now: number): Promise<ErasureRow | null>
  /**
   * Removes everything else that the erasure names. With `effectiveAt` in the result, no reader finds anything of it;
   * otherwise call it, or the two before, again.
   */
  concludeErasure(environmentId: string, id: string, now: number): Promise<ErasureRow | null>
  /** Deletes up to about `limit` events. The last slice writes the receipt. */
  deleteErased(environmentId: string, id: string, limit: number, now: number): Promise<ErasureRow | null>
  /** Its work keeps failing: it starts over at `dueAt`. */
  deferErasure(environmentId: string, id: string, dueAt: number, error: string): Promise<void>
}

export interface ErasureSubject {
  kind: ErasureKind
  /** What is erased, as an external id. */
  subject: string
  /** For a user: path of the payload field that holds the id, outermost key first. Null: only sessions with that id. */
  field: readonly string[] | null
}

export interface NewErasure extends ErasureSubject {
  id: string
  environmentId: string
  subjectHash: string
  reason: string | null
  requestedBy: ErasureActor
  createdAt: number
  /** Runs to search, as counted before. */
  toSearch: number
}

export interface ErasureActor {
  kind: 'operator' | 'token'
  id: string
  name: string
  workspaceId: string
  requestId: string
}

export interface ErasureRow extends Omit<NewErasure, 'subject'> {
  /** Null once everything is deleted. */
  subject: string | null
  status: ErasureStatus
  effectiveAt: number | null
  finishedAt: number | null
  searched: number
  toSearch: number
  runs: number
  events: number
  eventsDeleted: number
  approvals: number
  issueRecords: number
  issues: number
  checksum: string
}

export interface ErasurePreviewRow {
  runs: number
  events: number
  /** Whether there are more. */
  more: boolean
  /** Runs that have to be searched, because no index finds them; counted up to `most`. */
  toSearch: number
}

export interface ErasableRun {
  id: string
  number: number
  events: number
  startedAt: number
  lastEventAt: number
  /** Whether some of its events are counted for a prompt version. */
  usesPrompts: 0 | 1
  /** Whether it is certain that it belongs to the erasure. Otherwise its payloads must be read. */
  isFound: boolean
}

export interface Erasable {
  erasure: ErasureRow
  runs: ErasableRun[]
  /** After these, every run up to this number has been searched. */
  searchedTo: number
  /** Number of runs searched. */
  searched: number
  /** The agent's usage before this hour is deleted as a whole; null: the usage of each event is subtracted. */
  usageFrom: number | null
}

/** What the events of a run added to usage. */
export interface CountedEvents {
  /** What the run said it had before they were counted. If it says so still, it got no events since. */
  runEvents: number
  /** How many there were. */
  events: number
  usage: CountedUsage[]
  /** The agent's usage before this hour is deleted as a whole, so only the usage of prompt versions is subtracted there; null: all usage is subtracted. */
  agentFrom: number | null
}

/** `times` events that are counted in the same rows, with the sums of their usage. */
export type CountedUsage = Pick<NewEvent, 'time' | 'eventType' | 'usage' | 'latencyMs' | 'promptUse' | 'toolUse'> & {
  times: number
}

export interface ErasureSlice {
  runs: { number: number; counted: CountedEvents | null }[]
  searchedTo: number
  searched: number
}
