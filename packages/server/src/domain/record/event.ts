import { EventInput, type BatchResult, type Rejection, type Warning } from '@tacho/contract/record/event.ts'
import { REJECTIONS, type RejectionCode } from '@tacho/contract/web/errors.ts'
import { shortenedText } from '@tacho/contract/engine/shown-text.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { isObject, textAt } from '@tacho/contract/record/payload-reader.ts'
import { saidIn } from '@tacho/contract/runs/question-answer.ts'
import { Compile } from 'typebox/compile'
import type { EventVerdict, NewEvent, PayloadJson, RejectionRow } from '../../storage/record/events.ts'
import { approvalNoteOf } from '../approvals/approval.ts'
import { dropsOf, numberInRunOf } from './completeness.ts'
import { jsonFault } from '../web/json-body.ts'
import { payloadSlices } from './json-slices.ts'
import {
  eventFailure,
  promptUseOf,
  traitsOf,
  userIdOf,
  callKeyOf,
  toolUseOf,
  payloadWarnings,
} from './payload-facts.ts'
import { scoreOf } from '../runs/score.ts'
import { faultLine, schemaFaults } from '../web/schema-faults.ts'
import { hasAtMost, isStorableText, UNSTORABLE, unstorableField } from '../web/text.ts'
import { latencyOf, outcomeOf, usageOf } from './usage.ts'

const eventInput = Compile(EventInput)

export interface ValidationContext {
  workspaceId: string
  now: number
  /** Events of another system: they may be older than 30 days, but not from before 1970. */
  isImport?: boolean
}

/** `indexes[i]` is the position of `events[i]` in the request; `ids` has the usable id of every item. */
export interface ValidatedBatch {
  /** Contains the payloads of the events; null: payloads are texts. */
  body: Uint8Array | null
  ids: (string | null)[]
  events: NewEvent[]
  indexes: number[]
  rejections: Rejection[]
  warnings: Warning[]
  /** Rejections that name a run and an event id, which the store keeps. */
  refused: RejectionRow[]
}

export type BatchValidation =
  | { ok: true; batch: ValidatedBatch }
  | { ok: false; code: 'invalid_json' | 'invalid_request' | 'body_too_large'; detail: string }

/** Payloads are views of the body, so it must be valid UTF-8 and must never change. */
export function validateBatch(body: Buffer, context: ValidationContext): BatchValidation {
  const text = body.toString()
  let items: unknown
  try {
    items = JSON.parse(text)
  } catch {
    // V8's message quotes the body, which must stay out of replies and logs.
    return { ok: false, code: 'invalid_json', detail: jsonFault(text) }
  }
  if (!Array.isArray(items)) {
    return { ok: false, code: 'invalid_request', detail: 'The body must be a JSON array of events' }
  }
  if (items.length < 1 || items.length > LIMITS.batchEvents) {
    const detail = `A batch must have 1 to ${LIMITS.batchEvents} events, not ${items.length}`
    return { ok: false, code: 'invalid_request', detail }
  }
  // In Latin-1, each character is a byte, so that places in the text are places in the body.
  const slices = payloadSlices(text.length === body.length ? text : body.toString('latin1'))
  const payloadAt = (index: number): ReadPayload => {
    const slice = slices[index]
    return slice ? { json: body.subarray(slice.start, slice.end), levels: slice.levels } : NO_PAYLOAD
  }
  return { ok: true, batch: { ...validateItems(items, payloadAt, context), body } }
}

export interface ReadPayload {
  json: PayloadJson
  levels: number
}

const NO_PAYLOAD: ReadPayload = { json: '{}', levels: 1 }

export function validateItems(
  items: readonly unknown[],
  payloadAt: (index: number) => ReadPayload,
  context: ValidationContext,
): ValidatedBatch {
  const batch: ValidatedBatch = {
    body: null,
    ids: [],
    events: [],
    indexes: [],
    rejections: [],
    warnings: [],
    refused: [],
  }
  items.forEach((item, index) => {
    const eventId = isObject(item) ? textAt(item, 'eventId') : null
    batch.ids.push(eventId)
    const validated = validateItem(item, () => payloadAt(index), context)
    if ('code' in validated) {
      batch.rejections.push({ index, eventId: shownId(eventId), ...validated })
      const refused = refusedRow(item, validated, context.now)
      if (refused) batch.refused.push(refused)
    } else {
      batch.events.push(validated)
      batch.indexes.push(index)
      if (batch.warnings.length < LIMITS.batchWarnings) addWarnings(batch.warnings, item as EventInput, index)
    }
  })
  return batch
}

