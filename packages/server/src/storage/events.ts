import type { RejectionCode } from '@tacho/contract/errors.ts'
import type { EVENT_ORDERS } from '@tacho/contract/operator/run.ts'
import type { RunOutcome } from '@tacho/contract/run.ts'
import type { Said } from '@tacho/contract/said.ts'
import type { ProblemKind } from '@tacho/contract/words.ts'
import type { EventFailure } from './failure.ts'
import type { Numbering } from './completeness.ts'
import type { RunRow } from './runs.ts'
import type { NewScore } from './scores.ts'
import type { CallTokens } from './uncosted.ts'

/** A judged event, flat, with everything the store needs. The payload is the JSON text as sent. */
export interface NewEvent extends Numbering {
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
  outcome: RunOutcome | null
  usage: NewUsage | null
  latencyMs: number | null
  promptUse: PromptUse | null
  toolUse: ToolUse | null
  /** The error that it tells; of an outcome also why the run was cancelled, which is no error. Null: neither. */
  failure: EventFailure | null
  /** What it says of the question and the answer of its run. */
  said: Said | null
  traits: string | null
  /** Only for a SCORE that says one. */
  score: NewScore | null
  /** Too old to be stored, but accepted if already stored: the store looks it up and never inserts it. */
  onlyIfStored: boolean
}

export interface NewUsage {
  model: string
  promptTokens: number
  completionTokens: number
  totalTokens: number
  /** Integer of 1e-9 units. */
  costNanos: number
  /** The tokens of a call whose sender did not say what it cost, to estimate it. */
  uncosted: CallTokens | null
}

export interface PromptUse {
  versionId: string
  problem: ProblemKind | null
}

export interface ToolUse {
  tool: string
  /** `blocked` and `approval` are decisions, not calls. */
  problem: ProblemKind | null
}

export interface EventBatchRows {
  environmentId: string
  receivedAt: number
  events: NewEvent[]
  /** Rejected items that named a run and an id. Kept for `doctor`, bounded. */
  rejections: RejectionRow[]
  /** The run of all these events, as an export has it. */
  importing?: ImportedRun | undefined
}

/** What a run does not get from its events. */
export interface ImportedRun {
  id: string
  differingRetries: number
}

/**
 * `stored` and `duplicate` are accepted. `absent`: an `onlyIfStored` event that is not stored. `unstorable`: rejected
 * by the store. `erased`: an operator erased it. `differing`: an imported event whose id has other content.
 */
export type EventVerdict = 'stored' | 'duplicate' | 'absent' | 'unstorable' | 'erased' | 'differing'

export interface RejectionRow {
  runId: string
  eventId: string
  code: RejectionCode
  rejectedAt: number
  /** Number and client of a numbered event, for its run to count. */
  numbered?: { number: string; clientId: string; drops: string | null }
}

export interface EventRowRead {
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
  /** How long it took, in microseconds; null if its payload does not say so. */
  latencyMicros: number | null
  /** Of a model call; null: none. */
  tokens: number | null
  costNanos: number | null
  /** 0: the payload was removed. */
  payloadBytes: number
}

export interface StoredEvent extends EventRowRead {
  payload: string
  /** The stored payload does not match its checksum, and `payload` is empty. */
  payloadDamaged?: true
}

/** An event that a person should look at. */
export interface ProblemEvent extends StoredEvent {
  problem: ProblemKind
}

export interface FoundEvent {
  run: RunRow
  event: StoredEvent
  /** Position in the timeline, from 1. */
  position: number
  closedRun: boolean
}

export interface EventsRead<Row> {
  rows: Row[]
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
  order: (typeof EVENT_ORDERS)[number]
  after: { time: number; seq: number } | null
  filter?: EventFilter | undefined
}

export interface EventFilter {
  eventType?: string | undefined
  /** Text that the label contains. A to Z match a to z. */
  label?: string | undefined
  /** A page ends after scanning this many rows, however few match. */
  rowsLookedAt: number
}

/** `lookedTo`: where to continue if the page ended at the scan limit; otherwise its last row. */
export type EventRowsRead = EventsRead<EventRowRead> & { lookedTo?: { time: number; seq: number } }
