/**
 * A batch as one text and one array of numbers: cloning a hundred objects takes the HTTP thread longer than validating
 * them. A text that equals that of the previous event is not sent again, and the writer uses one string for both.
 * Payloads stay in the body of their request, which moves to the writer.
 */
import { PROBLEM_KINDS } from '@tacho/contract/engine/words.ts'
import type { ApprovalNote } from '../approvals/approvals.ts'
import { payloadText, type EventBatchRows, type NewEvent, type PayloadJson } from './events.ts'
import type { EventFailure } from './failure.ts'
import type { NewScore } from '../runs/scores.ts'
import { TOKEN_PARTS, type CallTokens } from '../runs/usage.ts'

export interface PackedEvents<Text extends string | Uint8Array = Uint8Array> {
  bytes: number
  events: number
  text: Text
  /** Body of the request: it contains some of the payloads. */
  body: Uint8Array | null
  /** For each event: lengths of its texts, flags, time and usage. */
  numbers: Float64Array
}

export type PackedBatch = Omit<EventBatchRows, 'events' | 'body'> & PackedEvents<string | Uint8Array>

export const isPacked = (batch: EventBatchRows | PackedBatch): batch is PackedBatch => typeof batch.events === 'number'

/** Packs events into buffers, which can be moved between threads. The texts must be well-formed Unicode. */
export function packEvents(events: NewEvent[]): PackedEvents {
  const rows = { environmentId: '', receivedAt: 0, events, rejections: [] }
  const { bytes, text, body, numbers } = packBatch(rows, batchBytes(rows))
  return { bytes, events: events.length, text: new TextEncoder().encode(text), body, numbers }
}

/** Buffers that move between threads instead of being copied. */
export const packedBuffers = ({ text, body, numbers }: PackedEvents<string | Uint8Array>): ArrayBuffer[] =>
  [text, body, numbers].flatMap((moved) => (typeof moved === 'object' && moved ? [moved.buffer as ArrayBuffer] : []))

const UNCOSTED = ['context', ...TOKEN_PARTS] as const
const NO_TOKENS = Object.fromEntries(UNCOSTED.map((tokenPart) => [tokenPart, 0])) as unknown as CallTokens

const [NULL, AS_BEFORE, IN_BODY] = [-1, -2, -3]
const NUMBERS_PER_EVENT = 50

export function packBatch(
  { events, body = null, ...batch }: EventBatchRows,
  bytes: number,
): PackedBatch & PackedEvents<string> {
  const numbers = new Float64Array(events.length * NUMBERS_PER_EVENT)
  let text = ''
  let at = 0
  const add = (value: string | null, last: string | null | undefined): void => {
    if (value === null) numbers[at++] = NULL
    else if (value === last) numbers[at++] = AS_BEFORE
    else {
      numbers[at++] = value.length
      text += value
    }
  }
  const addPayload = (payload: PayloadJson): void => {
    if (typeof payload === 'string' || payload.buffer !== body?.buffer) return add(payloadText(payload), null)
    numbers[at++] = IN_BODY
    numbers[at++] = payload.byteOffset - body.byteOffset
    numbers[at++] = payload.byteLength
  }
  let before: NewEvent | null = null
  for (const event of events) {
    const { usage, promptUse, toolUse } = event
    add(event.eventId, null)
    add(event.clientId, before?.clientId)
    add(event.runId, before?.runId)
    add(event.sessionId, before?.sessionId)
    add(event.agentId, before?.agentId)
    add(event.agentName, before?.agentName)
    add(event.eventType, before?.eventType)
    add(event.label, before?.label)
    addPayload(event.payload)
    add(event.spanId, before?.spanId)
    add(event.parentSpanId, before?.parentSpanId)
    add(event.schemaVersion, before?.schemaVersion)
    add(event.outcome, null)
    add(usage && usage.model, before?.usage?.model)
    add(promptUse && promptUse.versionId, before?.promptUse?.versionId)
    numbers[at++] = promptUse?.problem ? PROBLEM_KINDS.indexOf(promptUse.problem) : NULL
    add(toolUse && toolUse.tool, before?.toolUse?.tool)
    numbers[at++] = toolUse?.problem ? PROBLEM_KINDS.indexOf(toolUse.problem) : NULL
    numbers[at++] = event.latencyMs ?? NULL
    add(event.traits, before?.traits)
    add(event.userId, before?.userId)
    add(event.callKey, before?.callKey)
    add(event.number, null)
    add(event.drops, before?.drops)
    numbers[at++] = event.time
    numbers[at++] = event.onlyIfStored ? 1 : 0
    add(event.failure && JSON.stringify(event.failure), null)
    add(event.score && JSON.stringify(event.score), null)
    add(event.approval && JSON.stringify(event.approval), null)
    add(event.said && event.said.question, before?.said?.question)
    add(event.said && event.said.answer, null)
    numbers[at++] = usage?.promptTokens ?? 0
    numbers[at++] = usage?.completionTokens ?? 0
    numbers[at++] = usage?.totalTokens ?? 0
    numbers[at++] = usage?.costNanos ?? 0
    const uncosted = usage?.uncosted ?? null
    if (uncosted === null) at += UNCOSTED.length
    else for (const tokenPart of UNCOSTED) numbers[at++] = uncosted[tokenPart]
    before = event
  }
  return { ...batch, bytes, events: events.length, text, body, numbers }
}

