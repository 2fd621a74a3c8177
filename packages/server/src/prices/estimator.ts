/** Prices of the workspace come before the price table. */
import { hash } from 'node:crypto'
import type { EstimateFields } from '@tacho/contract/operator/estimate.ts'
import {
  addEstimates,
  CONTAINED_IN,
  estimateCalls,
  NO_ESTIMATE,
  toNanos,
  type Estimate,
  type ModelRates,
  type Rates,
} from '../domain/price.ts'
import type { PriceRow } from '../storage/prices.ts'
import type { Storage } from '../storage/storage.ts'
import { TOKEN_PARTS, type UncostedCalls, type UncostedSum } from '../storage/uncosted.ts'
import type { PriceTable } from './price-table.ts'

export interface Pricing {
  ofCalls(calls: readonly UncostedCalls[], time: number): EstimateFields
  ofSums(sums: readonly UncostedSum[]): EstimateFields
  nanosOf(sums: readonly UncostedSum[]): number
  hasPrice(model: string): boolean
}

const NANOS = 1e9
const NOTHING: EstimateFields = { estimatedCost: null, priceTable: null, unpricedCalls: 0 }

export async function pricingOf(
  { storage, prices }: { storage: Pick<Storage, 'listPrices'>; prices: PriceTable },
  workspaceId: string,
  calls: readonly UncostedCalls[],
): Promise<Pricing> {
  const own = calls.length === 0 ? [] : await storage.listPrices(workspaceId)
  const ofWorkspace = new Map(own.map((row) => [row.model, ratesOfWorkspace(row)]))
  const others = calls.map(({ model }) => model).filter((model) => !ofWorkspace.has(model))
  const ofTable = await prices.ratesOf(others)
  const ratesOf = (model: string) => ofWorkspace.get(model) ?? ofTable.get(model) ?? null
  const priceTable = tableName(prices, own)

  const sumUp = (sums: readonly UncostedSum[]) =>
    sums.reduce((sum, each) => addEstimates(sum, estimateCalls([each], ratesOf, each.at)), NO_ESTIMATE)
  const shown = (list: readonly UncostedCalls[], { femtos, unpriced }: Estimate): EstimateFields => {
    if (list.length === 0) return NOTHING
    const isPriced = list.some(({ calls: count }) => count > 0) && list.some(({ model }) => ratesOf(model) !== null)
    return { estimatedCost: isPriced ? toNanos(femtos) / NANOS : null, priceTable, unpricedCalls: unpriced }
  }
  return {
    ofCalls: (list, time) => shown(list, estimateCalls(list, ratesOf, time)),
    ofSums: (sums) => shown(sums, sumUp(sums)),
    nanosOf: (sums) => toNanos(sumUp(sums).femtos),
    hasPrice: (model) => ratesOf(model) !== null,
  }
}

/** Another name means other estimates. */
export function tableName({ version }: Pick<PriceTable, 'version'>, own: readonly PriceRow[]): string {
  if (own.length === 0) return version
  const digest = hash('sha256', JSON.stringify(own.map(({ model, rates }) => [model, rates])))
  return `${version}+${digest.slice(0, 8)}`
}

function ratesOfWorkspace({ rates: { longContext, call, ...tokens } }: PriceRow): ModelRates {
  const rates: Rates = { ...tokens, call }
  if (longContext === undefined) return [{ rates }]
  const { above, ...long } = longContext
  // A part that only the long prices leave out is then priced as the part that contains it.
  const tiered = TOKEN_PARTS.map((part) => {
    return [part, { base: priceOf(part, tokens), above: [{ context: above, price: priceOf(part, long) }] }]
  })
  return [{ rates: { ...(Object.fromEntries(tiered) as Rates), call } }]
}

type Prices = Omit<PriceRow['rates'], 'call' | 'longContext'>

const priceOf = (part: keyof Prices, prices: Prices): number => prices[part] ?? priceOf(CONTAINED_IN[part], prices)
