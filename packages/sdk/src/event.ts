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
}

export interface EventParts {
  readonly scope: RunScope
  readonly span: Span
  readonly timestamp: number
  /** Masked and bounded. */
  readonly payloadJson: string
  readonly sequence: number
}

export const PROTECTED_TYPES: ReadonlySet<string> = new Set(['SESSION_OUTCOME', 'POLICY_DECISION'])

export function makeEvent({ type, label, eventId }: Draft, parts: EventParts, ids: Ids): QueuedEvent {
  const { scope, span, timestamp, payloadJson, sequence } = parts
  const id = eventId ?? ids.uuid()
  const parent = span.parentSpanId === undefined ? '' : `,"parentSpanId":${JSON.stringify(span.parentSpanId)}`
  const json = `{"eventId":${JSON.stringify(id)},${scope.json},"eventType":${field(type, LIMITS.eventTypeChars)},"label":${field(
    label,
    LIMITS.labelChars,
  )},"timestamp":${timestamp},"spanId":${JSON.stringify(span.spanId)}${parent},"payload":${payloadJson}}`
  return { id, json, bytes: byteLength(json), isProtected: PROTECTED_TYPES.has(type), sequence, attempts: 0 }
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
