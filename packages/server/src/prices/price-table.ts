/**
 * Reads the package's data in a thread that ends soon after, because the data takes 20 MB and a tenth of a second to
 * load.
 */
import { createRequire } from 'node:module'
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { EstimateFields } from '@tacho/contract/runs/usage.ts'
import {
  type ModelRates,
  CONTAINED_IN,
  estimateCalls,
  lacksRate,
  toNanos,
  type Estimator,
  type Rates,
} from '../domain/runs/estimate.ts'
import { moduleUrl, versionIn } from '../program/program.ts'
import { createSharedThread, startCalledThread } from '../threads/threads.ts'
import { NANOS } from '../domain/record/usage.ts'
import {
  type PriceRow,
  MEDIA_PARTS,
  TOKEN_PARTS,
  UNKNOWN_USAGE,
  type UncostedCalls,
  type UncostedSum,
} from '../storage/runs/usage.ts'
import type { Storage } from '../storage/storage.ts'

export type PriceTable = ReturnType<typeof createPriceTable>

const PACKAGE = '@pydantic/genai-prices'
const IDLE_MS = 10_000
const MODELS_KEPT = 5_000

export function createPriceTable() {
  const main = createRequire(import.meta.url).resolve(PACKAGE)
  const known = new LRUCache<string, { rates: ModelRates | null }>({ max: MODELS_KEPT })
  const threads = createSharedThread<string[], (ModelRates | null)[]>(
    (onEnd) => startCalledThread(moduleUrl('price-thread', import.meta.url), { name: 'price' }, onEnd),
    IDLE_MS,
  )

  async function lookUpModels(models: string[]): Promise<void> {
    const thread = threads.enter()
    try {
      const rates = await thread.call(models)
      models.forEach((model, index) => known.set(model, { rates: rates[index] ?? null }))
    } finally {
      threads.leave()
    }
  }

  return {
    version: `genai-prices ${versionIn(new URL('../package.json', `file://${main}`))}`,
    async ratesOf(models: Iterable<string>): Promise<ReadonlyMap<string, ModelRates | null>> {
      const wanted = new Set(models)
      wanted.delete('')
      const modelRates = new Map<string, ModelRates | null>()
      const unknown: string[] = []
      for (const model of wanted) {
        const entry = known.get(model)
        if (entry === undefined) unknown.push(model)
        else modelRates.set(model, entry.rates)
      }
      if (unknown.length > 0) {
        await lookUpModels(unknown)
        for (const model of unknown) modelRates.set(model, known.get(model)?.rates ?? null)
      }
      return modelRates
    },
    close: threads.close,
  }
}

/** Prices of the workspace take precedence over the price table. */

const NOTHING: EstimateFields = { estimatedCost: null, priceTable: null, unpricedCalls: 0 }

export async function estimatorOf(
  { storage, prices }: { storage: Pick<Storage, 'listPrices'>; prices: PriceTable },
  workspaceId: string,
  calls: readonly UncostedCalls[],
): Promise<Estimator> {
  const workspacePrices = calls.length === 0 ? [] : await storage.listPrices(workspaceId)
  // A damaged price leaves the model without a price: the one in the price table is not what the workspace has set.
  const ofWorkspace = new Map(workspacePrices.map((row) => [row.model, row.damaged ? null : ratesOfWorkspace(row)]))
  const others = calls.map(({ model }) => model).filter((model) => !ofWorkspace.has(model))
  const ofTable = await prices.ratesOf(others)
  const ratesOf = (model: string) => (ofWorkspace.has(model) ? ofWorkspace.get(model) : ofTable.get(model)) ?? null
  const priceTable = tableName(prices, workspacePrices)

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

/** Name of the prices in use. A different name means that estimates may differ. */
export function tableName({ version }: Pick<PriceTable, 'version'>, workspacePrices: readonly PriceRow[]): string {
  if (workspacePrices.length === 0) return version
  const digest = hash('sha256', JSON.stringify(workspacePrices.map(({ model, rates }) => [model, rates])))
  return `${version}+${digest.slice(0, 8)}`
}

function ratesOfWorkspace({ rates: { longContext, call, ...tokens } }: PriceRow): ModelRates {
  const rates: Rates = { ...tokens, call }
  if (longContext === undefined) return [{ rates }]
  const { above, ...long } = longContext
  // A part that only the long prices leave out has the price of the part that contains it.
  const isSet = (tokenPart: (typeof TOKEN_PARTS)[number]) =>
    tokens[tokenPart] !== undefined || long[tokenPart] !== undefined
  const tiered = TOKEN_PARTS.filter(
    (tokenPart) => !(MEDIA_PARTS as readonly string[]).includes(tokenPart) || isSet(tokenPart),
  ).map((tokenPart) => {
    return [
      tokenPart,
      { base: priceOf(tokenPart, tokens), above: [{ context: above, price: priceOf(tokenPart, long) }] },
    ]
  })
  return [{ rates: { ...(Object.fromEntries(tiered) as Rates), call } }]
}

type Prices = Omit<PriceRow['rates'], 'call' | 'longContext'>

const priceOf = (tokenPart: keyof Prices, prices: Prices): number =>
  prices[tokenPart] ?? priceOf(CONTAINED_IN[tokenPart], prices)
