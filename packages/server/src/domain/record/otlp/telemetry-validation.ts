import { hash } from 'node:crypto'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { validateItems, type ValidationContext, type ValidatedBatch } from '../event.ts'
import { logEvents } from './log-event.ts'
import { readLogs, readSpans, type Encoding, type Read, type Sent } from './read-request.ts'
import { markSameCalls } from './same-call.ts'
import { spanEvents, type OtlpEvent } from './span-event.ts'
import { Unreadable, isObject, type Json, type JsonObject } from './attributes.ts'

export type Signal = 'traces' | 'logs'

export interface TelemetryFormat {
  signal: Signal
  encoding: Encoding
}

/** `itemOf[i]` is the position of the span or record that became event `i`. */
export interface ValidatedTelemetry {
  ok: true
  batch: ValidatedBatch
  itemOf: number[]
  /** True: the first events name the agent, so they must be stored before the others. */
  namesAgent: boolean
  unreadable: Unreadable[]
  /** Runs with a step whose parent is not in this request, and may never arrive. */
  openTraces: string[]
}

export type TelemetryValidation =
  | ValidatedTelemetry
  | { ok: false; code: 'invalid_request' | 'body_too_large'; detail: string }

export function validateTelemetry(
  { signal, encoding, maxPayloadBytes = LIMITS.otlpPayloadBytes }: TelemetryFormat & { maxPayloadBytes?: number },
  body: Uint8Array,
  context: ValidationContext,
): TelemetryValidation {
  const read =
    signal === 'traces'
      ? eventsOf(readSpans(body, encoding), spanEvents)
      : eventsOf(readLogs(body, encoding), logEvents)
  if (read === 'malformed') {
    return { ok: false, code: 'invalid_request', detail: `The body is not an OTLP ${signal} request in ${encoding}` }
  }
  if (read === 'other_shape') {
    const member = signal === 'traces' ? 'resourceSpans' : 'resourceLogs'
    return { ok: false, code: 'invalid_request', detail: `The body has no ${member}` }
  }
  if (read === 'too_many')
    return tooLarge(`at most ${LIMITS.otlpItems} spans or log records, and ${LIMITS.otlpValues} values`)
  const made = inStoredOrder(
    read.flatMap((ofItem, item) => (ofItem instanceof Unreadable ? [] : ofItem.map((event) => ({ event, item })))),
  )
  const events = made.map(({ event }) => event)
  markSameCalls(events)
  const itemOf = made.map(({ item }) => item)
  let payloadBytes = 0
  const batch = validateItems(
    events,
    (index) => {
      // A payload beyond the bound is not stored.
      const payload = payloadBytes > maxPayloadBytes ? {} : (events[index]?.payload ?? {})
      const json = shortenedJson(payload, LIMITS.payloadBytes)
      payloadBytes += json.length
      // Always 1 level, because JSON texts and lists are no deeper than a payload may be.
      return { json, levels: 1 }
    },
    context,
  )
  if (payloadBytes > maxPayloadBytes) {
    return tooLarge(`spans or log records that are at most ${maxPayloadBytes} bytes as events`)
  }
  // Plain objects, because classes do not survive the way between threads.
  const unreadable = read
    .filter((ofItem) => ofItem instanceof Unreadable)
    .map(({ runId, id, name, reason }) => ({ runId, id, name, reason }))
  for (const { runId, id, reason } of unreadable) {
    // Stored as a rejection of that run id, so that `tacho doctor` finds it.
    if (runId !== '' && id !== '') {
      batch.refused.push({ runId, eventId: id, code: 'unreadable', message: reason, rejectedAt: context.now })
    }
  }
  const openTraces = openTracesOf(events)
  return { ok: true, batch, itemOf, namesAgent: events[0]?.namesAgent === true, unreadable, openTraces }
}

/**
 * Runs in which a trace has not ended. Traces that end with this request have an outcome in it. Beyond the bound, the
 * stalled rule ends them.
 */
