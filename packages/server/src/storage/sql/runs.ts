import type { RunFilter, RunPage, RunRow } from '../storage.ts'
import { textKey } from './keys.ts'
import type { Sql, SqlValue } from './sql.ts'

const COLUMNS = `r.id, r.run_id AS "runId", r.session_id AS "sessionId", r.status,
  r.started_at AS "startedAt", r.ended_at AS "endedAt", r.agent_id AS "agentId",
  a.external_id AS "agentExternalId", a.name AS "agentName", r.prompt_tokens AS "promptTokens",
  r.completion_tokens AS "completionTokens", r.total_tokens AS "totalTokens", r.cost_nanos AS "costNanos",
  r.event_count AS "eventCount", r.differing_retries AS "differingRetries", r.last_event_at AS "lastEventAt",
  r.received_at AS "receivedAt"`
const WITH_AGENT = 'JOIN agents a ON a.environment_id = r.environment_id AND a.id = r.agent_id'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

export async function findRun(sql: Sql, environmentId: string, runIdOrUuid: string): Promise<RunRow | null> {
  const where = `SELECT ${COLUMNS} FROM runs r ${WITH_AGENT} WHERE r.environment_id = ? AND`
  const run = await sql.get<RunRow>(`${where} r.run_id = ?`, [environmentId, runIdOrUuid])
  if (run !== null || !UUID.test(runIdOrUuid)) return run
  return sql.get(`${where} r.id = ?`, [environmentId, runIdOrUuid.toLowerCase()])
}

export function listRuns(sql: Sql, environmentId: string, filter: RunFilter, page: RunPage): Promise<RunRow[]> {
  const conditions = ['environment_id = ?']
  const params: SqlValue[] = [environmentId]
  const add = (condition: string, ...values: SqlValue[]) => {
    conditions.push(condition)
    params.push(...values)
  }
  if (filter.agentId !== undefined) add('agent_id = ?', filter.agentId)
  if (filter.status !== undefined) add('status = ?', filter.status)
  if (filter.sessionId !== undefined) add('session_key = ?', textKey(filter.sessionId))
  if (filter.from !== undefined) add('started_at >= ?', filter.from)
  if (filter.to !== undefined) add('started_at < ?', filter.to)
  if (page.after !== null) add('(started_at, id) < (?, ?)', page.after.startedAt, page.after.id)
  const order = (alias: string) => `ORDER BY ${alias}started_at DESC, ${alias}id DESC`
  // The page is cut before agents are joined: else SQLite may start from the agents and sort all their runs.
  const runs = `SELECT * FROM runs WHERE ${conditions.join(' AND ')} ${order('')} LIMIT ?`
  return sql.all(`SELECT ${COLUMNS} FROM (${runs}) r ${WITH_AGENT} ${order('r.')}`, [...params, page.limit])
}
