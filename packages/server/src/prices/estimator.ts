/** Prices of the workspace come before the price table. */
import { hash } from 'node:crypto'
import type { EstimateFields } from '@tacho/contract/runs/estimate.ts'
import {
  CONTAINED_IN,
  estimateCalls,
  lacksRate,
  toNanos,
  type Estimator,
  type ModelRates,
  type Rates,
} from '../domain/runs/estimate.ts'
import { NANOS } from '../domain/record/usage.ts'
import type { PriceRow } from '../storage/runs/prices.ts'
import type { Storage } from '../storage/storage.ts'
import {
  MEDIA_PARTS,
  TOKEN_PARTS,
  UNKNOWN_USAGE,
  type UncostedCalls,
  type UncostedSum,
} from '../storage/runs/uncosted.ts'
import type { PriceTable } from './price-table.ts'

const NOTHING: EstimateFields = { estimatedCost: null, priceTable: null, unpricedCalls: 0 }

export async function estimatorOf(
  { storage, prices }: { storage: Pick<Storage, 'listPrices'>; prices: PriceTable },
  workspaceId: string,
  calls: readonly UncostedCalls[],
): Promise<Estimator> {
  const own = calls.length === 0 ? [] : await storage.listPrices(workspaceId)
  const ofWorkspace = new Map(own.map((row) => [row.model, ratesOfWorkspace(row)]))
  const others = calls.map(({ model }) => model).filter((model) => !ofWorkspace.has(model))
  const ofTable = await prices.ratesOf(others)
  const ratesOf = (model: string) => ofWorkspace.get(model) ?? ofTable.get(model) ?? null
  const priceTable = tableName(prices, own)

  function estimate<Calls extends UncostedCalls>(
    list: readonly Calls[],
    timeOf: (calls: Calls) => number,
  ): EstimateFields {
    if (list.length === 0) return NOTHING
    const { femtos, unpriced: unpricedCalls } = estimateCalls(list, ratesOf, timeOf)
    const isPriced = list.some(
      ({ calls, context, model }) => calls > 0 && context !== UNKNOWN_USAGE && ratesOf(model) !== null,
    )
    return { estimatedCost: isPriced ? toNanos(femtos) / NANOS : null, priceTable, unpricedCalls }
  }
  const atOf = ({ at }: UncostedSum) => at
  return {
    ofCalls: (list, time) => estimate(list, () => time),
    ofSums: (sums) => estimate(sums, atOf),
    hasPrice: (calls) => ratesOf(calls.model)?.every(({ rates }) => !lacksRate(calls, rates)) ?? false,
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
  const isSet = (part: (typeof TOKEN_PARTS)[number]) => tokens[part] !== undefined || long[part] !== undefined
  const tiered = TOKEN_PARTS.filter((part) => !(MEDIA_PARTS as readonly string[]).includes(part) || isSet(part)).map(
    (part) => {
      return [part, { base: priceOf(part, tokens), above: [{ context: above, price: priceOf(part, long) }] }]
    },
  )
  return [{ rates: { ...(Object.fromEntries(tiered) as Rates), call } }]
}

type Prices = Omit<PriceRow['rates'], 'call' | 'longContext'>

const priceOf = (part: keyof Prices, prices: Prices): number => prices[part] ?? priceOf(CONTAINED_IN[part], prices)
