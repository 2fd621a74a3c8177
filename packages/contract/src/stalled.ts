/** When a running run counts as stalled, for everything that shows runs. Its process may have died. */
import type { RunStatus } from './run.ts'

/** Without an event for this long, a running run is shown as stalled. */
export const STALLED_MS = 15 * 60_000

interface ShownRun {
  status: RunStatus
  startedAt: string
  endedAt: string | null
  lastEventAt: string
}

/** Milliseconds since its latest event if the run is stalled; null if it ended or had an event lately. */
export function stalledMs({ status, lastEventAt }: ShownRun, now: number): number | null {
  const silence = now - Date.parse(lastEventAt)
  return status === 'RUNNING' && silence > STALLED_MS ? silence : null
}

/** Milliseconds from its start to its end: until now while it runs, until its latest event if it is stalled. */
export function runLength(run: ShownRun, now: number): number {
  const end = run.endedAt ?? (stalledMs(run, now) === null ? now : run.lastEventAt)
  return Math.max(0, new Date(end).getTime() - Date.parse(run.startedAt))
}
