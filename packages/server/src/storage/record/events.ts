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
import { partsOf, TOKEN_PARTS, type CallTokens, type UsageSums } from '../runs/usage.ts'
import type { Holder } from '../engine/turns-by-workspace.ts'

/** Any JSON object: no field is checked. */
export type Payload = Readonly<Record<string, unknown>>

/** A JSON object, as text or as its bytes in a request: the bytes are decoded only when they are read. */
export type PayloadJson = string | Uint8Array

const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array) => Buffer.from(buffer, byteOffset, byteLength)

export const payloadText = (payload: PayloadJson): string =>
  typeof payload === 'string' ? payload : bufferOf(payload).toString()

export const payloadIncludes = (payload: PayloadJson, text: string): boolean =>
  typeof payload === 'string' ? payload.includes(text) : bufferOf(payload).includes(text)

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
  payload: PayloadJson
  outcome: RunOutcome | null
  usage: NewUsage | null
  latencyMs: number | null
  promptUse: PromptUse | null
  toolUse: ToolUse | null
  /** Why the event failed. For an outcome also why the run was cancelled, which is no error. */
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
  /** Buffer that contains payloads. The store takes ownership: it must be the whole buffer, and no other code may read it. */
  body?: Uint8Array | null | undefined
  rejections: RejectionRow[]
  importing?: ImportedRun | undefined
  /** Holder whose turn the append uses; default: that of its environment. */
  holder?: Holder | undefined
  /** The family of the API key that recorded the events: only approvals of this family are noted. */
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
  /** Absent: the default message of the code. */
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
  /** Position from 1. */
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

/** `lookedTo`: where to continue if the page ended at the scan limit; otherwise continue after its last row. */
export type EventRowsRead = Page<EventRowRead> & { lookedTo?: TimelinePlace }

/**
 * Title and last answer of a run, stored in its row for lists of runs. The title is the first question, or else the
 * label of the first step, in any order of arrival. Both are content, so they are removed with the payloads.
 */

interface Line {
  time: number
  eventId: string
  text: string
}

export interface RunSaid {
  title: Line
  isAsked: boolean
  answer: Line | null
}

/** Returns `known` if nothing changes. */
export function keptSaid(known: RunSaid | null, { said, label, time, eventId }: SayingEvent): RunSaid {
  const line = (text: string): Line => ({ time, eventId, text })
  const { question = null, answer = null } = said ?? {}
  if (known === null) {
    return { title: line(question ?? label), isAsked: question !== null, answer: answer === null ? null : line(answer) }
  }
  const at = { time, eventId }
  const isTitle = known.isAsked
    ? question !== null && isBefore(at, known.title)
    : question !== null || isBefore(at, known.title)
  const isAnswer = answer !== null && (known.answer === null || isBefore(known.answer, at))
  if (!isTitle && !isAnswer) return known
  return {
    title: isTitle ? line(question ?? label) : known.title,
    isAsked: known.isAsked || question !== null,
    answer: isAnswer ? line(answer) : known.answer,
  }
}

type SayingEvent = Pick<NewEvent, 'label' | 'time' | 'eventId'> & { said: Said | null }
type Place = Pick<Line, 'time' | 'eventId'>

const isBefore = (one: Place, other: Place): boolean =>
  one.time < other.time || (one.time === other.time && one.eventId < other.eventId)

export function saidChars({ title, answer }: RunSaid): number {
  return [title, answer].reduce((sum, line) => sum + (line === null ? 0 : line.text.length + line.eventId.length), 0)
}

export function saidText(runSaid: RunSaid | null): string | null {
  if (runSaid === null) return null
  const { title, isAsked, answer } = runSaid
  const row: Row = [isAsked ? 1 : 0, rowOf(title)]
  return JSON.stringify(answer === null ? row : [...row, rowOf(answer)])
}

export function readSaid(text: string | null): RunSaid | null {
  if (text === null) return null
  const [isAsked, title, answer] = JSON.parse(text) as Row
  return { title: lineOf(title), isAsked: isAsked === 1, answer: answer === undefined ? null : lineOf(answer) }
}

type LineRow = [time: number, eventId: string, text: string]
type Row = [isAsked: 0 | 1, title: LineRow, answer?: LineRow]

const rowOf = ({ time, eventId, text }: Line): LineRow => [time, eventId, text]
const lineOf = ([time, eventId, text]: LineRow): Line => ({ time, eventId, text })

/** Usage of an event that has no column of its own, as text; null: none. */
export function countedText({ eventType, usage, toolUse, promptUse }: CountedCall): string | null {
  if (eventType !== 'LLM_CALL' && toolUse === null) return null
  const tokens = usage ? [usage.promptTokens, usage.completionTokens] : []
  const uncosted = usage?.uncosted
    ? [usage.uncosted.context, ...TOKEN_PARTS.map((tokenPart) => usage.uncosted![tokenPart])]
    : []
  return JSON.stringify([usage?.model ?? toolUse?.tool ?? null, promptUse?.versionId ?? 0, ...tokens, ...uncosted])
}

type CountedCall = Pick<NewEvent, 'eventType' | 'usage' | 'toolUse' | 'promptUse'>

interface CountedColumns {
  eventType: string
  counted: string
  problem: ProblemKind | null
  tokens: number | null
  costNanos: number | null
}

export function readCounted({ eventType, counted, problem, tokens, costNanos }: CountedColumns): CountedCall {
  const [name, version, ...numbers] = JSON.parse(counted) as [string | null, string | 0, ...number[]]
  const [promptTokens = 0, completionTokens = 0, context, ...parts] = numbers
  const sums = { promptTokens, completionTokens, totalTokens: tokens ?? 0, costNanos: costNanos ?? 0 }
  const uncosted = context === undefined ? null : { context, ...partsOf((at) => parts[at] ?? 0) }
  const isModel = eventType === 'LLM_CALL'
  return {
    eventType,
    usage: isModel && name !== null ? { model: name, ...sums, uncosted } : null,
    toolUse: isModel ? null : { tool: name ?? '', problem },
    promptUse: version === 0 ? null : { versionId: version, problem: null },
  }
}
