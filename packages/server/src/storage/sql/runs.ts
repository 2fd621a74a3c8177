import { look, type Acts } from './act.ts'
import { LIMITS } from '@tacho/contract/limits.ts'
import type { Page } from '../page.ts'
import type { RunFilter, RunPage, RunRow, RunStore } from '../runs.ts'
import { firstRows } from './first-rows.ts'
import { agentKey, textKey } from './keys.ts'
import { prefixRange } from './prefix-range.ts'
import type { Sql, SqlValue } from './sql.ts'

export const runsActs = {
  findRun: look(findRun),
  listRuns: look(listRuns),
} satisfies Partial<Acts<RunStore>>

const COLUMNS = `r.id, r.run_id AS "runId", r.session_id AS "sessionId", r.status,
  r.started_at AS "startedAt", r.ended_at AS "endedAt", r.agent_id AS "agentId",
  a.external_id AS "agentExternalId", a.name AS "agentName", r.prompt_tokens AS "promptTokens",
  r.completion_tokens AS "completionTokens", r.total_tokens AS "totalTokens", r.cost_nanos AS "costNanos",
  r.event_count AS "eventCount", r.differing_retries AS "differingRetries", r.last_event_at AS "lastEventAt",
  r.received_at AS "receivedAt"`
const WITH_AGENT = 'JOIN agents a ON a.environment_id = r.environment_id AND a.id = r.agent_id'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/**
 * Conditions for one run of an environment, by external and by internal id, given twice. Not by equality: for a new table,
 * PostgreSQL may use any of the tenant's indexes. Only one has this order.
 */
export const OF_RUN_ID = 'run_id >= ? AND run_id <= ? ORDER BY run_id LIMIT 1'
export const OF_UUID = 'id >= ? AND id <= ? ORDER BY id LIMIT 1'

export async function findRun(sql: Sql, environmentId: string, runIdOrUuid: string): Promise<RunRow | null> {
  return (await findByRunId(sql, environmentId, runIdOrUuid)) ?? findByUuid(sql, environmentId, runIdOrUuid)
}

export function findByRunId(sql: Sql, environmentId: string, runId: string): Promise<RunRow | null> {
  const text = `SELECT ${COLUMNS} FROM (SELECT * FROM runs WHERE environment_id = ? AND ${OF_RUN_ID}) r ${WITH_AGENT}`
  return sql.get(text, [environmentId, runId, runId])
}

export async function findByUuid(sql: Sql, environmentId: string, uuid: string): Promise<RunRow | null> {
  if (!UUID.test(uuid)) return null
  const text = `SELECT ${COLUMNS} FROM (SELECT * FROM runs WHERE environment_id = ? AND ${OF_UUID}) r ${WITH_AGENT}`
  return sql.get(text, [environmentId, uuid.toLowerCase(), uuid.toLowerCase()])
}

export async function listRuns(
  sql: Sql,
  environmentId: string,
  filter: RunFilter,
  page: RunPage,
): Promise<Page<RunRow>> {
  const { search, agent, ...rest } = filter
  const list = (ofAgent: PlainFilter): Promise<Page<RunRow>> =>
    search === undefined
      ? pageOfRuns(sql, environmentId, ofAgent, page)
      : searchRuns(sql, environmentId, search, ofAgent, page)
  if (agent === undefined) return list(rest)
  const found: Page<RunRow>[] = []
  for (const agentId of await agentsNamed(sql, environmentId, agent)) {
    if (rest.agentId === undefined || rest.agentId === agentId) found.push(await list({ ...rest, agentId }))
  }
  return newestRuns(found, page)
}

/** What one statement can search for. */
type PlainFilter = Omit<RunFilter, 'search' | 'agent'>