export function unpackBatch({ events, text: packed, body, numbers, bytes: _, ...batch }: PackedBatch): EventBatchRows {
  const text = typeof packed === 'string' ? packed : new TextDecoder('utf-8', { ignoreBOM: true }).decode(packed)
  let [at, end] = [0, 0]
  const next = (): number => numbers[at++] ?? Number.NaN
  const maybe = (last: string | null | undefined): string | null => {
    const length = next()
    if (length === NULL) return null
    if (length === AS_BEFORE) return last ?? null
    return text.slice(end, (end += length))
  }
  const always = (last?: string): string => maybe(last) ?? ''
  const bodyBytes = body && Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const payload = (): PayloadJson => {
    if (numbers[at] !== IN_BODY) return always()
    at++
    const from = next()
    return bodyBytes?.subarray(from, from + next()) ?? ''
  }
  let before: NewEvent | null = null
  const unpacked: NewEvent[] = []
  for (let count = 0; count < events; count++) {
    // Reads members in the order in which packBatch adds them.
    const event: NewEvent = {
      eventId: always(),
      clientId: always(before?.clientId),
      runId: always(before?.runId),
      sessionId: maybe(before?.sessionId),
      agentId: maybe(before?.agentId),
      agentName: always(before?.agentName),
      eventType: always(before?.eventType),
      label: always(before?.label),
      payload: payload(),
      spanId: maybe(before?.spanId),
      parentSpanId: maybe(before?.parentSpanId),
      schemaVersion: maybe(before?.schemaVersion),
      outcome: maybe(null) as NewEvent['outcome'],
      usage: null,
      latencyMs: null,
      promptUse: null,
      toolUse: null,
      traits: null,
      userId: null,
      callKey: null,
      score: null,
      approval: null,
      number: null,
      drops: null,
      time: 0,
      onlyIfStored: false,
      failure: null,
      said: null,
    }
    const model = maybe(before?.usage?.model)
    const versionId = maybe(before?.promptUse?.versionId)
    const problem = PROBLEM_KINDS[next()] ?? null
    if (versionId !== null) event.promptUse = { versionId, problem }
    const tool = maybe(before?.toolUse?.tool)
    const toolProblem = PROBLEM_KINDS[next()] ?? null
    if (tool !== null) event.toolUse = { tool, problem: toolProblem }
    const latency = next()
    if (latency !== NULL) event.latencyMs = latency
    event.traits = maybe(before?.traits)
    event.userId = maybe(before?.userId)
    event.callKey = maybe(before?.callKey)
    event.number = maybe(null)
    event.drops = maybe(before?.drops)
    event.time = next()
    event.onlyIfStored = next() === 1
    const failure = maybe(null)
    if (failure !== null) event.failure = JSON.parse(failure) as EventFailure
    const score = maybe(null)
    if (score !== null) event.score = JSON.parse(score) as NewScore
    const approval = maybe(null)
    if (approval !== null) event.approval = JSON.parse(approval) as ApprovalNote
    const [question, answer] = [maybe(before?.said?.question), maybe(null)]
    if (question !== null || answer !== null) event.said = { question, answer }
    const usage = { promptTokens: next(), completionTokens: next(), totalTokens: next(), costNanos: next() }
    const uncosted = { ...NO_TOKENS }
    let tokens = 0
    for (const tokenPart of UNCOSTED) tokens += uncosted[tokenPart] = next()
    if (model !== null) event.usage = { model, ...usage, uncosted: tokens === 0 ? null : uncosted }
    unpacked.push(event)
    before = event
  }
  return { ...batch, events: unpacked }
}

const EVENT_BYTES = 500

/** Approximate: counts characters instead of bytes, because counting bytes costs more than it is worth. */
export function batchBytes({ events }: EventBatchRows): number {
  return events.reduce((sum, { payload }) => sum + payload.length + EVENT_BYTES, 0)
}