function addWarnings(warnings: Warning[], { eventId, eventType, payload }: EventInput, index: number): void {
  for (const warning of payloadWarnings(eventType, payload ?? {})) {
    if (warnings.length < LIMITS.batchWarnings) warnings.push({ index, eventId, ...warning })
  }
}

type Fault = Pick<Rejection, 'code' | 'message'>

function validateItem(item: unknown, payload: () => ReadPayload, context: ValidationContext): NewEvent | Fault {
  if (!isObject(item)) return fault('not_an_object')
  if (!eventInput.Check(item)) return schemaFault(item)
  const badText = unstorableField(item, TEXTS)
  if (badText !== null) return fault('invalid_text', `${badText} ${UNSTORABLE}`)
  const { json, levels } = item.payload ? payload() : NO_PAYLOAD
  if (json.length > LIMITS.payloadBytes || Buffer.byteLength(json) > LIMITS.payloadBytes) {
    return fault('payload_too_large')
  }
  if (levels > LIMITS.payloadDepthLevels) return fault('payload_too_deep')
  if (typeof item.workspaceId === 'string' && item.workspaceId !== context.workspaceId)
    return fault('workspace_mismatch')
  if (item.timestamp > context.now + LIMITS.eventFutureMs) {
    return fault('timestamp_too_new', timestampMessage('timestamp_too_new', item.timestamp))
  }
  const isImport = context.isImport === true
  if (isImport && item.timestamp < 0) {
    return fault('timestamp_too_old', timestampMessage('timestamp_too_old', item.timestamp, 'before 1970'))
  }
  const isTooOld = !isImport && item.timestamp < context.now - LIMITS.eventPastMs
  return toNewEvent(item, json, isTooOld)
}

function toNewEvent(item: EventInput, payload: PayloadJson, onlyIfStored: boolean): NewEvent {
  const data = item.payload ?? {}
  const promptUse = promptUseOf(item.eventType, data)
  const number = numberInRunOf(item.n)
  const outcome = outcomeOf(item.eventType, data)
  return {
    eventId: item.eventId,
    clientId: item.clientId,
    runId: item.runId,
    sessionId: item.sessionId ?? null,
    agentId: item.agentId ?? null,
    agentName: item.agentName,
    eventType: item.eventType,
    label: item.label,
    time: item.timestamp,
    payload,
    spanId: spanId(item.spanId) ?? spanId(data['spanId']),
    parentSpanId: spanId(item.parentSpanId) ?? spanId(data['parentSpanId']),
    schemaVersion: item.schemaVersion ?? null,
    outcome,
    usage: usageOf(item.eventType, data),
    latencyMs: latencyOf(item.eventType, data),
    promptUse,
    toolUse: toolUseOf(item.eventType, data),
    failure: eventFailure(item.eventType, item.label, data, outcome),
    said: saidIn(item.eventType, item.label, data),
    traits: traitsOf(item.eventType, data, promptUse),
    userId: userIdOf(data),
    callKey: callKeyOf(item.eventType, data),
    score: scoreOf(item.eventType, data),
    approval: approvalNoteOf(item.eventType, data),
    number,
    drops: dropsOf(number, item.dropped),
    onlyIfStored,
  }
}

/** An unusable or overlong span id never fails an event. */
function spanId(value: unknown): string | null {
  return typeof value === 'string' && isStorableText(value) && hasAtMost(value, LIMITS.textChars) ? value : null
}

function schemaFault(item: object): Fault {
  // Errors() is slow, so it is called only after a failed check.
  const errors = eventInput.Errors(item)
  const faults = schemaFaults(EventInput, errors).map(({ path, message }) => ({
    path,
    message: path === '/timestamp' && message !== 'is missing' ? TIMESTAMP_UNIT : message,
  }))
  return fault(FAULT_CODES.get(errors[0]?.keyword ?? '') ?? 'invalid_type', faultLine(faults))
}

const TIMESTAMP_UNIT = 'must be a whole number of milliseconds since 1970'

const FAULT_CODES = new Map<string, RejectionCode>([
  ['required', 'missing_field'],
  ['minLength', 'empty'],
  ['maxLength', 'too_long'],
])

/** Smaller numbers are probably seconds: as milliseconds, they would be before March 1973. */
const SECONDS_BELOW = 100_000_000_000
const DATE_MAX_MS = 8_640_000_000_000_000

