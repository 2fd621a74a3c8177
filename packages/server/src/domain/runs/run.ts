import type { Run } from '@tacho/contract/runs/run.ts'
import type { EventRow } from '@tacho/contract/record/event.ts'
import type { EstimateFields } from '@tacho/contract/runs/usage.ts'
import type { OperatorRun, RunFailure, RunScore, RunProblem } from '@tacho/contract/runs/operator-run.ts'
import type { RunActivity } from '@tacho/contract/engine/words.ts'
import { problemOf } from '@tacho/contract/runs/problem.ts'
import { textAt } from '@tacho/contract/record/payload-reader.ts'
import { type EventRowRead, type StoredEvent, type ProblemEvent, readSaid } from '../../storage/record/events.ts'
import { type RunRow, readMetadata, readTraits } from '../../storage/runs/runs.ts'
import type { HiddenScoreRow, RunScoreRow } from '../../storage/runs/scores.ts'
import { failurePlace, readFailure } from '../../storage/record/failure.ts'
import { readUncosted } from '../../storage/runs/usage.ts'
import { isoTime } from '../../storage/engine/times.ts'
import { toCompleteness } from '../record/completeness.ts'
import type { Estimator } from './estimate.ts'
import { isoOf, pick } from '../web/shown.ts'
import { NANOS, toUsage } from '../record/usage.ts'
import { uuidv5 } from '../../storage/engine/uuid.ts'

/** In the interface, only an outcome ends a run. */
export function toRun(row: RunRow): Run {
  return {
    id: row.id,
    runId: row.runId,
    ...(row.ruleClosedAt === null ? statusOf(row) : { status: 'RUNNING', endedAt: null }),
    startedAt: isoTime(row.startedAt),
    agent: { id: row.agentId, name: row.agentName },
    usage: toUsage(row),
  }
}

function statusOf({ status, endedAt }: RunRow): Pick<Run, 'status' | 'endedAt'> {
  return { status, endedAt: isoTime(endedAt) }
}

export function toOperatorRun(
  row: RunRow,
  estimator: Pick<Estimator, 'ofCalls'>,
  scores: readonly RunScoreRow[] = [],
  activity?: RunActivity,
  hidden: readonly HiddenScoreRow[] = [],
): OperatorRun {
  const lineTexts = readSaid(row.said)
  const traits = readTraits(row.traits)
  const { tool: tools, model: models, policy: policyIds, prompt: promptVersionIds, tag: tags, loop: loops } = traits
  return {
    ...toRun(row),
    ...statusOf(row),
    agent: { id: row.agentId, name: row.agentDisplayName ?? row.agentName },
    agentId: row.agentExternalId,
    ...estimator.ofCalls(readUncosted(row.uncosted), row.startedAt),
    ...pick(row, 'sessionId', 'userId', 'eventCount', 'differingRetries', 'errorCount', 'payloadsRemoved'),
    ...isoOf(row, 'lastEventAt', 'receivedAt', 'pinnedAt'),
    closedByRuleAt: isoTime(row.ruleClosedAt),
    completeness: toCompleteness(row),
    failure: toRunFailure(row),
    title: lineTexts?.title.text ?? null,
    answer: lineTexts?.answer?.text ?? null,
    tools,
    models,
    policyIds,
    promptVersionIds,
    tags,
    metadata: readMetadata(traits),
    loops,
    ...(activity && { activity }),
    scores: scores.map((score) => toRunScore(score, hidden)),
  }
}

function toRunScore(
  { name, kind, number, category, count, scoredAt }: RunScoreRow,
  all: readonly HiddenScoreRow[],
): RunScore {
  const hidden = all.reduce((sum, row) => sum + (row.name === name ? row.count : 0), 0)
  const of = { name, kind, count, scoredAt: isoTime(scoredAt) }
  return hidden > 0 ? { ...of, mean: null, category: null, hidden } : { ...of, mean: number, category }
}

