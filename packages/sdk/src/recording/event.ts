/**
 * The payload is captured when it is recorded, so later changes have no effect. It is masked, bounded and serialised
 * later, because the record call must not wait for that.
 */
import type { RunScope, Span } from './context.ts'
import type { Diagnostics } from '../delivery/diagnostics.ts'
import { LIMITS } from '../limits.ts'
import type { Ids } from './uuid.ts'
import { QueuedItem, type Written } from '../delivery/queue.ts'
import { cutText, wellFormed } from './text.ts'

export type Payload = Readonly<Record<string, unknown>>

/** @internal */
export interface Captured {
  /** About the size of its JSON text. */
  readonly bytes: number
  /** Masked and bounded JSON text, in pieces. `maxBytes`: default and most 256 KiB. Never throws. */
  write(maxBytes?: number): readonly string[]
}

/** Event types of the interface. Any other text of at most 50 characters is also allowed. */
export type EventType =
  | 'USER_INPUT'
  | 'AGENT_STEP'
  | 'LLM_CALL'
  | 'TOOL_CALL'
  | 'TOOL_START'
  | 'POLICY_DECISION'
  | 'APPROVAL_WITHDRAWN'
  | 'HANDOFF'
  | 'WAITING'
  | 'ERROR'
  | 'SESSION_OUTCOME'
  | 'SCORE'
  // Keeps the names above in editor completions.
  | (string & {})

/** A number from -1,000,000,000 to 1,000,000,000, yes or no, or a category of 1 to 64 characters. */
export type ScoreValue = number | boolean | string

export interface ScoreDetails {
  /** The reason for the score. */
  comment?: string | undefined
  /** The step that is judged, by the id that its record call returned. Default: the whole run. */
  eventId?: string | undefined
  /** The judge: a user or a program, in at most 120 characters. Each has a score of their own; the latest counts. */
  author?: string | undefined
  /** An id of your own for this judgement: recorded twice, it counts once. At most 160 characters. */
  id?: string | undefined
}

/** An event of any type. The type is cut to 50 characters, the label to 255. */
export interface NewEvent {
  readonly type: EventType
  /** A short text for lists. */
  readonly label: string
  readonly payload?: Payload | undefined
  /** When it happened. Default: now. */
  readonly at?: Date | number | undefined
  /** An id of your own, at most 160 characters, or the service rejects it: an event that is recorded twice counts once. */
  readonly eventId?: string | undefined
  /** The start and the end of one call have the same, also if two processes record them. Default: the current span. */
  readonly spanId?: string | undefined
}

/** @internal Keeps the members that a host may set, and reports others. */
export function draftOf({ report }: Pick<Diagnostics, 'report'>, event: NewEvent): Draft {
  const { type, label, payload, at, eventId, spanId, ...others } = event
  const faults = Object.keys(others).map((name) => `an unknown member ${cutText(name, 40)}`)
  if (!type) faults.push('no type')
  if (label === undefined) faults.push('no label')
  if (faults.length > 0) report('warning', 'invalid_event', `An event has ${faults.join(', ')}.`)
  return { type, label, payload, at, eventId, spanId }
}

/** @internal */
export interface Draft extends NewEvent {
  /** Default: the current span. */
  readonly span?: Span | undefined
  /** The recorder records nothing after this event. Default: true for an outcome. */
  readonly isLast?: boolean
}

/** @internal */
export interface EventParts {
  readonly scope: RunScope
  readonly span: Span
  readonly timestamp: number
  readonly payload: Captured
  readonly sequence: number
  /** Number of the event in its recorder. 0: none, so the service cannot notice its loss. */
  readonly number: number
  readonly labelOf: (label: string) => string
}

/** About as much as the fields around a payload take. */
const FIELDS_BYTES = 400

const OUTCOME = 'SESSION_OUTCOME'
/** @internal */
export const PROTECTED_TYPES: ReadonlySet<string> = new Set([OUTCOME, 'POLICY_DECISION', 'APPROVAL_WITHDRAWN', 'SCORE'])

/** @internal */
export function makeEvent(
  { type, label, eventId, isLast = type === OUTCOME }: Draft,
  parts: EventParts,
  ids: Ids,
): QueuedItem {
  const { scope, span, timestamp, payload, sequence, number, labelOf } = parts
  const { recorder } = scope
  const id = eventId ?? ids.uuid()
  const write = (): Written => {
    const parent = span.parentSpanId === undefined ? '' : `,"parentSpanId":${JSON.stringify(span.parentSpanId)}`
    const n = number ? `,"n":"${recorder.id}${number.toString(36)}${isLast ? '.' : ''}"` : ''
    const fields = `{"eventId":${JSON.stringify(id)},${scope.json},"eventType":${field(type, LIMITS.eventTypeChars)},"label":${field(
      labelOf(label),
      LIMITS.labelChars,
    )},"timestamp":${timestamp},"spanId":${JSON.stringify(span.spanId)}${parent}${n},"payload":`
    return [fields, ...payload.write()]
  }
  const identity = { id, isProtected: PROTECTED_TYPES.has(type), sequence, recorder: number ? recorder : undefined }
  return new QueuedItem(identity, write, payload.bytes + FIELDS_BYTES)
}

function field(text: string, maxChars: number): string {
  return JSON.stringify(wellFormed(cutText(text, maxChars)))
}
