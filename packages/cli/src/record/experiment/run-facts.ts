/** Measures a run, a tape and its replay in the same way, and decides whether the replay is better. */
import { isObject, type Json } from '@tacho/contract/record/payload-reader.ts'
import type { PriceRow, UncostedCalls } from '@tacho/server/storage/runs/usage.ts'
import type { OperatorClient } from '../../engine/operator-client.ts'
import type { RunEvent } from '../tape/recorded-steps.ts'
import type { ModelStep, TapeStep } from '../tape/tape.ts'

export interface RunFacts {
  outcome: string
  /** Calls of models and tools. */
  steps: number
  /** Null: some call has no usage. */
  tokens: number | null
  /** US dollars, recorded and estimated; null: some call has no known price. */
  cost: number | null
  /** Time in model calls. Tools do not count, because in a replay they answer at once. */
  modelMs: number
  /** Means of the scores, by name. */
  scores: Record<string, number>
}

const NANOS = 1e9

export interface Costed {
  cost: number
  /** Models with a call of unknown cost. */
  unknown: string[]
}

export interface Pricing {
  costOf(calls: readonly Json[]): Promise<Costed>
  /** The tokens of calls; null if a successful call has no usage. */
  tokensOf(calls: readonly Json[]): number | null
  close(): Promise<void>
}

/** @param source for the prices of a workspace. Without it, only the price table applies. */
export async function openPricing(source?: { client: OperatorClient; workspaceId: string }): Promise<Pricing> {
  // Loaded here, not for the help, because this loads the schema library.
  const { usageOf } = await import('@tacho/server/domain/record/usage.ts')
  const { createPriceTable, estimatorOf } = await import('@tacho/server/prices/price-table.ts')
  const prices = createPriceTable()
  const workspaceId = source?.workspaceId ?? ''
  const set = source ? (await source.client.listPrices({ params: { workspaceId } })).items : []
  const rows = set.map(({ model, changedAt, damaged, ...rates }): PriceRow => {
    return { model, rates, changedAt: Date.parse(changedAt), ...(damaged && { damaged: true }) }
  })
  const storage = { listPrices: () => Promise.resolve(rows) }
  return {
    async costOf(calls) {
      let cost = 0
      const unpriced: UncostedCalls[] = []
      for (const payload of calls) {
        const usage = usageOf('LLM_CALL', payload)
        // A call that failed without an answer has no usage and costs nothing.
        if (!usage || (payload['error'] !== undefined && payload['usage'] === undefined)) continue
        cost += usage.costNanos / NANOS
        if (usage.uncosted) unpriced.push({ model: usage.model, calls: 1, ...usage.uncosted })
      }
      const estimator = await estimatorOf({ storage, prices }, workspaceId, unpriced)
      const now = Date.now()
      const isUnknown = (call: UncostedCalls) => estimator.ofCalls([call], now).unpricedCalls > 0
      const unknown = unpriced.filter(isUnknown).map(({ model }) => model || 'a model without a name')
      return { cost: cost + (estimator.ofCalls(unpriced, now).estimatedCost ?? 0), unknown: [...new Set(unknown)] }
    },
    tokensOf(calls) {
      if (calls.some(({ usage, error }) => usage === undefined && error === undefined)) return null
      return sum(calls.map((call) => usageOf('LLM_CALL', call)?.totalTokens ?? 0))
    },
    close: prices.close,
  }
}

export const modelPayloads = (events: readonly RunEvent[]): Json[] =>
  events.flatMap(({ eventType, payload }) => (eventType === 'LLM_CALL' ? [payload] : []))

/** Usage of the models in these steps. */
export async function spentIn(
  steps: readonly TapeStep[],
  pricing: Pricing,
): Promise<Pick<RunFacts, 'tokens' | 'cost'>> {
  const models = steps.filter((step): step is ModelStep => step.kind === 'model')
  const calls = models.map(({ model, usage, cost, error }): Json => ({ model, usage, cost, error }))
  const { cost, unknown } = await pricing.costOf(calls)
  return { tokens: pricing.tokensOf(calls), cost: unknown.length > 0 ? null : Math.round(cost * NANOS) / NANOS }
}

export async function factsOf(
  { steps, outcome, scores }: { steps: readonly TapeStep[]; outcome: string; scores: Record<string, number> },
  pricing: Pricing,
): Promise<RunFacts> {
  // A tape answers a guarded call as a whole, so a replay has no steps inside it.
  const outer = steps.filter(({ within }) => within === undefined)
  const models = outer.filter((step): step is ModelStep => step.kind === 'model')
  return {
    outcome,
    steps: outer.filter(({ kind }) => kind === 'model' || kind === 'tool').length,
    ...(await spentIn(outer, pricing)),
    modelMs: Math.round(sum(models.map(({ latency = 0 }) => latency))),
    scores,
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0)

/** Means of the scores that the agent recorded itself, numeric or yes/no. */
export function scoresIn(events: readonly RunEvent[]): Record<string, number> {
  const values = new Map<string, number[]>()
  for (const { eventType, payload } of events) {
    const { name, value } = isObject(payload) ? payload : {}
    if (eventType !== 'SCORE' || typeof name !== 'string') continue
    if (typeof value === 'number' || typeof value === 'boolean')
      values.set(name, [...(values.get(name) ?? []), Number(value)])
  }
  return Object.fromEntries([...values].map(([name, all]) => [name, sum(all) / all.length]))
}

export const VERDICTS = ['worse', 'better', 'another way', 'same'] as const
export type Verdict = (typeof VERDICTS)[number]

/** Compares the outcomes; if they are equally good, the user's own measure decides. */
export function verdictOf({
  before,
  after,
  way,
  measure,
}: {
  before: RunFacts
  after: RunFacts
  way: unknown
  measure: number | null
}): Verdict {
  if (way !== null) return 'another way'
  const gained = Number(after.outcome === 'COMPLETED') - Number(before.outcome === 'COMPLETED')
  const change = gained || (measure ?? 0)
  return change > 0 ? 'better' : change < 0 ? 'worse' : 'same'
}
