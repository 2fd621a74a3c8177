import type { ProblemKind } from '@tacho/contract/engine/words.ts'
import { countedText, type NewEvent, payloadText, readSaid, saidText } from '../../record/events.ts'
import { columnOf } from '../../data/exports.ts'
import { isError, failureText, readFailure } from '../../record/failure.ts'
import { ENVELOPE, envelopeTexts } from './envelopes.ts'
import { ownSession, type RunState, UNCHANGED } from './run-state.ts'
import { readRecorders, recordersText } from '../../record/completeness.ts'
import { readUncosted, uncostedText } from '../../runs/usage.ts'
import type { Columns } from '../engine/rows.ts'
import { shortText, textKey } from '../engine/keys.ts'
import { USAGE_SUMS } from '../runs/rollup.ts'

export interface PlacedEvent {
  run: RunState
  event: NewEvent
  receivedAt: number
  envelope: number
}

export type SoughtEvent = Pick<PlacedEvent, 'run' | 'event'>

const SENT = ['time', 'eventType', 'label', 'spanId', 'parentSpanId', 'payload'] as const
export const EVENT_COLUMNS = SENT.map(columnOf)
/** Values in the order of SENT. */
const sentValues = ({ time, eventType, label, spanId, parentSpanId, payload }: NewEvent) => {
  return [time, eventType, label, spanId, parentSpanId, payload]
}
const sentTexts = (event: NewEvent) =>
  sentValues({ ...event, payload: payloadText(event.payload) }) as (string | number | null)[]

export const ROW_COLUMNS = [...EVENT_COLUMNS, 'latency_us', 'problem', 'tokens', 'cost_nanos', 'counted']

/** Values in the order of ROW_COLUMNS. */
export function rowValues(event: NewEvent) {
  const { time, eventType, label, spanId, parentSpanId, payload, latencyMs, usage } = event
  const latencyMicros = latencyMs === null ? null : Math.round(latencyMs * 1_000)
  // 0 is stored as null, which takes no room.
  return [
    time,
    eventType,
    label,
    spanId,
    parentSpanId,
    payload,
    latencyMicros,
    problemOfEvent(event),
    usage?.totalTokens || null,
    usage?.costNanos || null,
    countedText(event),
  ]
}

/** A failed outcome is a problem even without a reason. */
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

/** Values in the order of COMPARED. */
export function comparedValues({ run, event }: SoughtEvent) {
  return [...sentTexts(event), ownSession(run, event), ...envelopeTexts(event)]
}

export function isSameEvent(one: NewEvent, other: NewEvent): boolean {
  const content = (event: NewEvent) => [...sentTexts(event), event.sessionId, ...envelopeTexts(event)]
  const values = content(other)
  return content(one).every((value, index) => value === values[index])
}

/** `counted`: changes with every event, and no index has it. `moved`: changes seldom, or an index has it. */
type Change = 'never' | 'counted' | 'moved'
type Described = readonly [name: string, column: string, type: Columns[string], change: Change]

export const RUN_COLUMNS = [
  ['id', 'id', 'uuid', 'never'],
  ['number', 'number', 'bigint', 'never'],
  ['runId', 'run_id', 'text', 'never'],
  ['agentId', 'agent_id', 'uuid', 'never'],
  ['receivedAt', 'received_at', 'bigint', 'never'],
  ['lastEventAt', 'last_event_at', 'bigint', 'counted'],
  ['eventCount', 'event_count', 'bigint', 'counted'],
  ['differingRetries', 'differing_retries', 'bigint', 'counted'],
  ['errorCount', 'error_count', 'bigint', 'counted'],
  ['traits', 'traits', 'text', 'counted'],
  ['recentCalls', 'recent_calls', 'text', 'counted'],
  ['recorders', 'recorders', 'text', 'counted'],
  ['uncosted', 'uncosted', 'text', 'counted'],
  ['failure', 'failure', 'text', 'counted'],
  ['failureMessage', 'failure_message', 'text', 'counted'],
  ['said', 'said', 'text', 'counted'],
  ...USAGE_SUMS.map((name) => [name, columnOf(name), 'bigint', 'counted'] as const),
  ['status', 'status', 'text', 'moved'],
  ['startedAt', 'started_at', 'bigint', 'moved'],
  ['endedAt', 'ended_at', 'bigint', 'moved'],
  ['closingSeq', 'closing_seq', 'bigint', 'moved'],
  ['ruleClosedAt', 'rule_closed_at', 'bigint', 'moved'],
  ['userId', 'user_id', 'text', 'moved'],
  ['userKey', 'user_key', 'text', 'moved'],
  ['hasGaps', 'has_gaps', 'integer', 'moved'],
  ['packed', 'packed', 'integer', 'moved'],
] as const satisfies readonly Described[]

export const STORED_RUN = `${RUN_COLUMNS.map(([name, column]) => `${column} AS "${name}"`).join(', ')}, session_id AS session`

type Texts = 'uncosted' | 'recorders' | 'failure' | 'said'
export type StoredRun = Omit<RunState, Texts | 'lastSeq' | keyof typeof UNCHANGED> &
  Record<Texts | 'failureMessage', string | null>

export function stateOf({ failureMessage, ...stored }: StoredRun, lastSeq: number): RunState {
  return {
    ...stored,
    recorders: readRecorders(stored.recorders),
    uncosted: readUncosted(stored.uncosted),
    failure: readFailure(stored.failure, failureMessage),
    said: readSaid(stored.said),
    session: stored.session === null ? null : shortText(stored.session),
    lastSeq,
    ...UNCHANGED,
  }
}

export function columnValues(run: RunState) {
  return {
    ...run,
    recorders: recordersText(run.recorders),
    uncosted: uncostedText(run.uncosted),
    failure: failureText(run.failure),
    failureMessage: run.failure?.message ?? null,
    said: saidText(run.said),
    sessionKey: run.namedSession === null ? null : textKey(run.namedSession),
  }
}
