/** Events: how they are stored, and read again. */
import type { RejectionCode } from '@tacho/contract/errors.ts'
import type { RunOutcome } from '@tacho/contract/run.ts'
import type { RunRow } from './runs.ts'

export interface EventStore {
  /**
   * Stores the events of one batch durably and judges each: run, agent, usage and rollup in the same transaction.
   * Verdicts are in the order of `batch.events`. Concurrent batches may share a commit; an event of one never fails another.
   * Rejects with a StorageError when the commit failed or nobody can tell: then all of the batch may be sent again.
   */
  appendEvents(batch: EventBatchRows): Promise<EventVerdict[]>
  /** The run, by external id first, then by internal UUID, with the first page of its events; null: no such run. */
  readTimeline(environmentId: string, runIdOrUuid: string, page: Omit<EventPage, 'after'>): Promise<Timeline | null>
  /**
   * Timeline order: time, then arrival. Ends at `limit` rows or `pageBytes` of what clients sent, with at least one row.
   * `run` is the internal id.
   */
  listEvents(environmentId: string, run: string, page: EventPage): Promise<EventsRead<StoredEvent>>
  /** The same without payloads, by time or by arrival; all or those that fit a filter. */
  listEventRows(environmentId: string, run: string, page: EventRowsPage): Promise<EventRowsRead>
  findEvent(environmentId: string, runId: string, eventId: string): Promise<FoundEvent | null>
  /** The newest refusal of that id, among those kept (bounded per environment). */
  findRejection(environmentId: string, runId: string, eventId: string): Promise<RejectionRow | null>
}

/** A judged event: everything the store needs, flat. The payload is the JSON text as it was sent. */
export interface NewEvent {
  eventId: string
  clientId: string
  runId: string
  sessionId: string | null
  agentId: string | null
  agentName: string
  eventType: string
  label: string
  time: number
  payload: string
  spanId: string | null
  parentSpanId: string | null
  schemaVersion: string | null
  /** Set on a SESSION_OUTCOME with a valid status. */
  outcome: RunOutcome | null
  /** Set on an LLM_CALL. */
  usage: NewUsage | null
  /** Too old to be stored now, but accepted when it is already stored: looked up, never inserted. */
  onlyIfStored: boolean
}

export interface NewUsage {
  model: string
  promptTokens: number
  completionTokens: number
  totalTokens: number
  /** Integer of 1e-9 units. */
  costNanos: number
}

export interface EventBatchRows {
  environmentId: string
  receivedAt: number
  events: NewEvent[]
  /** Refused items that named a run and an id: kept for `doctor`, bounded. */
  rejections: RejectionRow[]
}

/** `stored` and `duplicate` are accepted; `absent`: an `onlyIfStored` event that is not; `unstorable`: refused by the store. */
export type EventVerdict = 'stored' | 'duplicate' | 'absent' | 'unstorable'

export interface RejectionRow {
  runId: string
  eventId: string
  code: RejectionCode
  rejectedAt: number
}

export interface EventRowRead {
  /** Arrival order within the store. */
  seq: number
  eventId: string
  sessionId: string | null
  agentId: string | null
  agentName: string
  clientId: string
  eventType: string
  label: string
  time: number
  receivedAt: number
  spanId: string | null
  parentSpanId: string | null
  schemaVersion: string | null
  payloadBytes: number
}

export interface StoredEvent extends EventRowRead {
  /** JSON text as sent. */
  payload: string
}

export interface FoundEvent {
  run: RunRow
  event: StoredEvent
  /** Place on the timeline, from 1. */
  position: number
  /** Whether it is the outcome that closed its run. */
  closedRun: boolean
}

export interface EventsRead<Row> {
  rows: Row[]
  /** Whether rows follow the last one. */
  more: boolean
}

export interface Timeline extends EventsRead<StoredEvent> {
  run: RunRow
}

export interface EventPage {
  limit: number
  pageBytes: number
  /** Rows after this place; null for the first page. */
  after: { time: number; seq: number } | null
}

export interface EventRowsPage {
  limit: number
  order: 'time' | 'arrival'
  after: { time: number; seq: number } | null
  /** At least one of its conditions is given. */
  filter?: EventFilter | undefined
}

export interface EventFilter {
  eventType?: string | undefined
  /** Text that the label contains; A to Z match a to z. */
  label?: string | undefined
  /** A page ends when so many rows were looked at, however few of them fit. */
  rowsLookedAt: number
}

/** `lookedTo`: where to go on when the page ended because enough rows were looked at; else that is its last row. */
export type EventRowsRead = EventsRead<EventRowRead> & { lookedTo?: { time: number; seq: number } }
