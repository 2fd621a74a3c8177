/** Calls of tools that started and never ended: their process may have died. Pure. */
import type { EventRow } from '../record/event.ts'
import { stalledMs, type ShownRun } from './stalled.ts'

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
