import { readRange, type Range, type Since } from '../web/range.ts'
import { textOf } from '../web/search.ts'

export const GROUPS = ['agent', 'model', 'promptVersion', 'tool', 'session'] as const
export const MEASURES = ['cost', 'tokens', 'steps', 'outcomes', 'failed', 'llm', 'tool'] as const
/** The first one is shown unless the address says another. */
export const MEASURES_OF: Record<(typeof GROUPS)[number], readonly (typeof MEASURES)[number][]> = {
  agent: MEASURES,
  model: ['cost', 'tokens', 'steps', 'llm'],
  promptVersion: MEASURES,
  tool: ['steps', 'failed', 'tool'],
  session: ['cost', 'tokens', 'steps', 'outcomes', 'failed'],
}

/** What the address of the usage page holds. */
export interface UsageSearch extends Range {
  by?: (typeof GROUPS)[number]
  show?: (typeof MEASURES)[number]
}

export function readUsageSearch(search: Record<string, unknown>): UsageSearch {
  const { by, show } = textOf(search, ['by', 'show'])
  const group = GROUPS.find((one) => one === by)
  const measure = MEASURES.find((one) => one === show)
  return {
    ...readRange(search),
    ...(group && { by: group }),
    ...(measure && { show: measure }),
  }
}

export const SUM_ORDERS = ['cost', 'tokens', 'runs', 'failed'] as const
export type SumOrder = (typeof SUM_ORDERS)[number]

/** The period of sums, unless the address has one. */
export const SUMS_SINCE: Since = '7d'

/** What the addresses of the lists of agents and sessions hold. */
export interface SumsSearch extends Range {
  order?: SumOrder
  /** Part of a name. */
  q?: string
}

export function readSumsSearch(search: Record<string, unknown>): SumsSearch {
  const { order, q } = textOf(search, ['order', 'q'])
  const known = SUM_ORDERS.find((one) => one === order)
  return {
    ...readRange(search),
    ...(known && { order: known }),
    ...(q !== undefined && { q }),
  }
}
