/** Reads the tokens of calls without a cost, summed up for a page of usage, a budget or an alert. */
import { type UncostedSum, TOKEN_PARTS } from '../uncosted.ts'
import type { Sql } from './sql.ts'
import { sum } from './sums.ts'

const DAY_MS = 86_400_000

export type UncostedGroup = 'agent' | 'promptVersion'

export const PART_COLUMNS = {
  input: 'input_tokens',
  cacheRead: 'cache_read_tokens',
  cacheWrite: 'cache_write_tokens',
  cacheWrite1h: 'cache_write_1h_tokens',
  output: 'output_tokens',
  reasoning: 'reasoning_tokens',
} as const

export interface UncostedSums {
  group: UncostedGroup
  /** What a row is keyed by. Null: all together. */
  key: 'key' | 'model_key' | null
  /** Only this agent or prompt version. */
  only?: string | undefined
  /** Starts of hours: `from` inclusive, `to` exclusive. */
  from: number
  to: number
  /** Steps begin at `start`. */
  start: number
  stepMs: number
}

const PARTS = [sum('calls', 'calls'), ...TOKEN_PARTS.map((part) => sum(PART_COLUMNS[part], part))].join(', ')

/** Prices depend on the time, so a step longer than a day comes in days (UTC). */
export function readUncostedSums(
  sql: Sql,
  environmentId: string,
  { group, key, only, from, to, start, stepMs }: UncostedSums,
): Promise<(UncostedSum & { step: number; key: string })[]> {
  const periodMs = Math.min(stepMs, DAY_MS)
  const keyed = key ?? "''"
  const one = only === undefined ? '' : ' AND key = ?'
  const named = `SELECT *, CAST((hour - ?) / ? AS BIGINT) AS step, hour - hour % ? AS at FROM uncosted_hours
    WHERE environment_id = ? AND grouped_by = ? AND hour >= ? AND hour < ?${one}`
  const sums = `SELECT step, ${keyed} AS key, model_key, context, at, ${PARTS} FROM (${named}) named
    GROUP BY step, ${key === null ? '' : `${keyed}, `}model_key, context, at HAVING SUM(calls) > 0`
  const text = `SELECT s.step, s.key, s.context, s.at, s.calls, COALESCE(m.model, '') AS model,
      ${TOKEN_PARTS.map((part) => `s."${part}"`).join(', ')}
    FROM (${sums}) s LEFT JOIN models m ON m.environment_id = ? AND m.model_key = s.model_key`
  const window = [start, stepMs, periodMs, environmentId, group, from, to, ...(only === undefined ? [] : [only])]
  return sql.all(text, [...window, environmentId])
}
