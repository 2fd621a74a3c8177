import { HOUR_MS } from '../../engine/hours.ts'
import type { UsageHourRow, UsagePage } from '../../runs/runs.ts'
import type { UncostedSum } from '../../runs/uncosted.ts'
import { NIL_UUID } from '../../engine/uuid.ts'
import { read } from '../engine/act.ts'
import type { Sql } from '../engine/sql.ts'
import { sumsOf, USAGE_COLUMNS } from './sums.ts'
import { readUncostedSums } from './uncosted-sums.ts'

export const usageActs = read({ readUsage })

/** `fromHour` and `toHour`: starts of hours, both inclusive. By hour, agent and model key. */
async function readUsage(sql: Sql, environmentId: string, fromHour: number, toHour: number, page: UsagePage) {
  // Cut the page before agents and models are joined, in primary key order: only its rows are summed.
  // Each table gets the environment as a parameter: Citus does not derive it through the grouped subquery.
  const sums = `SELECT hour, agent_id, model_key, ${sumsOf(['events', ...USAGE_COLUMNS])}
    FROM usage_hours
    WHERE environment_id = :env AND (hour, agent_id, model_key) > (:hour, :agentId, :modelKey) AND hour <= :toHour
    GROUP BY hour, agent_id, model_key HAVING SUM(events) > 0
    ORDER BY hour, agent_id, model_key LIMIT :most`
  const text = `SELECT u.hour, u.agent_id AS "agentId", u.model_key AS "modelKey", COALESCE(a.display_name, a.name) AS "agentName",
      COALESCE(m.model, '') AS model, events, "promptTokens", "completionTokens", "totalTokens", "costNanos"
    FROM (${sums}) u
    JOIN agents a ON a.environment_id = :env AND a.id = u.agent_id
    LEFT JOIN models m ON m.environment_id = :env AND m.model_key = u.model_key
    ORDER BY u.hour, u.agent_id, u.model_key`
  const { hour, agentId, modelKey } = page.after ?? { hour: fromHour, agentId: NIL_UUID, modelKey: '' }
  const params = { env: environmentId, hour, agentId, modelKey, toHour, most: page.limit + 1 }
  const { rows, more } = await sql.page<Omit<UsageHourRow, 'uncosted'>>(text, params, page.limit)
  const uncosted = await uncostedOfHours(sql, environmentId, rows)
  const withUncosted = rows.map((row): UsageHourRow => {
    return { ...row, uncosted: uncosted.get(`${row.hour} ${row.agentId} ${row.model}`) ?? [] }
  })
  return { rows: withUncosted, more }
}

async function uncostedOfHours(sql: Sql, environmentId: string, rows: readonly Pick<UsageHourRow, 'hour'>[]) {
  const [first, last] = [rows[0]?.hour, rows.at(-1)?.hour]
  if (first === undefined || last === undefined) return new Map<string, UncostedSum[]>()
  const hours = { from: first, to: last + HOUR_MS, start: 0, stepMs: HOUR_MS }
  const sums = await readUncostedSums(sql, environmentId, { key: 'agent_id', ...hours })
  return Map.groupBy(sums, ({ at, key, model }) => `${at} ${key} ${model}`)
}