function timestampMessage(
  code: 'timestamp_too_old' | 'timestamp_too_new',
  time: number,
  tooOld = 'more than 30 days in the past',
): string {
  if (Math.abs(time) > DATE_MAX_MS) return `timestamp ${time} is not a date: ${SEND_MS}`
  const statedTime = `timestamp is ${new Date(time).toISOString()}`
  if (code === 'timestamp_too_new') {
    return time > LIMITS.detectedAtMaxMs
      ? `${statedTime}: ${SEND_MS}`
      : `${statedTime}, more than 5 minutes in the future`
  }
  return time >= 0 && time < SECONDS_BELOW ? `${statedTime}: ${SEND_MS}, not seconds` : `${statedTime}, ${tooOld}`
}

const SEND_MS = 'send milliseconds since 1970'

const TEXTS = [
  'eventId',
  'clientId',
  'runId',
  'sessionId',
  'agentId',
  'agentName',
  'eventType',
  'label',
  'schemaVersion',
] as const

function fault(code: RejectionCode, message: string = REJECTIONS[code]): Fault {
  return { code, message }
}

/** Leaves out an overlong id. Its rejection has the index, and `rejectedEventIds` has every id once, complete. */
function shownId(eventId: string | null): string | null {
  return eventId !== null && hasAtMost(eventId, LIMITS.textChars) ? eventId : null
}

/** Length of the message of a stored rejection. */
const MESSAGE_CHARS = 500

function refusedRow(item: unknown, { code, message }: Fault, now: number): RejectionRow | null {
  if (!isObject(item)) return null
  const { runId, eventId, clientId, n, dropped } = item
  const fits = (value: unknown, chars: number): value is string =>
    typeof value === 'string' && value !== '' && value.length <= 2 * chars && isStorableText(value)
  if (!fits(runId, LIMITS.runIdChars) || !fits(eventId, LIMITS.eventIdChars)) return null
  const refused = { runId, eventId, code, message: shortenedText(message, MESSAGE_CHARS), rejectedAt: now }
  const number = numberInRunOf(n)
  return number !== null && fits(clientId, LIMITS.clientIdChars)
    ? { ...refused, numbered: { number, clientId, drops: dropsOf(number, dropped) } }
    : refused
}

/** The parts of a batch that its answer needs. */
type ToldBatch = Omit<ValidatedBatch, 'body' | 'events' | 'refused'> & { events: Pick<NewEvent, 'eventId' | 'time'>[] }

export function toldBatch({ ids, events, indexes, rejections, warnings }: ValidatedBatch): ToldBatch {
  return { ids, events: events.map(({ eventId, time }) => ({ eventId, time })), indexes, rejections, warnings }
}

/** `verdicts` is null when nothing could be stored. */
export function batchResult(batch: ToldBatch, verdicts: EventVerdict[] | null): BatchResult {
  const rejections = [...batch.rejections]
  const retryable = new Set(verdicts === null ? batch.events.map(({ eventId }) => eventId) : [])
  for (const [place, { eventId, time }] of batch.events.entries()) {
    const code = rejectionOf(verdicts?.[place])
    if (code === null) continue
    const message = code === 'timestamp_too_old' ? timestampMessage(code, time) : REJECTIONS[code]
    rejections.push({ index: batch.indexes[place] ?? 0, eventId, code, message })
  }
  rejections.sort((a, b) => a.index - b.index)
  // An id can occur several times in a batch, with several verdicts: retryable beats rejected, which beats accepted.
  const rejected = new Set<string>()
  for (const { index } of rejections) {
    const id = batch.ids[index] ?? null
    if (id !== null && !retryable.has(id)) rejected.add(id)
  }
  const areAccepted = retryable.size === 0 && rejections.length === 0
  const isAccepted = (id: string | null) => areAccepted || (id !== null && !retryable.has(id) && !rejected.has(id))
  const accepted = batch.ids.filter(isAccepted).length
  const warnings = batch.warnings.filter(({ eventId }) => isAccepted(eventId))
  return {
    success: accepted === batch.ids.length,
    accepted,
    retryableEventIds: [...retryable],
    rejectedEventIds: [...rejected],
    rejections,
    ...(warnings.length > 0 && { warnings }),
  }
}

function rejectionOf(verdict: EventVerdict | undefined): RejectionCode | null {
  if (verdict === 'absent') return 'timestamp_too_old'
  return verdict === 'unstorable' || verdict === 'erased' ? verdict : null
}
