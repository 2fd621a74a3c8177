/** When a running run counts as stalled, and which of its calls never ended: its process may have died. */
import type { RunStatus } from './run.ts'
import type { RunActivity } from '../engine/words.ts'
import type { EventRow } from '../record/event.ts'

/** When a running run counts as stalled, for everything that shows runs. Its process may have died. */

/** A running run without an event for this long is shown as stalled, unless the environment has a rule of its own. */
export const STALLED_MS = 15 * 60_000

export interface ShownRun {
  status: RunStatus
  startedAt: string
  endedAt: string | null
  lastEventAt: string
  /** Activity that the server decided by the rule of the environment. */
  activity?: RunActivity
}

/** Milliseconds since its latest event if the run is stalled; null if it ended or had an event lately. */
export function stalledMs({ status, lastEventAt, activity }: ShownRun, now: number): number | null {
  const silence = now - Date.parse(lastEventAt)
  const isStalled = activity === undefined ? silence > STALLED_MS : activity === 'STALLED'
  return status === 'RUNNING' && isStalled ? silence : null
}

/** Milliseconds from its start to its end: until now while it runs, until its latest event if it is stalled. */
export function runLength(run: ShownRun, now: number): number {
  const end = run.endedAt ?? (stalledMs(run, now) === null ? now : run.lastEventAt)
  return Math.max(0, new Date(end).getTime() - Date.parse(run.startedAt))
}

/** Calls of tools that started and never ended: their process may have died. Pure. */

/** Always the same, so that a page draws its steps only once. */
const NONE: ReadonlySet<string> = new Set()

type Row = Pick<EventRow, 'eventId' | 'eventType' | 'spanId'>

/**
 * The ids of TOOL_START events without a TOOL_CALL in their span. None while the run has events: a tool may still run.
 * @param rows at least all TOOL_START and TOOL_CALL events of the run.
 */
export function neverEnded(rows: readonly Row[], run: ShownRun, now: number): ReadonlySet<string> {
  if (run.status === 'RUNNING' && stalledMs(run, now) === null) return NONE
  const ended = new Set(rows.flatMap(({ eventType, spanId }) => (eventType === 'TOOL_CALL' ? [spanId] : [])))
  const starts = rows.filter(({ eventType, spanId }) => eventType === 'TOOL_START' && spanId !== null)
  return new Set(starts.flatMap(({ eventId, spanId }) => (ended.has(spanId) ? [] : [eventId])))
}
