/** Exact: prices are integers of 1e-15 for a token or a call, and a sum is rounded once, to 1e-9. */
import type { EstimateFields } from '@tacho/contract/runs/usage.ts'
import { DAY_MS } from '../../storage/engine/times.ts'
import {
  hasUnknown,
  MEDIA_PARTS,
  thresholdOf,
  TOKEN_PARTS,
  UNKNOWN_USAGE,
  type UncostedCalls,
  type UncostedSum,
  type TokenParts,
} from '../../storage/runs/usage.ts'

export interface Estimator {
  ofCalls(calls: readonly UncostedCalls[], time: number): EstimateFields
  ofSums(sums: readonly UncostedSum[]): EstimateFields
  /** Whether all tokens of these calls have a price. */
  hasPrice(calls: UncostedCalls): boolean
}

/** The price of a million tokens. Above a threshold of input, another price applies. */
export type Rate = number | { base: number; above: readonly { context: number; price: number }[] }

/** A part without a rate has the price of the part that contains it. */
export interface Rates extends Partial<Record<keyof TokenParts, Rate | undefined>> {
  input: Rate
  output: Rate
  call?: number | undefined
}

/** Rates for a time. If several apply, the last one counts; if none does, the first. */
export interface DatedRates {
  from?: number
  /** Seconds of the day in UTC. If `to` is before `from`, the time passes midnight. */
  daily?: { from: number; to: number }
  rates: Rates
}

export type ModelRates = readonly DatedRates[]

/** Converts a price of a million tokens to 1e-15 for one token. */
const FEMTOS_PER_TOKEN = 1e9
const FEMTOS = 1e15
const FEMTOS_PER_NANO = 1_000_000n
const MOST_NANOS = BigInt(Number.MAX_SAFE_INTEGER)

export const CONTAINED_IN = {
  input: 'input',
  cacheRead: 'input',
  cacheWrite: 'input',
  cacheWrite1h: 'cacheWrite',
  output: 'output',
  reasoning: 'output',
  audioInput: 'input',
  cachedAudio: 'cacheRead',
  imageInput: 'input',
  cachedImage: 'cacheRead',
  audioOutput: 'output',
  imageOutput: 'output',
} as const satisfies Record<keyof TokenParts, keyof TokenParts>

export function estimateCalls<Calls extends UncostedCalls>(
  calls: readonly Calls[],
  ratesOf: (model: string) => ModelRates | null,
  timeOf: (calls: Calls) => number,
) {
  let [femtos, unpriced] = [0n, 0]
  for (const each of calls) {
    const dated = ratesOf(each.model)
    const rates = dated && ratesAt(dated, timeOf(each))
    const isKnown = rates !== null && each.context !== UNKNOWN_USAGE
    if (isKnown) femtos += priceOf(each, rates)
    // Audio and images cost more than text, so their price as text is a lower bound, like the known side of a call.
    if (!isKnown || hasUnknown(each.context) || lacksRate(each, rates)) unpriced += each.calls
  }
  return { femtos, unpriced }
}

/** Whether part of the audio or images has no price of its own. */
export function lacksRate(calls: TokenParts, rates: Rates): boolean {
  const isFree = rates.input === 0 && rates.output === 0
  return !isFree && MEDIA_PARTS.some((tokenPart) => calls[tokenPart] > 0 && rates[tokenPart] === undefined)
}

export function toNanos(femtos: bigint): number {
  const nanos = (femtos + FEMTOS_PER_NANO / 2n) / FEMTOS_PER_NANO
  return Number(nanos > MOST_NANOS ? MOST_NANOS : nanos)
}

function ratesAt(dated: ModelRates, time: number): Rates | null {
  const second = Math.floor((((time % DAY_MS) + DAY_MS) % DAY_MS) / 1_000)
  const holds = ({ from, daily }: DatedRates) =>
    (from === undefined || time >= from) && (daily === undefined || isWithin(second, daily))
  return (dated.findLast(holds) ?? dated[0])?.rates ?? null
}

function isWithin(second: number, { from, to }: { from: number; to: number }): boolean {
  return to < from ? second >= from || second < to : second >= from && second < to
}

function priceOf(calls: UncostedCalls, rates: Rates): bigint {
  const context = thresholdOf(calls.context)
  let femtos = BigInt(calls.calls) * BigInt(Math.round((rates.call ?? 0) * FEMTOS))
  for (const tokenPart of TOKEN_PARTS) {
    if (calls[tokenPart] > 0) femtos += BigInt(calls[tokenPart]) * rateOf(tokenPart, rates, context)
  }
  return femtos
}

function rateOf(tokenPart: keyof TokenParts, rates: Rates, context: number): bigint {
  const rate = rates[tokenPart]
  if (rate === undefined) return rateOf(CONTAINED_IN[tokenPart], rates, context)
  const price =
    typeof rate === 'number' ? rate : (rate.above.findLast((tier) => tier.context <= context)?.price ?? rate.base)
  return BigInt(Math.round(price * FEMTOS_PER_TOKEN))
}
