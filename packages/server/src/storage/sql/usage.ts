import type { UsageHourRow } from '../runs.ts'
import type { Sql } from './sql.ts'
import { MAX_SUM } from './sums.ts'

const sum = (column: string, name: string) => `CASE WHEN SUM(u.${column}) > ${MAX_SUM} THEN ${MAX_SUM}
    ELSE CAST(SUM(u.${column}) AS BIGINT) END AS "${name}"`

export function readUsage(sql: Sql, environmentId: string, fromHour: number, toHour: number): Promise<UsageHourRow[]> {
  const text = `SELECT u.hour, u.agent_id AS "agentId", a.name AS "agentName", COALESCE(m.model, '') AS model,
    ${sum('events', 'events')}, ${sum('prompt_tokens', 'promptTokens')},
    ${sum('completion_tokens', 'completionTokens')}, ${sum('total_tokens', 'totalTokens')},
    ${sum('cost_nanos', 'costNanos')}
    FROM usage_hours u
    JOIN agents a ON a.environment_id = u.environment_id AND a.id = u.agent_id
    LEFT JOIN models m ON m.environment_id = u.environment_id AND m.model_key = u.model_key
    WHERE u.environment_id = ? AND u.hour BETWEEN ? AND ?
    GROUP BY u.hour, u.agent_id, a.name, u.model_key, m.model
    ORDER BY u.hour, u.agent_id, COALESCE(m.model, '')`
  return sql.all(text, [environmentId, fromHour, toHour])
}
