/** Series and colours of charts. Outcomes of runs have one order and one colour each. Pure. */
import type { RunStatus } from '@tacho/contract/runs/run.ts'
import type { CostMark } from '@tacho/contract/runs/run-text.ts'

/** Colours of series. They avoid green, red and amber, which show outcomes. */
export const SERIES_COLOURS = ['accent', 'cyan', 'pink', 'olive', 'violet', 'edge'] as const
export type SeriesColour = (typeof SERIES_COLOURS)[number] | 'green' | 'red' | 'soft'

export interface Series {
  name: string
  colour: SeriesColour
  /** Null where the value is unknown. */
  values: readonly (number | null)[]
  /** The mark of each value: whether a part of its cost is estimated or missing. */
  marks?: readonly CostMark[]
}

/** Outcomes of runs in charts: one order, one colour each. The colours of chips are in run-status.tsx. */

/** From the bottom up. Failed runs stand on the axis, so that their heights can be compared. */
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

/** Bars that are this many times higher than usual are cut. */
const STANDS_OUT = 3
/** Height of a cut bar, as a multiple of the usual bars. */
const LEFT = 2
/** With fewer bars, there is no usual height. */
const LEAST_BARS = 6
/** If no bar has more runs, the axis fits the highest bar. */
const FEW_RUNS = 12

/** The count at the top of the chart: the highest one, or a lower one if few bars stand out. */
export function scaleOf(counts: readonly number[]): number {
  const used = counts.filter((count) => count > 0).sort((a, b) => a - b)
  const most = used.at(-1) ?? 0
  const usual = used[Math.floor(used.length * 0.75)] ?? most
  const scale = LEFT * usual
  return used.length < LEAST_BARS || most <= FEW_RUNS || most <= STANDS_OUT * usual ? most : scale
}
