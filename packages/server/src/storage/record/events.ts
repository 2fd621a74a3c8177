import type { RejectionCode } from '@tacho/contract/web/errors.ts'
import type { EVENT_ORDERS } from '@tacho/contract/runs/operator-run.ts'
import type { RunOutcome } from '@tacho/contract/runs/run.ts'
import type { Said } from '@tacho/contract/runs/question-answer.ts'
import type { ProblemKind } from '@tacho/contract/engine/words.ts'
import type { ApprovalNote } from '../approvals/approvals.ts'
import type { EventFailure } from './failure.ts'
import type { Numbering } from './completeness.ts'
import type { Page, PageAfter } from '../engine/page.ts'
import type { RunRow } from '../runs/runs.ts'
import type { NewScore } from '../runs/scores.ts'
import type { CallTokens } from '../runs/uncosted.ts'
import type { Holder } from '../engine/turns-by-workspace.ts'
import type { UsageSums } from '../runs/usage.ts'

/** As JSON: anything may stand in it. */
export type Payload = Readonly<Record<string, unknown>>

interface SentEvent {
  eventId: string
  clientId: string
  sessionId: string | null
  agentId: string | null
  agentName: string
  eventType: string
  label: string
  time: number
  spanId: string | null
  parentSpanId: string | null
  schemaVersion: string | null
}

export interface NewEvent extends SentEvent, Numbering {
  runId: string
  payload: string
  outcome: RunOutcome | null
  usage: NewUsage | null
  latencyMs: number | null
  promptUse: PromptUse | null
  toolUse: ToolUse | null
  /** For an outcome also why the run was cancelled, which is no error. */
  failure: EventFailure | null
  said: Said | null
  traits: string | null
  userId: string | null
  /** Short hash of a tool call with its input; null: no call, or its input is unknown. */
  callKey: string | null
  score: NewScore | null
  approval: ApprovalNote | null
  /** Too old to be stored, but accepted if already stored. */
  onlyIfStored: boolean
}

export interface NewUsage extends UsageSums {
  model: string
  /** Tokens of a call without a cost, to estimate it. */
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
  rejections: RejectionRow[]
  importing?: ImportedRun | undefined
  /** Whose turn it takes; by default, its environment's. */
  holder?: Holder | undefined
  /** Of the API key that recorded them: only its own approvals are noted. */
  keyFamily?: string | undefined
}

export interface ImportedRun {
  id: string
  differingRetries: number
}

/** `absent`: an `onlyIfStored` event that is not stored. `differing`: an imported event whose id has other content. */
export type EventVerdict = 'stored' | 'duplicate' | 'absent' | 'unstorable' | 'erased' | 'differing'

export interface RejectionRow {
  runId: string
  eventId: string
  code: RejectionCode
  /** Absent: the sentence of the code. */
  message?: string | null
  rejectedAt: number
  numbered?: { number: string; clientId: string; drops: string | null }
}

export interface EventRowRead extends SentEvent {
  seq: number
  receivedAt: number
  latencyMicros: number | null
  tokens: number | null
  costNanos: number | null
  /** 0: the payload was removed. */
  payloadBytes: number
}

export interface StoredEvent extends EventRowRead {
  payload: string
  payloadDamaged?: true
}

export interface ProblemEvent extends StoredEvent {
  problem: ProblemKind
}

export interface FoundEvent {
  run: RunRow
  event: StoredEvent
  /** From 1. */
  position: number
  closedRun: boolean
}

export interface Timeline extends Page<StoredEvent> {
  run: RunRow
}

export interface TimelinePlace {
  time: number
  seq: number
}

export interface EventPage extends PageAfter<TimelinePlace> {
  pageBytes: number
}

export interface EventRowsPage extends PageAfter<TimelinePlace> {
  order: (typeof EVENT_ORDERS)[number]
  filter?: EventFilter | undefined
}

export interface EventFilter {
  eventType?: string | undefined
  label?: string | undefined
  /** A page ends after scanning this many rows, however few match. */
  rowsLookedAt: number
}

/** `lookedTo`: where to continue if the page ended at the scan limit; otherwise its last row. */
export type EventRowsRead = Page<EventRowRead> & { lookedTo?: TimelinePlace }
