/** When a running run counts as stalled, for everything that shows runs. Its process may have died. */
import type { RunStatus } from './run.ts'
import type { RunActivity } from '../engine/words.ts'

/** Without an event for this long, a running run is shown as stalled, unless the environment has a rule of its own. */
export const STALLED_MS = 15 * 60_000

export interface ShownRun {
  status: RunStatus
  startedAt: string
  endedAt: string | null
  lastEventAt: string
  /** As the server decided by the rule of the environment. */
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
