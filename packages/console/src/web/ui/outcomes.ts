/** Outcomes of runs in charts: one order, one colour each. run-status.tsx has the colours of chips. */
import type { RunStatus } from '@tacho/contract/runs/run.ts'

/** From the bottom up: failed runs stand on the line, where their heights can be compared. */
export const STACKED = ['FAILED', 'CANCELLED', 'COMPLETED', 'RUNNING'] as const satisfies readonly RunStatus[]

export const OUTCOME_COLOURS = {
  RUNNING: 'accent',
  COMPLETED: 'green',
  FAILED: 'red',
  CANCELLED: 'soft',
} as const satisfies Record<RunStatus, string>

/** Runs by status. */
export type Outcomes = Record<RunStatus, number>

interface Counts {
  runs: number
  completed: number
  failed: number
  cancelled: number
}

export function outcomesOf(points: readonly Counts[]): Outcomes {
  const sum: Outcomes = { RUNNING: 0, COMPLETED: 0, FAILED: 0, CANCELLED: 0 }
  for (const { runs, completed, failed, cancelled } of points) {
    sum.RUNNING += runs - completed - failed - cancelled
    sum.COMPLETED += completed
    sum.FAILED += failed
    sum.CANCELLED += cancelled
  }
  return sum
}