/** The newest runs of several pages. Ends at the end of a page that has more, because its next rows come first. */
function newestRuns(pages: Page<RunRow>[], { limit }: RunPage): Page<RunRow> {
  const ends = pages.flatMap(({ rows, more }) => (more ? rows.slice(-1) : []))
  const runs = [...new Map(pages.flatMap(({ rows }) => rows).map((run) => [run.id, run])).values()]
  const known = runs.filter((run) => ends.every((end) => byNewest(run, end) <= 0)).sort(byNewest)
  const page = firstRows(known, limit)
  return { rows: page.rows, more: page.more || ends.length > 0 }
}

function byNewest(one: RunRow, other: RunRow): number {
  if (one.startedAt !== other.startedAt) return other.startedAt - one.startedAt
  return one.id === other.id ? 0 : one.id < other.id ? 1 : -1
}

/** One bounded page per way to match the text, in order. The newest of all of them are the page. */
async function searchRuns(
  sql: Sql,
  environmentId: string,
  search: string,
  filter: PlainFilter,
  page: RunPage,
): Promise<Page<RunRow>> {
  const found = [await pageOfRuns(sql, environmentId, filter, page, namedRuns(environmentId, search))]
  // No run has two sessions or two agents, so skip the query. It would scan all runs of one of them.
  if (filter.sessionId === undefined || filter.sessionId === search) {
    found.push(await pageOfRuns(sql, environmentId, { ...filter, sessionId: search }, page))
  }
  for (const agentId of await agentsNamed(sql, environmentId, search)) {
    if (filter.agentId !== undefined && filter.agentId !== agentId) continue
    found.push(await pageOfRuns(sql, environmentId, { ...filter, agentId }, page))
  }
  return newestRuns(found, page)
}

interface RunSource {
  text: string
  params: SqlValue[]
}

const ALL_RUNS: RunSource = { text: 'runs', params: [] }

/** The index of external ids is not ordered by start, so at most this many are sorted. */
function namedRuns(environmentId: string, prefix: string): RunSource {
  const { from, below } = prefixRange(prefix)
  const range = below === null ? 'run_id >= ?' : 'run_id >= ? AND run_id < ?'
  const runs = `SELECT * FROM runs WHERE environment_id = ? AND ${range} ORDER BY run_id DESC LIMIT ?`
  const texts = below === null ? [from] : [from, below]
  return { text: `(${runs}) named`, params: [environmentId, ...texts, LIMITS.searchedRunIds] }
}

/** Agents with that external id or name. No index has the names of agents with an external id. */
async function agentsNamed(sql: Sql, environmentId: string, name: string): Promise<Set<string>> {
  // Not IN, for which SQLite would scan every agent.
  const ofKey = 'SELECT id FROM agents WHERE environment_id = ? AND agent_key = ?'
  const byKey = await sql.all<{ id: string }>(`${ofKey} UNION ALL ${ofKey}`, [
    environmentId,
    agentKey(name, ''),
    environmentId,
    agentKey(null, name),
  ])
  const newest = 'SELECT id, name FROM agents WHERE environment_id = ? ORDER BY id DESC LIMIT ?'
  const byName = await sql.all<{ id: string }>(
    `SELECT id FROM (${newest}) named WHERE name = ? ORDER BY id DESC LIMIT ?`,
    [environmentId, LIMITS.searchedAgents, name, LIMITS.searchedAgentsOfName],
  )
  return new Set([...byKey, ...byName].map(({ id }) => id))
}

function pageOfRuns(
  sql: Sql,
  environmentId: string,
  filter: PlainFilter,
  page: RunPage,
  source = ALL_RUNS,
): Promise<Page<RunRow>> {
  const conditions = ['environment_id = ?']
  const params: SqlValue[] = [...source.params, environmentId]
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
  // Cut the page before agents are joined. Otherwise SQLite may start from the agents and sort all their runs.
  const runs = `SELECT * FROM ${source.text} WHERE ${conditions.join(' AND ')} ${order('')} LIMIT ?`
  const text = `SELECT ${COLUMNS} FROM (${runs}) r ${WITH_AGENT} ${order('r.')}`
  return sql.page(text, [...params, page.limit + 1], page.limit)
}