/** An earlier failure is not the reason for a cancellation. */
export function toRunFailure({ status, failure, failureMessage }: RunRow): RunFailure | null {
  const known = readFailure(failure, failureMessage)
  if (known === null || (status === 'CANCELLED' && !known.isFinal)) return null
  const { errorClass, message, eventId } = known
  const { kind: place, name } = failurePlace(known)
  return { errorClass, message, place, name, eventId }
}

export function toEventRow(run: RunRow, row: EventRowRead): EventRow {
  const latency = row.latencyMicros === null ? null : row.latencyMicros / 1_000
  const cost = row.costNanos === null ? null : row.costNanos / NANOS
  return { ...eventFields(run, row), latency, tokens: row.tokens, cost, payloadBytes: row.payloadBytes }
}

/** Splices in the payload's text, because encoding it again would change it. */
export function eventJson(run: RunRow, row: StoredEvent, estimate?: EstimateFields, times = EACH): string {
  const lost = row.payloadBytes === 0 ? ',"payloadRemoved":true' : row.payloadDamaged ? ',"payloadDamaged":true' : ''
  const fields = JSON.stringify({ ...eventFields(run, row, times), ...estimate }).slice(0, -1)
  return `${fields}${lost},"payload":${row.payload}}`
}

export function eventPageJson(run: RunRow, rows: StoredEvent[], nextCursor: string | null): string {
  return `{"items":${eventsJson(run, rows)},"nextCursor":${JSON.stringify(nextCursor)}}`
}

export function runDetailJson(run: RunRow, rows: StoredEvent[], nextCursor: string | null): string {
  const head = JSON.stringify(toRun(run)).slice(0, -1)
  const tail = `"hasMoreEvents":${nextCursor !== null},"nextCursor":${JSON.stringify(nextCursor)}`
  return `${head},"events":${eventsJson(run, rows)},${tail}}`
}

type TimeText = (milliseconds: number) => string
const EACH: { sent: TimeText; received: TimeText } = { sent: isoTime, received: isoTime }

/** Formats times. Reuses the common prefix of times that are close together. */
function isoTimes(): TimeText {
  let second = Number.NaN
  let text = ''
  return (milliseconds) => {
    const of = Math.floor(milliseconds / 1000)
    if (of !== second) {
      second = of
      text = isoTime(of * 1000).slice(0, -'000Z'.length)
    }
    return `${text}${String(milliseconds - of * 1000).padStart(3, '0')}Z`
  }
}

function eventsJson(run: RunRow, rows: StoredEvent[]): string {
  const times = { sent: isoTimes(), received: isoTimes() }
  return `[${rows.map((row) => eventJson(run, row, undefined, times)).join(',')}]`
}

type EventFields = Omit<EventRow, 'latency' | 'tokens' | 'cost' | 'payloadBytes'>

function eventFields(run: RunRow, row: EventRowRead, times = EACH): EventFields {
  return {
    id: uuidv5(run.id, row.eventId),
    eventId: row.eventId,
    runId: run.runId,
    sessionId: row.sessionId,
    agentId: row.agentId,
    agentName: row.agentName,
    clientId: row.clientId,
    eventType: row.eventType,
    label: row.label,
    timestamp: times.sent(row.time),
    receivedAt: times.received(row.receivedAt),
    spanId: row.spanId,
    parentSpanId: row.parentSpanId,
    schemaVersion: row.schemaVersion,
  }
}

/** A removed payload no longer has the reason. */
export function toRunProblem({ eventId, eventType, label, time, payload, problem }: ProblemEvent): RunProblem {
  const parsedPayload = JSON.parse(payload) as Record<string, unknown>
  const eventProblem = problemOf({ eventType, label, payload: parsedPayload })
  return {
    eventId,
    eventType,
    timestamp: isoTime(time),
    kind: problem,
    name: eventProblem?.name ?? label,
    why: eventProblem?.why ?? '',
    outcome: eventProblem?.outcome ?? null,
    approvalId: eventType === 'POLICY_DECISION' ? textAt(parsedPayload, 'approvalId') : null,
  }
}
