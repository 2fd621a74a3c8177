import type { ProblemKind } from '@tacho/contract/words.ts'
import type { NewEvent } from '../../events.ts'
import { isError } from '../../failure.ts'
import { ENVELOPE, envelopeTexts } from './envelopes.ts'
import { ownSession, type RunState } from './run-state.ts'

export interface PlacedEvent {
  run: RunState
  event: NewEvent
  receivedAt: number
  envelope: number
}

export type SoughtEvent = Pick<PlacedEvent, 'run' | 'event'>

export const EVENT_COLUMNS = {
  time: 'time',
  eventType: 'event_type',
  label: 'label',
  spanId: 'span_id',
  parentSpanId: 'parent_span_id',
  payload: 'payload',
} as const satisfies Partial<Record<keyof NewEvent, string>>

function eventValues({ time, eventType, label, spanId, parentSpanId, payload }: NewEvent) {
  return [time, eventType, label, spanId, parentSpanId, payload]
}

export const ROW_COLUMNS = [...Object.values(EVENT_COLUMNS), 'latency_us', 'problem', 'tokens', 'cost_nanos']

/** In the order of ROW_COLUMNS. */
export function rowValues(event: NewEvent) {
  const latencyMicros = event.latencyMs === null ? null : Math.round(event.latencyMs * 1_000)
  const { usage } = event
  // 0 is stored as null, which takes no room.
  const used = [usage?.totalTokens || null, usage?.costNanos || null]
  return [...eventValues(event), latencyMicros, problemOfEvent(event), ...used]
}

/** A failed outcome is a problem even if it does not say why. */
function problemOfEvent(event: NewEvent): ProblemKind | null {
  if (event.toolUse !== null) return event.toolUse.problem
  return event.outcome === 'FAILED' || isError(event) ? 'error' : null
}

/** A retry must equal the stored event `e` and its envelope `v` in these. `comparePacked` compares packed payloads. */
export const COMPARED = [
  ...Object.values(EVENT_COLUMNS).map((column) => `e.${column}`),
  'e.own_session',
  ...Object.values(ENVELOPE).map((column) => `v.${column}`),
]

/** In the order of COMPARED. */
export function comparedValues({ run, event }: SoughtEvent) {
  return [...eventValues(event), ownSession(run, event), ...envelopeTexts(event)]
}

export function isSameEvent(one: NewEvent, other: NewEvent): boolean {
  const content = (event: NewEvent) => [...eventValues(event), event.sessionId, ...envelopeTexts(event)]
  const values = content(other)
  return content(one).every((value, index) => value === values[index])
}
