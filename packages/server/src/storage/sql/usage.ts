import type { Page } from '../page.ts'
import type { RunStore, UsageHourRow, UsagePage } from '../runs.ts'
import { read, type Acts } from './act.ts'
import type { Sql } from './sql.ts'
import { MAX_SUM } from './sums.ts'

export const usageActs = {
  readUsage: read(readUsage),
} satisfies Partial<Acts<RunStore>>

const sum = (column: string, name: string) => `CASE WHEN SUM(${column}) > ${MAX_SUM} THEN ${MAX_SUM}
    ELSE CAST(SUM(${column}) AS BIGINT) END AS "${name}"`

/** Below the id of every agent. */
const BEFORE_ALL = '00000000-0000-0000-0000-000000000000'

function readUsage(
  sql: Sql,
  environmentId: string,
  fromHour: number,
  toHour: number,
  { limit, after }: UsagePage,
): Promise<Page<UsageHourRow>> {
  // The page is cut before agents and models are joined, in the order of the primary key: only its rows are summed.
  const sums = `SELECT environment_id, hour, agent_id, model_key, ${sum('events', 'events')},
      ${sum('prompt_tokens', 'promptTokens')}, ${sum('completion_tokens', 'completionTokens')},
      ${sum('total_tokens', 'totalTokens')}, ${sum('cost_nanos', 'costNanos')}
    FROM usage_hours
    WHERE environment_id = ? AND (hour, agent_id, model_key) > (?, ?, ?) AND hour <= ?
    GROUP BY environment_id, hour, agent_id, model_key
    ORDER BY hour, agent_id, model_key LIMIT ?`
  const text = `SELECT u.hour, u.agent_id AS "agentId", u.model_key AS "modelKey", a.name AS "agentName",
      COALESCE(m.model, '') AS model, events, "promptTokens", "completionTokens", "totalTokens", "costNanos"
    FROM (${sums}) u
    JOIN agents a ON a.environment_id = u.environment_id AND a.id = u.agent_id
    LEFT JOIN models m ON m.environment_id = u.environment_id AND m.model_key = u.model_key
    ORDER BY u.hour, u.agent_id, u.model_key`
  const { hour, agentId, modelKey } = after ?? { hour: fromHour, agentId: BEFORE_ALL, modelKey: '' }
  return sql.page(text, [environmentId, hour, agentId, modelKey, toHour, limit + 1], limit)
}
