import type { ErasureKind, ErasureStatus } from '@tacho/contract/operator/erasure.ts'
import type { NewEvent } from './events.ts'

export interface ErasureSubject {
  kind: ErasureKind
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
  searched: number
  /** The agent's usage before this hour is deleted as a whole; null: the usage of each event is subtracted. */
  usageFrom: number | null
}

/** What the events of a run added to usage. */
export interface CountedEvents {
  /** What the run said it had before they were counted. If it says so still, it got no events since. */
  runEvents: number
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
