/** Converts usage points to series over time. Pure. */
import { costMark, weakestMark, type CostMark } from '@tacho/contract/runs/run-text.ts'
import type { UsagePoint } from '@tacho/contract/runs/usage.ts'
import { costsOf, wholeCost } from '../../web/text/costs.ts'
import { stateWord } from '../../web/text/state-styles.ts'
import { OUTCOME_COLOURS, outcomesOf, STACKED, SERIES_COLOURS, type Series } from '../../web/ui/chart-series.ts'
import { stepAt } from '../../web/address.ts'
import type { MEASURES } from '../address.ts'

export type Measure = (typeof MEASURES)[number]

interface Window {
  /** Start in milliseconds. */
  from: number
  to: number
  stepMs: number
  /** Start of each step. */
  starts: readonly number[]
}

/** Maximum number of series in the chart. The others are added up in one. */
const SERIES = 5
/** Maximum number of bars: with more, they would be thin lines, so neighbours are added up. */
const BARS = 92
const MERGED = [1, 2, 3, 7]
/** The value of a point for a measure. Null if no latency is recorded. Latencies cannot be added up. */
const MEASURED: Record<Exclude<Measure, 'outcomes'>, (point: UsagePoint) => number | null> = {
  cost: (point) => wholeCost(costsOf(point)),
  tokens: ({ usage }) => usage.totalTokens,
  steps: ({ events }) => events,
  // In sums by tool, count its failed calls.
  failed: ({ failed, calls }) => calls?.failed ?? failed,
  llm: ({ llmLatency }) => llmLatency?.p95Ms ?? null,
  tool: ({ toolLatency }) => toolLatency?.p95Ms ?? null,
}

/** Measures to draw as lines, because percentiles cannot be added up. */
export const areLines = (show: Measure): boolean => show === 'llm' || show === 'tool'

/** The same window in steps that are wide enough for bars. */
export function shownWindow(window: Window, show: Measure): Window {
  if (areLines(show)) return window
  const times = MERGED.find((one) => window.starts.length / one <= BARS) ?? MERGED.at(-1) ?? 1
  return { ...window, stepMs: window.stepMs * times, starts: window.starts.filter((_, step) => step % times === 0) }
}

/** The value of a whole period. Latencies cannot be added up. */
export function sumOf(points: readonly UsagePoint[], show: Measure): number | null {
  if (areLines(show)) return null
  const measured = show === 'outcomes' ? ({ runs }: UsagePoint) => runs : MEASURED[show]
  return points.reduce((sum, point) => sum + (measured(point) ?? 0), 0)
}

/** The mark on a sum of costs. */
export const markOf = (points: readonly UsagePoint[], show: Measure): CostMark =>
  show === 'cost' ? weakestMark(points.map(costMark)) : ''

/** Start of each step in Unix seconds. */
export function timesOf({ starts }: Pick<Window, 'starts'>): number[] {
  return starts.map((start) => start / 1_000)
}

/**
 * The series of the plot: one for each of the first `sums`, in the order of the table; without sums, one for
 * everything.
 */
export function seriesOf(
  points: readonly UsagePoint[],
  sums: readonly UsagePoint[],
  window: Window,
  show: Measure,
): Series[] {
  const { length } = timesOf(window)
  const stepOf = ({ from }: UsagePoint) => stepAt(window, Date.parse(from)).step
  const added = (of: readonly UsagePoint[], measured: (point: UsagePoint) => number | null) => {
    const values = Array.from({ length }, () => 0)
    for (const point of of) values[stepOf(point)] = (values[stepOf(point)] ?? 0) + (measured(point) ?? 0)
    return values
  }
  if (show === 'outcomes') {
    return STACKED.map((status) => ({
      name: stateWord(status),
      colour: OUTCOME_COLOURS[status],
      values: added(points, (point) => outcomesOf([point])[status]),
    }))
  }
  const measured = MEASURED[show]
  const marksOf = (of: readonly UsagePoint[]) => {
    const marks = Array.from({ length }, (): CostMark => '')
    for (const point of of) marks[stepOf(point)] = weakestMark([marks[stepOf(point)] ?? '', costMark(point)])
    return show === 'cost' && marks.some((mark) => mark !== '') ? { marks } : {}
  }
  const stackedOf = (of: readonly UsagePoint[]) => ({ values: added(of, measured), ...marksOf(of) })
  if (sums.length === 0) return [{ name: 'all runs', colour: 'accent', ...stackedOf(points) }]
  const byKey = Map.groupBy(points, ({ key }) => key)
  const seriesFor = (sum: UsagePoint, index: number): Series => {
    const [of, name] = [byKey.get(sum.key) ?? [], nameOf(sum)]
    const colour = SERIES_COLOURS[index] ?? 'edge'
    if (!areLines(show)) return { name, colour, ...stackedOf(of) }
    const values: (number | null)[] = Array.from({ length }, () => null)
    for (const point of of) values[stepOf(point)] = measured(point)
    return { name, colour, values }
  }
  const drawn = sums.filter((sum) => (measured(sum) ?? 0) > 0)
  if (drawn.length <= SERIES + 1 || areLines(show)) return drawn.slice(0, SERIES + 1).map(seriesFor)
  const others = new Set(drawn.slice(SERIES).map(({ key }) => key))
  const otherPoints = points.filter(({ key }) => others.has(key))
  return [
    ...drawn.slice(0, SERIES).map(seriesFor),
    { name: `${others.size} others`, colour: 'edge', ...stackedOf(otherPoints) },
  ]
}

export function sorted(sums: readonly UsagePoint[], show: Measure): UsagePoint[] {
  const measured = show === 'outcomes' ? ({ runs }: UsagePoint) => runs : MEASURED[show]
  return sums.toSorted((a, b) => (measured(b) ?? 0) - (measured(a) ?? 0) || nameOf(a).localeCompare(nameOf(b)))
}

export function nameOf({ key, name }: Pick<UsagePoint, 'key' | 'name'>): string {
  return name === null ? `version ${key.slice(0, 8)}` : name === '' ? 'not named' : name
}
