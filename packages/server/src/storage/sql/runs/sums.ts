import { columnOf, memberOf } from '../../data/exported-tables.ts'
import type { UsageSums } from '../../runs/usage.ts'

/** Sums saturate at the largest exact integer, so that any order and engine gives the same result. */
export const MAX_SUM = Number.MAX_SAFE_INTEGER

export const USAGE_SUMS = ['promptTokens', 'completionTokens', 'totalTokens', 'costNanos'] as const
export const USAGE_COLUMNS = USAGE_SUMS.map(columnOf)

export function noUsage(): UsageSums {
  return { promptTokens: 0, completionTokens: 0, totalTokens: 0, costNanos: 0 }
}

export function addUsage(sums: UsageSums, usage: UsageSums): void {
  for (const name of USAGE_SUMS) sums[name] = saturating(sums[name], usage[name])
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

export const sumsOf = (columns: readonly string[]): string =>
  columns.map((column) => sum(column, memberOf(column))).join(', ')
