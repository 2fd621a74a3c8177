/**
 * Decides when a running run counts as stalled, and which of its calls never ended, because its process may have died.
 */
import type { RunStatus } from './run.ts'
import type { RunActivity } from '../engine/words.ts'
import type { EventRow } from '../record/event.ts'

/** A run without an event for this long is shown as stalled, unless the environment has its own rule. */
export const STALLED_MS = 15 * 60_000

export interface ShownRun {
  status: RunStatus
  startedAt: string
  endedAt: string | null
  lastEventAt: string
  /** The activity by the environment's rule, if the server has decided it. */
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

/** One constant set, so that a page does not draw its steps again. */
const NONE: ReadonlySet<string> = new Set()

type Row = Pick<EventRow, 'eventId' | 'eventType' | 'spanId'>

/**
 * The ids of TOOL_START events without a TOOL_CALL in their span. Empty while the run has new events, because a tool
 * may still run.
 * @param rows at least all TOOL_START and TOOL_CALL events of the run.
 */
export function neverEnded(rows: readonly Row[], run: ShownRun, now: number): ReadonlySet<string> {
  if (run.status === 'RUNNING' && stalledMs(run, now) === null) return NONE
  const ended = new Set(rows.flatMap(({ eventType, spanId }) => (eventType === 'TOOL_CALL' ? [spanId] : [])))
  const starts = rows.filter(({ eventType, spanId }) => eventType === 'TOOL_START' && spanId !== null)
  return new Set(starts.flatMap(({ eventId, spanId }) => (ended.has(spanId) ? [] : [eventId])))
}
