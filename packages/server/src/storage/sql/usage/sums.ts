import type { UsageSums } from '../../usage.ts'

/** Sums saturate at the largest exact integer, so that any order and engine gives the same result. */
const MAX_SUM = Number.MAX_SAFE_INTEGER

export const SUM_COLUMNS = [
  ['prompt_tokens', 'promptTokens'],
  ['completion_tokens', 'completionTokens'],
  ['total_tokens', 'totalTokens'],
  ['cost_nanos', 'costNanos'],
] as const

export function noUsage(): UsageSums {
  return { promptTokens: 0, completionTokens: 0, totalTokens: 0, costNanos: 0 }
}

export function addUsage(sums: UsageSums, usage: UsageSums): void {
  sums.promptTokens = saturating(sums.promptTokens, usage.promptTokens)
  sums.completionTokens = saturating(sums.completionTokens, usage.completionTokens)
  sums.totalTokens = saturating(sums.totalTokens, usage.totalTokens)
  sums.costNanos = saturating(sums.costNanos, usage.costNanos)
}

export function saturating(a: number, b: number): number {
  return Math.max(-MAX_SUM, Math.min(a + b, MAX_SUM))
}

export function adding(alias: string, columns: readonly string[]): string {
  const added = (column: string) => `${alias}.${column} + excluded.${column}`
  const isOver = (column: string) => `${alias}.${column} > ${MAX_SUM} - excluded.${column}`
  return columns
    .map((column) => `${column} = CASE WHEN ${isOver(column)} THEN ${MAX_SUM} ELSE ${added(column)} END`)
    .join(', ')
}

export const sum = (column: string, name: string): string => `CASE WHEN SUM(${column}) > ${MAX_SUM} THEN ${MAX_SUM}
    ELSE CAST(SUM(${column}) AS BIGINT) END AS "${name}"`

export const SUMS = SUM_COLUMNS.map(([column, name]) => sum(column, name)).join(', ')