function openTracesOf(events: readonly OtlpEvent[]): string[] {
  const spans = new Set(events.map(({ spanId }) => spanId))
  const ended = new Set(events.filter(({ eventType }) => eventType === 'SESSION_OUTCOME').map(({ runId }) => runId))
  const open = events.filter(
    ({ runId, eventType, spanId, parentSpanId }) =>
      eventType === 'AGENT_STEP' &&
      spanId !== undefined &&
      parentSpanId !== undefined &&
      !spans.has(parentSpanId) &&
      !ended.has(runId),
  )
  return [...new Set(open.map(({ runId }) => runId))].slice(0, OPEN_TRACES_MAX)
}

const OPEN_TRACES_MAX = 200

/**
 * A run belongs to the agent of its first stored event. The span that names the agent ends last, so it is moved to the
 * front.
 */
function inStoredOrder<Made extends { event: OtlpEvent }>(made: Made[]): Made[] {
  const [named, others] = [true, false].map((names) => made.filter(({ event }) => event.namesAgent === names))
  return [...(named ?? []).sort((a, b) => a.event.timestamp - b.event.timestamp), ...(others ?? [])]
}

function eventsOf<Item>(read: Read<Item>, make: (sent: Sent<Item>) => OtlpEvent[] | Unreadable) {
  return typeof read === 'string' ? read : read.map(make)
}

function tooLarge(most: string): TelemetryValidation {
  return { ok: false, code: 'body_too_large', detail: `The request must have ${most}; send smaller requests` }
}

/**
 * Lengths that are tried in turn before whole members are cut. Few, because each costs a walk. The first leaves one
 * long text almost whole.
 */
const TEXT_CHARS = [200_000, 65_536, 16_384, 1_024, 256]

function shortenedJson(payload: JsonObject, maxBytes: number): string {
  const whole = JSON.stringify(payload)
  const originalBytes = Buffer.byteLength(whole)
  if (originalBytes <= maxBytes) return whole
  const mark = { tachoShortened: { originalBytes } }
  let shorter = payload
  for (const chars of TEXT_CHARS) {
    shorter = cutTexts(payload, chars) as JsonObject
    const text = JSON.stringify({ ...shorter, ...mark })
    if (Buffer.byteLength(text) <= maxBytes) return text
  }
  return JSON.stringify({ ...withoutLastMembers(shorter, maxBytes - Buffer.byteLength(JSON.stringify(mark))), ...mark })
}

function withoutLastMembers(payload: JsonObject, maxBytes: number): JsonObject {
  const members = Object.entries(payload)
  let room = maxBytes - members.length * MEMBER_MARK_BYTES
  return Object.fromEntries(
    members.map(([name, value]): [string, Json] => {
      const bytes = Buffer.byteLength(JSON.stringify(value))
      if (bytes <= room) {
        room -= bytes
        return [name, value]
      }
      const size = Array.isArray(value) ? value.length : isObject(value) ? Object.keys(value).length : 1
      return [name, `[cut: ${size} values]`]
    }),
  )
}

/** Bytes reserved for a member's name, which the mapping chooses, and for the mark that replaces its value. */
const MEMBER_MARK_BYTES = 64

function cutTexts(value: Json, chars: number): Json {
  if (typeof value === 'string') return cutText(value, chars)
  if (Array.isArray(value)) return value.map((item) => cutTexts(item, chars))
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, cutTexts(member, chars)]))
}

/** A data URL, or the base64 of a PNG, JPEG, GIF, WebP, WAV, PDF or MP3 file. */
const FILE =
  /^(?:data:([\w.+-]+\/[\w.+-]+)(?:;[\w=.+-]+)*;base64,|(?=iVBORw0KGgo|\/9j\/|R0lGOD|UklGR|JVBERi0|SUQz))([\w+/-]+={0,2})$/

/**
 * Keeps the beginning and the end, where a log has its error. Half of a file is useless, so a file becomes its type,
 * size and hash.
 */
function cutText(text: string, chars: number): string {
  if (text.length <= chars) return text
  const file = FILE.exec(text)
  if (file) {
    const bytes = Buffer.from(file[2] ?? '', 'base64')
    return `[${file[1] ?? 'base64'}, ${bytes.length} bytes, sha256 ${hash('sha256', bytes)}]`
  }
  const head = Math.ceil((chars * 2) / 3)
  const [start, end] = [text.slice(0, head), text.slice(text.length - (chars - head))]
  return `${start.toWellFormed()}… [cut: ${text.length - chars} characters]${end.toWellFormed()}`
}
