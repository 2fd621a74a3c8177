/** Hours of usage as lines over time. Pure. */
import type { UsageHour } from '@tacho/contract/operator/usage.ts'
import type { GROUPS, MEASURES } from './search.ts'

type Group = (typeof GROUPS)[number]
export type Measure = (typeof MEASURES)[number]

export interface Sum {
  key: string
  name: string
  cost: number
  tokens: number
  steps: number
  /** The chosen measure in each slot of time. */
  values: number[]
}

export interface Lines {
  /** Unix seconds at which each slot begins. */
  times: number[]
  sums: Sum[]
}

const HOUR_MS = 3_600_000
/** More than this is one line. */
const LINES = 5

export function linesOf(
  hours: readonly UsageHour[],
  { from, to, by, show }: { from: number; to: number; by: Group; show: Measure },
): Lines {
  // A point for each hour of up to a week, for each day of more.
  const width = to - from > 8 * 24 * HOUR_MS ? 24 * HOUR_MS : HOUR_MS
  const start = Math.floor(from / width) * width
  const count = Math.floor((to - start) / width) + 1
  const sums = new Map<string, Sum>()
  for (const { hour, agent, model, events, usage } of hours) {
    const [key, name] = by === 'agent' ? [agent.id, agent.name] : [model, model === '' ? 'no model' : model]
    const sum = sums.get(key) ?? emptySum(key, name, count)
    sums.set(key, sum)
    const measured = { cost: usage.cost, tokens: usage.totalTokens, steps: events }
    sum.cost += measured.cost
    sum.tokens += measured.tokens
    sum.steps += measured.steps
    const slot = Math.floor((Date.parse(hour) - start) / width)
    if (slot >= 0 && slot < count) sum.values[slot] = (sum.values[slot] ?? 0) + measured[show]
  }
  const times = Array.from({ length: count }, (_, index) => (start + index * width) / 1_000)
  return { times, sums: [...sums.values()].sort((a, b) => b[show] - a[show] || a.name.localeCompare(b.name)) }
}

/** The largest ones, and the others together. */
export function drawn(sums: readonly Sum[]): { name: string; values: number[] }[] {
  if (sums.length <= LINES + 1) return [...sums]
  const [shown, others] = [sums.slice(0, LINES), sums.slice(LINES)]
  const values = (shown[0]?.values ?? []).map((_, slot) =>
    others.reduce((all, sum) => all + (sum.values[slot] ?? 0), 0),
  )
  return [...shown, { name: `${others.length} others`, values }]
}

function emptySum(key: string, name: string, count: number): Sum {
  return { key, name, cost: 0, tokens: 0, steps: 0, values: Array.from({ length: count }, () => 0) }
}
