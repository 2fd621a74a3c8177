/**
 * Compares the cost of a period with the one before, and explains the change: more runs, more tokens per run, or a higher price
 * per token. Pure.
 */
import type { UsagePoint } from '@tacho/contract/runs/usage.ts'
import { costsOf, wholeCost } from '../../web/text/costs.ts'
import { percent } from '../../web/text/format.ts'

export type Costing = Pick<UsagePoint, 'usage' | 'estimatedCost' | 'unpricedCalls' | 'priceTable' | 'runs'>

/** Factors; they multiply to `cost`. */
export interface CostChange {
  cost: number
  runs: number
  /** In a run. */
  tokens: number
  /** Price per token. */
  price: number
}

/** Null: a part is unknown in one of the times, so the whole is too. */
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

/** A smaller change counts as none. */
export const NEAR = 0.05
export const times = (factor: number) =>
  factor < 0.05 ? '<×0.1' : `×${factor < 10 ? factor.toFixed(1) : Math.round(factor)}`

/** `runs ×1.6 · tokens a run ×2.0`: the parts that changed. */
export function whyText({ runs, tokens, price }: CostChange): string {
  const parts = [
    ['runs', runs],
    ['tokens a run', tokens],
    ['price', price],
  ] as const
  const changedParts = parts.filter(([, factor]) => Math.abs(factor - 1) > NEAR)
  return changedParts.map(([word, factor]) => `${word} ${times(factor)}`).join(' · ') || 'as before'
}

/** `+96 %`, `−12 %`, `×8`. */
export function changeText(factor: number): string {
  if (factor >= 3) return times(factor)
  if (Math.abs(factor - 1) < 0.005) return '±0 %'
  // `percent` says `> 99 %` of nearly all: with a sign before it, that reads as an arrow.
  if (factor < 0.01) return 'below 1 % of before'
  return factor > 1 ? `+${percent(factor - 1, 1)}` : `−${percent(1 - factor, 1)}`
}
