/** Sums of usage by day, each with a bar. */
import { number } from '@tacho/contract/engine/format.ts'
import type { UsageHour } from '@tacho/contract/runs/usage.ts'
import { spokenCost, spokenUsage, type Column } from '../engine/output.ts'

export interface UsageSum {
  key: string
  events: number
  promptTokens: number
  completionTokens: number
  totalTokens: number
  cost: number
  /** Estimated cost of calls without a recorded cost; null: no estimate. */
  estimatedCost: number | null
  unpricedCalls: number
}

const BAR_CELLS = 10
const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']
/** Costs are summed in whole units of 1e-9: sums of fractions would be inexact. */
const NANOS = 1e9

export function totalOf(sums: readonly UsageSum[], key: string): UsageSum {
  const total = emptySum(key)
  for (const { events, estimatedCost, unpricedCalls, ...usage } of sums) {
    addTo(total, { events, estimatedCost, unpricedCalls, usage })
  }
  return total
}

export function emptySum(key: string): UsageSum {
  const usage = { promptTokens: 0, completionTokens: 0, totalTokens: 0, cost: 0 }
  return { key, events: 0, ...usage, estimatedCost: null, unpricedCalls: 0 }
}

export function addTo(
  sum: UsageSum,
  {
    events,
    usage,
    estimatedCost,
    unpricedCalls,
  }: Pick<UsageHour, 'events' | 'usage' | 'estimatedCost' | 'unpricedCalls'>,
) {
  sum.events += events
  sum.unpricedCalls += unpricedCalls
  sum.promptTokens += usage.promptTokens
  sum.completionTokens += usage.completionTokens
  sum.totalTokens += usage.totalTokens
  sum.cost = added(sum.cost, usage.cost)
  if (estimatedCost !== null) sum.estimatedCost = added(sum.estimatedCost ?? 0, estimatedCost)
}

function added(one: number, other: number): number {
  return (Math.round(one * NANOS) + Math.round(other * NANOS)) / NANOS
}

/** The recorded and the estimated cost. */
export function weight({ cost, estimatedCost }: Weighed): number {
  return added(cost, estimatedCost ?? 0)
}

export const USAGE_COLUMNS: readonly Column[] = [
  { title: 'DAY' },
  { title: 'EVENTS', align: 'right', isOptional: true },
  { title: 'TOKENS', align: 'right' },
  { title: 'COST', align: 'right' },
  { title: '', as: 'whole', isOptional: true },
]

/** Rows of sums, each with its bar. */
export function usageRows(sums: readonly UsageSum[]): string[][] {
  const dayBars = barsOf(sums)
  return sums.map((sum, at) => [...usageCells(sum), dayBars[at] ?? ''])
}

type Weighed = Pick<UsageSum, 'cost' | 'estimatedCost' | 'totalTokens'>

/** A bar for each sum, relative to the largest: by cost, or by tokens if no sum has a cost. */
export function barsOf(sums: readonly Weighed[]): string[] {
  const measure = sums.some((sum) => weight(sum) > 0) ? weight : ({ totalTokens }: Weighed) => totalTokens
  const greatest = Math.max(...sums.map(measure))
  return sums.map((sum) => bar(measure(sum) / greatest))
}

export function usageCells({ key, events, ...used }: UsageSum): string[] {
  return [key, number(events), spokenUsage(used.totalTokens), costCell(used)]
}

export const costCell = ({ cost, totalTokens, ...otherSums }: Omit<UsageSum, 'key' | 'events'>): string =>
  spokenCost({ usage: { cost, totalTokens }, ...otherSums })

function bar(share: number): string {
  const eighths = Number.isFinite(share) ? Math.round(share * BAR_CELLS * 8) : 0
  return '█'.repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? '')
}
