import { textOf } from '../ui/search.ts'

/** Days that the page goes back to. */
export const DAYS = { '24h': 1, '7d': 7, '30d': 30, '90d': 90, '365d': 365 } as const
export const GROUPS = ['agent', 'model', 'promptVersion', 'tool', 'session'] as const
export const MEASURES = ['cost', 'tokens', 'steps', 'outcomes', 'llm', 'tool'] as const
/** The first one is shown unless the address says another. */
export const MEASURES_OF: Record<(typeof GROUPS)[number], readonly (typeof MEASURES)[number][]> = {
  agent: MEASURES,
  model: ['cost', 'tokens', 'steps', 'llm'],
  promptVersion: MEASURES,
  tool: ['steps', 'tool'],
  session: ['cost', 'tokens', 'steps', 'outcomes'],
}

/** What the address of the usage page holds. */
export interface UsageSearch {
  since?: keyof typeof DAYS
  by?: (typeof GROUPS)[number]
  show?: (typeof MEASURES)[number]
}

export function readUsageSearch(search: Record<string, unknown>): UsageSearch {
  const { since, by, show } = textOf(search, ['since', 'by', 'show'])
  const group = GROUPS.find((one) => one === by)
  const measure = MEASURES.find((one) => one === show)
  return {
    ...(since !== undefined && Object.hasOwn(DAYS, since) && { since: since as keyof typeof DAYS }),
    ...(group && { by: group }),
    ...(measure && { show: measure }),
  }
}

export type Since = keyof typeof DAYS
export const SUM_ORDERS = ['cost', 'tokens', 'runs', 'failed'] as const
export type SumOrder = (typeof SUM_ORDERS)[number]

/** What the addresses of the lists of agents and sessions hold. */
export interface SumsSearch {
  since?: Since
  order?: SumOrder
  /** Part of a name. */
  q?: string
}

export function readSumsSearch(search: Record<string, unknown>): SumsSearch {
  const { since, order, q } = textOf(search, ['since', 'order', 'q'])
  const known = SUM_ORDERS.find((one) => one === order)
  return {
    ...(since !== undefined && Object.hasOwn(DAYS, since) && { since: since as Since }),
    ...(known && { order: known }),
    ...(q !== undefined && { q }),
  }
}
