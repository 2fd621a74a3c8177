import type { Erasure, ErasureKind } from '@tacho/contract/data/erasure.ts'
import type { RunStatus } from '@tacho/contract/runs/run.ts'
import type { NewEvent } from '../record/events.ts'
import type { RowFor } from '../engine/page.ts'

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
  address: string | null
}

export interface ErasureRow extends Omit<NewErasure, 'subject'>, Omit<RowFor<Erasure>, keyof NewErasure> {
  subject: string | null
}

export interface ErasableRun {
  id: string
  number: number
  events: number
  startedAt: number
  lastEventAt: number
  usesPrompts: 0 | 1
  status: RunStatus
  /** False: only the run's payloads can show whether it belongs to the erasure. */
  isFound: boolean
}

export interface Erasable {
  erasure: ErasureRow
  runs: ErasableRun[]
  /** Every run up to this number has been searched. */
  searchedTo: number
  searched: number
  /** Before this hour the agent's usage is deleted as a whole; null: usage is subtracted event by event. */
  usageFrom: number | null
}

export interface CountedEvents {
  /** Number of events before they were counted. If it is the same later, no event has arrived since. */
  runEvents: number
  events: number
  usage: CountedUsage[]
  /** Like `usageFrom`, but usage of prompt versions is always subtracted. */
  agentFrom: number | null
}

/** A group of `times` events that are counted in the same rows, with the sums of their usage. */
export type CountedUsage = Pick<NewEvent, 'time' | 'eventType' | 'usage' | 'latencyMs' | 'promptUse' | 'toolUse'> & {
  times: number
}

export interface ErasureSlice {
  runs: { number: number; counted: CountedEvents | null }[]
  searchedTo: number
  searched: number
}
