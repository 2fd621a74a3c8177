/** Sums that saturate at the largest exact integer, so that any order and engine gives the same result. */
import type { NewUsage } from '../events.ts'

export const MAX_SUM = Number.MAX_SAFE_INTEGER

export interface UsageSums {
  promptTokens: number
  completionTokens: number
  totalTokens: number
  costNanos: number
}

/** Column of each sum, and its name in a row. */
export const SUM_COLUMNS = [
  ['prompt_tokens', 'promptTokens'],
  ['completion_tokens', 'completionTokens'],
  ['total_tokens', 'totalTokens'],
  ['cost_nanos', 'costNanos'],
] as const

export function noUsage(): UsageSums {
  return { promptTokens: 0, completionTokens: 0, totalTokens: 0, costNanos: 0 }
}

export function addUsage(sums: UsageSums, usage: NewUsage): void {
  sums.promptTokens = saturating(sums.promptTokens, usage.promptTokens)
  sums.completionTokens = saturating(sums.completionTokens, usage.completionTokens)
  sums.totalTokens = saturating(sums.totalTokens, usage.totalTokens)
  sums.costNanos = saturating(sums.costNanos, usage.costNanos)
}

export function saturating(a: number, b: number): number {
  return Math.min(a + b, MAX_SUM)
}
