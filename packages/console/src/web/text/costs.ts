/** Costs of calls: recorded by clients, or estimated by the server. */
import { costWords } from '@tacho/contract/runs/run-text.ts'
import type { EstimateFields } from '@tacho/contract/runs/usage.ts'
import { counted, money } from './format.ts'

export interface Costs {
  recorded: number
  /** Estimated cost of the calls without a recorded cost; null if none of them has a price. */
  estimated: number | null
  /** Number of calls with neither a cost nor a price. */
  unpriced: number
  /** Name and version of the price table behind the estimate. */
  table: string | null
  /** Tokens of calls whose cost is unknown, and not zero. */
  tokens: number
}

export const NO_COSTS: Costs = { recorded: 0, estimated: null, unpriced: 0, table: null, tokens: 0 }

interface Costing extends EstimateFields {
  usage: { cost: number; totalTokens: number }
}

export function costsOf({ usage, estimatedCost, unpricedCalls, priceTable }: Costing): Costs {
  const { cost: recorded, totalTokens: tokens } = usage
  return { recorded, estimated: estimatedCost, unpriced: unpricedCalls, table: priceTable, tokens }
}

export function addCosts(a: Costs, b: Costs): Costs {
  return {
    recorded: a.recorded + b.recorded,
    estimated: a.estimated === null ? b.estimated : a.estimated + (b.estimated ?? 0),
    unpriced: a.unpriced + b.unpriced,
    table: a.table ?? b.table,
    tokens: a.tokens + b.tokens,
  }
}

export const sumCosts = (all: readonly Costing[]): Costs => all.map(costsOf).reduce(addCosts, NO_COSTS)

export const wholeCost = ({ recorded, estimated }: Costs): number => recorded + (estimated ?? 0)

export function costText({ recorded: cost, estimated: estimatedCost, unpriced: unpricedCalls, tokens }: Costs): string {
  return costWords({ usage: { cost, totalTokens: tokens }, estimatedCost, unpricedCalls }, money)
}

/** Describes the estimated part, its prices, and the calls without a price; empty if every cost is recorded. */
export function costNote({ recorded, estimated, unpriced, table }: Costs): string {
  const parts = []
  if (estimated !== null) {
    const beside = recorded > 0 ? `${money(recorded)} recorded, ${money(estimated)} estimated` : 'Estimated'
    parts.push(`${beside} with the prices of ${table ?? 'the price table'}.`)
  }
  if (unpriced > 0) parts.push(`${counted(unpriced, 'call')} without a cost or a known price.`)
  return parts.join(' ')
}
