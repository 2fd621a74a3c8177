/**
 * Makes an event. It is masked, bounded and serialised when it is recorded, so later changes to the payload have no
 * effect.
 */
import type { RunScope, Span } from './context.ts'
import { LIMITS } from './limits.ts'
import type { Payload } from './payload.ts'
import type { Ids } from './uuid.ts'
import type { QueuedEvent } from './queue.ts'
import { byteLength, cutText, wellFormed } from './text.ts'

/** Event types of the interface. Any other text of at most 50 characters is also allowed. */
export type EventType =
  | 'USER_INPUT'
  | 'AGENT_STEP'
  | 'LLM_CALL'
  | 'TOOL_CALL'
  | 'POLICY_DECISION'
  | 'ERROR'
  | 'SESSION_OUTCOME'
  // Keeps the names above in editor completions.
  | (string & {})

export interface Draft {
  readonly type: EventType
  readonly label: string
  readonly payload?: Payload | undefined
  /** When it happened. Default: now. */
  readonly timestamp?: Date | number | undefined
  /** Default: a new id. A repeated id counts once. */
  readonly eventId?: string | undefined
  /** Default: the current span. */
  readonly span?: Span | undefined
  /** The recorder records nothing after it. An outcome always says so. */
  readonly isLast?: boolean
}

export interface EventParts {
  readonly scope: RunScope
  readonly span: Span
  readonly timestamp: number
  /** Masked and bounded. */
  readonly payloadJson: string
  readonly sequence: number
  /** By its recorder. 0: the service does not miss it. */
  readonly number: number
}

const OUTCOME = 'SESSION_OUTCOME'
export const PROTECTED_TYPES: ReadonlySet<string> = new Set([OUTCOME, 'POLICY_DECISION'])

export function makeEvent(
  { type, label, eventId, isLast = type === OUTCOME }: Draft,
  parts: EventParts,
  ids: Ids,
): QueuedEvent {
  const { scope, span, timestamp, payloadJson, sequence, number } = parts
  const { recorder } = scope
  const id = eventId ?? ids.uuid()
  const parent = span.parentSpanId === undefined ? '' : `,"parentSpanId":${JSON.stringify(span.parentSpanId)}`
  const n = number ? `,"n":"${recorder.id}${number.toString(36)}${isLast ? '.' : ''}"` : ''
  const json = `{"eventId":${JSON.stringify(id)},${scope.json},"eventType":${field(type, LIMITS.eventTypeChars)},"label":${field(
    label,
    LIMITS.labelChars,
  )},"timestamp":${timestamp},"spanId":${JSON.stringify(span.spanId)}${parent}${n},"payload":${payloadJson}}`
  return {
    id,
    json,
    bytes: byteLength(json),
    isProtected: PROTECTED_TYPES.has(type),
    sequence,
    attempts: 0,
    recorder: number ? recorder : undefined,
  }
}

/** The fields that all events of a run share. */
export function scopeJson(fields: {
  clientId: string
  runId: string
  sessionId: string | undefined
  agentId: string | undefined
  agentName: string
  schemaVersion: string | undefined
}): string {
  const parts = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [`"${name}":${field(value, name === 'runId' ? LIMITS.runIdChars : LIMITS.textChars)}`],
  )
  return parts.join(',')
}

function field(text: string, maxChars: number): string {
  return JSON.stringify(wellFormed(cutText(text, maxChars)))
}
