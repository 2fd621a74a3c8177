/** What calls cost: as clients recorded it, and as the server estimates it where they did not. */
import { unknownCost } from '@tacho/contract/usage-text.ts'
import type { EstimateFields } from '@tacho/contract/operator/estimate.ts'
import { counted, money } from './format.ts'

export interface Costs {
  recorded: number
  /** Estimated cost of the calls without a cost; null if none has a price. */
  estimated: number | null
  /** Calls that have neither a cost nor a price. */
  unpriced: number
  /** Name and version of the price table behind the estimate. */
  table: string | null
  /** No cost and no token was recorded: that is not the same as free. */
  isAbsent: boolean
}

export const NO_COSTS: Costs = { recorded: 0, estimated: null, unpriced: 0, table: null, isAbsent: true }

interface Costing extends EstimateFields {
  usage: { cost: number; totalTokens: number }
}

export function costsOf({ usage, estimatedCost, unpricedCalls, priceTable }: Costing): Costs {
  const isAbsent = unknownCost({ usage, estimatedCost, unpricedCalls }) === 'not recorded'
  return { recorded: usage.cost, estimated: estimatedCost, unpriced: unpricedCalls, table: priceTable, isAbsent }
}

export function addCosts(a: Costs, b: Costs): Costs {
  return {
    recorded: a.recorded + b.recorded,
    estimated: a.estimated === null ? b.estimated : a.estimated + (b.estimated ?? 0),
    unpriced: a.unpriced + b.unpriced,
    table: a.table ?? b.table,
    isAbsent: a.isAbsent && b.isAbsent,
  }
}

export const sumCosts = (all: readonly Costing[]): Costs => all.map(costsOf).reduce(addCosts, NO_COSTS)

export const wholeCost = ({ recorded, estimated }: Costs): number => recorded + (estimated ?? 0)

/** `0.12`, `≈ 0.12` if a part is estimated, `unknown` without a price, or `not recorded`. */
export function costText(costs: Costs): string {
  if (costs.isAbsent) return 'not recorded'
  const whole = wholeCost(costs)
  if (costs.estimated !== null) return `≈ ${money(whole)}`
  return whole === 0 && costs.unpriced > 0 ? 'unknown' : money(whole)
}

/** Which part is estimated, by which prices, and what it leaves out; empty if everything is recorded. */
export function costNote({ recorded, estimated, unpriced, table }: Costs): string {
  const parts = []
  if (estimated !== null) {
    const beside = recorded > 0 ? `${money(recorded)} recorded, ${money(estimated)} estimated` : 'Estimated'
    parts.push(`${beside} with the prices of ${table ?? 'the price table'}.`)
  }
  if (unpriced > 0) parts.push(`${counted(unpriced, 'call')} without a cost or a known price.`)
  return parts.join(' ')
}
