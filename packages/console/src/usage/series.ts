/** Points of usage as lines over time. Pure. */
import type { UsagePoint } from '@tacho/contract/operator/usage.ts'
import { costsOf, wholeCost } from '../ui/cost.tsx'
import type { Series } from '../ui/plot.tsx'
import type { MEASURES } from './search.ts'

export type Measure = (typeof MEASURES)[number]

interface Window {
  /** Milliseconds. */
  from: number
  to: number
  stepMs: number
}

/** More than this is one line. */
const LINES = 5
/** Without recorded latencies, a point is a gap. Latencies cannot be added up. */
const MEASURED: Record<Exclude<Measure, 'outcomes'>, (point: UsagePoint) => number | null> = {
  cost: (point) => wholeCost(costsOf(point)),
  tokens: ({ usage }) => usage.totalTokens,
  steps: ({ events }) => events,
  llm: ({ llmLatency }) => llmLatency?.p95Ms ?? null,
  tool: ({ toolLatency }) => toolLatency?.p95Ms ?? null,
}
const OUTCOMES: [string, (point: UsagePoint) => number][] = [
  ['Running', ({ runs, completed, failed, cancelled }) => runs - completed - failed - cancelled],
  ['Completed', ({ completed }) => completed],
  ['Cancelled', ({ cancelled }) => cancelled],
  ['Failed', ({ failed }) => failed],
]

/** Unix seconds at which each step begins. */
export function timesOf({ from, to, stepMs }: Window): number[] {
  return Array.from({ length: Math.floor((to - from) / stepMs) + 1 }, (_, step) => (from + step * stepMs) / 1_000)
}

/** The lines of the plot: one for each of the first `sums`, in the order of the table. Without sums, one line for all. */
export function linesOf(
  points: readonly UsagePoint[],
  sums: readonly UsagePoint[],
  window: Window,
  show: Measure,
): Series[] {
  const { length } = timesOf(window)
  const stepOf = ({ from }: UsagePoint) => Math.floor((Date.parse(from) - window.from) / window.stepMs)
  const added = (of: readonly UsagePoint[], measured: (point: UsagePoint) => number) => {
    const values = Array.from({ length }, () => 0)
    for (const point of of) values[stepOf(point)] = (values[stepOf(point)] ?? 0) + measured(point)
    return values
  }
  if (show === 'outcomes') return OUTCOMES.map(([name, counted]) => ({ name, values: added(points, counted) }))
  if (sums.length === 0) return [{ name: 'all runs', values: added(points, (one) => MEASURED[show](one) ?? 0) }]
  const byKey = Map.groupBy(points, ({ key }) => key)
  const measured = MEASURED[show]
  const line = (sum: UsagePoint): Series => {
    const of = byKey.get(sum.key) ?? []
    if (show !== 'llm' && show !== 'tool') return { name: nameOf(sum), values: added(of, (one) => measured(one) ?? 0) }
    const values: (number | null)[] = Array.from({ length }, () => null)
    for (const point of of) values[stepOf(point)] = measured(point)
    return { name: nameOf(sum), values }
  }
  const drawn = sums.filter((sum) => (measured(sum) ?? 0) > 0)
  if (drawn.length <= LINES + 1 || show === 'llm' || show === 'tool') return drawn.slice(0, LINES + 1).map(line)
  const others = new Set(drawn.slice(LINES).map(({ key }) => key))
  const rest = points.filter(({ key }) => others.has(key))
  return [
    ...drawn.slice(0, LINES).map(line),
    { name: `${others.size} others`, values: added(rest, (one) => measured(one) ?? 0) },
  ]
}

export function sorted(sums: readonly UsagePoint[], show: Measure): UsagePoint[] {
  const measured = show === 'outcomes' ? ({ runs }: UsagePoint) => runs : MEASURED[show]
  return sums.toSorted((a, b) => (measured(b) ?? 0) - (measured(a) ?? 0) || nameOf(a).localeCompare(nameOf(b)))
}

export function nameOf({ key, name }: Pick<UsagePoint, 'key' | 'name'>): string {
  return name === null ? `version ${key.slice(0, 8)}` : name === '' ? 'not named' : name
}
