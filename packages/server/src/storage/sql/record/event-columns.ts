import type { ProblemKind } from '@tacho/contract/engine/words.ts'
import type { NewEvent } from '../../record/events.ts'
import { columnOf } from '../../data/exported-tables.ts'
import { isError } from '../../record/failure.ts'
import { ENVELOPE, envelopeTexts } from './envelopes.ts'
import { ownSession, type RunState } from './run-state.ts'

export interface PlacedEvent {
  run: RunState
  event: NewEvent
  receivedAt: number
  envelope: number
}

export type SoughtEvent = Pick<PlacedEvent, 'run' | 'event'>

const SENT = ['time', 'eventType', 'label', 'spanId', 'parentSpanId', 'payload'] as const
export const EVENT_COLUMNS = SENT.map(columnOf)
const sentValues = (event: NewEvent) => SENT.map((name) => event[name])

export const ROW_COLUMNS = [...EVENT_COLUMNS, 'latency_us', 'problem', 'tokens', 'cost_nanos']

/** In the order of ROW_COLUMNS. */
export function rowValues(event: NewEvent) {
  const latencyMicros = event.latencyMs === null ? null : Math.round(event.latencyMs * 1_000)
  const { usage } = event
  // 0 is stored as null, which takes no room.
  const used = [usage?.totalTokens || null, usage?.costNanos || null]
  return [...sentValues(event), latencyMicros, problemOfEvent(event), ...used]
}

/** A failed outcome is a problem even if it does not say why. */
function problemOfEvent(event: NewEvent): ProblemKind | null {
  if (event.toolUse !== null) return event.toolUse.problem
  return event.outcome === 'FAILED' || isError(event) ? 'error' : null
}

/** A retry must equal the stored event `e` and its envelope `v` in these. `comparePacked` compares packed payloads. */
export const COMPARED = [
  ...EVENT_COLUMNS.map((column) => `e.${column}`),
  'e.own_session',
  ...ENVELOPE.map((name) => `v.${columnOf(name)}`),
]

/** In the order of COMPARED. */
export function comparedValues({ run, event }: SoughtEvent) {
  return [...sentValues(event), ownSession(run, event), ...envelopeTexts(event)]
}

export function isSameEvent(one: NewEvent, other: NewEvent): boolean {
  const content = (event: NewEvent) => [...sentValues(event), event.sessionId, ...envelopeTexts(event)]
  const values = content(other)
  return content(one).every((value, index) => value === values[index])
}
