/**
 * Compares the cost of a period with the one before, and explains the change: more runs, more tokens per run, or a higher price
 * per token. Pure.
 */
import type { UsagePoint } from '@tacho/contract/runs/usage.ts'
import { costsOf, wholeCost } from '../../web/text/costs.ts'
import { percent } from '../../web/text/format.ts'

export type Costing = Pick<UsagePoint, 'usage' | 'estimatedCost' | 'unpricedCalls' | 'priceTable' | 'runs'>

/** Factors of change, whose product is `cost`. */
export interface CostChange {
  cost: number
  runs: number
  /** Tokens per run. */
  tokens: number
  /** Price per token. */
  price: number
}

/** Null if a figure of one of the periods is unknown. */
export function costChange(now: Costing, before: Costing | undefined): CostChange | null {
  if (before === undefined) return null
  const [one, other] = [now, before].map((of) => {
    const [tokens, cost] = [of.usage.totalTokens, wholeCost(costsOf(of))]
    return { runs: of.runs, tokens: tokens / of.runs, price: cost / tokens, cost, isKnown: of.unpricedCalls === 0 }
  }) as [Known, Known]
  const areKnown = [one, other].every((of) => of.isKnown && of.runs > 0 && of.cost > 0 && of.tokens > 0)
  if (!areKnown) return null
  const factor = (of: keyof Omit<Known, 'isKnown'>) => one[of] / other[of]
  return { cost: factor('cost'), runs: factor('runs'), tokens: factor('tokens'), price: factor('price') }
}

interface Known {
  runs: number
  tokens: number
  price: number
  cost: number
  isKnown: boolean
}

/** A smaller change counts as no change. */
export const NEAR = 0.05
export const times = (factor: number) =>
  factor < 0.05 ? '<×0.1' : `×${factor < 10 ? factor.toFixed(1) : Math.round(factor)}`

/** The factors that changed: `runs ×1.6 · tokens a run ×2.0`. */
export function whyText({ runs, tokens, price }: CostChange): string {
  const parts = [
    ['runs', runs],
    ['tokens a run', tokens],
    ['price', price],
  ] as const
  const changedParts = parts.filter(([, factor]) => Math.abs(factor - 1) > NEAR)
  return changedParts.map(([word, factor]) => `${word} ${times(factor)}`).join(' · ') || 'as before'
}

/** A factor as text: `+96 %`, `−12 %`, `×8`. */
export function changeText(factor: number): string {
  if (factor >= 3) return times(factor)
  if (Math.abs(factor - 1) < 0.005) return '±0 %'
  // Use words here: after a sign, the text `> 99 %` would look like an arrow.
  if (factor < 0.01) return 'below 1 % of before'
  return factor > 1 ? `+${percent(factor - 1, 1)}` : `−${percent(1 - factor, 1)}`
}
