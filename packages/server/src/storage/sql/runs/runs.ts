import { look } from '../act.ts'
import { LIMITS } from '@tacho/contract/limits.ts'
import type { Page } from '../../page.ts'
import type { GapFilter, GapRow, RunFilter, RunPage, RunPlace, RunRow, RunSift, RunsRead } from '../../runs.ts'
import { soughtTrait, TRAIT_KINDS } from '../../traits.ts'
import { agentKey, textKey } from '../keys.ts'
import { prefixRange } from '../rows/prefix-range.ts'
import type { Sql, SqlValue } from '../sql.ts'
import { rankedWalk } from './ranked-runs.ts'
import { byRank, type Part, type RunWalk } from './run-walk.ts'
import { scoreConditions, scoreDirection, scoreWalk } from './scored-runs.ts'
import { stalledRuns } from './stalled-rule.ts'
import { firstRows } from '../../page.ts'

export const runsActs = {
  findRun: look(findRun),
  listRuns: look(listRuns),
  listGaps: look(listGaps),
}

const GAP_COLUMNS = `r.id, r.run_id AS "runId", r.started_at AS "startedAt", r.agent_id AS "agentId",
  a.name AS "agentName", a.display_name AS "agentDisplayName", r.recorders`
const COLUMNS = `${GAP_COLUMNS}, r.session_id AS "sessionId", r.status,
  r.ended_at AS "endedAt", a.external_id AS "agentExternalId", r.prompt_tokens AS "promptTokens",
  r.completion_tokens AS "completionTokens", r.total_tokens AS "totalTokens", r.cost_nanos AS "costNanos",
  r.event_count AS "eventCount", r.differing_retries AS "differingRetries", r.error_count AS "errorCount", r.traits, r.uncosted, r.failure, r.failure_message AS "failureMessage", r.said, r.last_event_at AS "lastEventAt",
  r.received_at AS "receivedAt", r.pinned_at AS "pinnedAt", r.rule_closed_at AS "ruleClosedAt", r.payloads_removed AS "payloadsRemoved"`
const WITH_AGENT = 'JOIN agents a ON a.environment_id = r.environment_id AND a.id = r.agent_id'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/**
 * One run of an environment, by external and by internal id. Not by equality: for a new table, PostgreSQL may use any
 * of the tenant's indexes. Only one has this order.
 */
export const OF_RUN_ID = 'run_id >= :run AND run_id <= :run ORDER BY run_id LIMIT 1'
export const OF_UUID = 'id >= :run AND id <= :run ORDER BY id LIMIT 1'

export async function findRun(sql: Sql, environmentId: string, runIdOrUuid: string): Promise<RunRow | null> {
  return (await findByRunId(sql, environmentId, runIdOrUuid)) ?? findByUuid(sql, environmentId, runIdOrUuid)
}

export function findByRunId(sql: Sql, environmentId: string, runId: string): Promise<RunRow | null> {
  const text = `SELECT ${COLUMNS} FROM (SELECT * FROM runs WHERE environment_id = :env AND ${OF_RUN_ID}) r ${WITH_AGENT}`
  return sql.get(text, { env: environmentId, run: runId })
}

export async function findByUuid(sql: Sql, environmentId: string, uuid: string): Promise<RunRow | null> {
  if (!UUID.test(uuid)) return null
  const text = `SELECT ${COLUMNS} FROM (SELECT * FROM runs WHERE environment_id = :env AND ${OF_UUID}) r ${WITH_AGENT}`
  return sql.get(text, { env: environmentId, run: uuid.toLowerCase() })
}

/** Newest startedAt first, then internal id, both descending. */
export async function listRuns(sql: Sql, environmentId: string, filter: SqlFilter, page: RunPage): Promise<RunsRead> {
  const { search, agent, ...rest } = filter
  if (filter.onlyOutcomesEnd && filter.status === 'RUNNING') {
    const { status, ...others } = filter
    const silent = () => listRuns(sql, environmentId, { ...others, isRuleClosed: true }, page)
    const before = await silent()
    const open = await listRuns(sql, environmentId, { ...others, status, onlyOutcomesEnd: false }, page)
    // Again, because the rule may close a run meanwhile, and an event may open it.
    return firstRuns([before, open, await silent()], filter, page)
  }
  const list = (ofAgent: PlainFilter): Promise<RunsRead> =>
    search === undefined
      ? pageOfRuns(sql, environmentId, ofAgent, page)
      : searchRuns(sql, environmentId, search, ofAgent, page)
  if (agent === undefined) return list(rest)
  const found: RunsRead[] = []
  for (const agentId of await agentsNamed(sql, environmentId, agent)) {
    if (rest.agentId === undefined || rest.agentId === agentId) found.push(await list({ ...rest, agentId }))
  }
  return firstRuns(found, filter, page)
}

export async function listGaps(
  sql: Sql,
  environmentId: string,
  filter: GapFilter,
  page: RunPage,
): Promise<Page<GapRow>> {
  const { text, params } = runsThat(sql, environmentId, { ...filter, hasGaps: true }, page)
  return sql.page(withAgents(GAP_COLUMNS, text, newestFirst), [...params, page.limit + 1], page.limit)
}

type PlainFilter = Omit<SqlFilter, 'search' | 'agent'>

interface SqlFilter extends RunFilter {
  isRuleClosed?: boolean
}

/** Ends where a page ends that has more, because its next rows come first. */
function firstRuns(pages: RunsRead[], { scoreOrder, rankedBy }: RunFilter, { limit }: RunPage): RunsRead {
  const inOrder =
    rankedBy !== undefined ? byRank('DESC') : scoreOrder === undefined ? byNewest : byRank(scoreDirection(scoreOrder))
  const ends = pages.flatMap(({ rows, more, lookedTo }): RunPlace[] => (more ? [lookedTo ?? rows.at(-1)!] : []))
  const runs = [...new Map(pages.flatMap(({ rows }) => rows).map((run) => [run.id, run])).values()]
  const known = runs.filter((run) => ends.every((end) => inOrder(run, end) <= 0)).sort(inOrder)
  const page = firstRows(known, limit)
  const [end] = ends.sort(inOrder)
  return page.more || end === undefined ? page : { rows: page.rows, more: true, lookedTo: end }
}

function byNewest(one: RunPlace, other: RunPlace): number {
  if (one.startedAt !== other.startedAt) return other.startedAt - one.startedAt
  return one.id === other.id ? 0 : one.id < other.id ? 1 : -1
}

/** One bounded page per way to match the text. The newest of all of them are the page. */
async function searchRuns(
  sql: Sql,
  environmentId: string,
  search: string,
  filter: PlainFilter,
  page: RunPage,
): Promise<RunsRead> {
  const found = [await pageOfRuns(sql, environmentId, filter, page, namedRuns(environmentId, search))]
  // No run has two sessions or two agents, so skip the query. It would scan all runs of one of them.
  if (filter.sessionId === undefined || filter.sessionId === search) {
    found.push(await pageOfRuns(sql, environmentId, { ...filter, sessionId: search }, page))
  }
  for (const agentId of await agentsNamed(sql, environmentId, search)) {
    if (filter.agentId !== undefined && filter.agentId !== agentId) continue
    found.push(await pageOfRuns(sql, environmentId, { ...filter, agentId }, page))
  }
  return firstRuns(found, filter, page)
}

const ALL_RUNS: Part = { text: 'runs', params: [] }

/** The index of external ids is not ordered by start, so at most this many are sorted. */
function namedRuns(environmentId: string, prefix: string): Part {
  const { from, below } = prefixRange(prefix)
  const range = below === null ? 'run_id >= ?' : 'run_id >= ? AND run_id < ?'
  const runs = `SELECT * FROM runs WHERE environment_id = ? AND ${range} ORDER BY run_id DESC LIMIT ?`
  const texts = below === null ? [from] : [from, below]
  return { text: `(${runs}) named`, params: [environmentId, ...texts, LIMITS.searchedRunIds] }
}

/** Agents with that external id or name, reported or given. No index has the names of agents with an external id. */
async function agentsNamed(sql: Sql, environmentId: string, name: string): Promise<Set<string>> {
  // Not IN, for which SQLite would scan every agent.
  const ofKey = 'SELECT id FROM agents WHERE environment_id = ? AND agent_key = ?'
  const byKey = await sql.all<{ id: string }>(`${ofKey} UNION ALL ${ofKey}`, [
    environmentId,
    agentKey(name, ''),
    environmentId,
    agentKey(null, name),
  ])
  const newest = 'SELECT id, name, display_name FROM agents WHERE environment_id = ? ORDER BY id DESC LIMIT ?'
  const byName = await sql.all<{ id: string }>(
    `SELECT id FROM (${newest}) named WHERE name = ? OR display_name = ? ORDER BY id DESC LIMIT ?`,
    [environmentId, LIMITS.searchedAgents, name, name, LIMITS.searchedAgentsOfName],
  )
  return new Set([...byKey, ...byName].map(({ id }) => id))
}

function askedRuns(dialect: Sql['dialect'], environmentId: string, approvals: number): Part {
  const newest = `SELECT run_id FROM approvals WHERE environment_id = ? ORDER BY created_at DESC, id DESC LIMIT ?`
  const asked = `(SELECT DISTINCT run_id FROM (${newest}) newest WHERE run_id IS NOT NULL) asked`
  // PostgreSQL finds each run by the order of the index, as in OF_RUN_ID.
  const text =
    dialect === 'sqlite'
      ? `(SELECT runs.* FROM ${asked} CROSS JOIN runs ON runs.environment_id = ? AND runs.run_id = asked.run_id) runs`
      : `(SELECT runs.* FROM ${asked}, LATERAL (SELECT * FROM runs WHERE environment_id = ?
          AND run_id >= asked.run_id AND run_id <= asked.run_id ORDER BY run_id LIMIT 1) runs) runs`
  return { text, params: [environmentId, approvals, environmentId] }
}

async function pageOfRuns(
  sql: Sql,
  environmentId: string,
  filter: PlainFilter,
  page: RunPage,
  named?: Part,
): Promise<RunsRead> {
  const { sift } = filter
  const walk = await walkOf(sql, environmentId, filter, page, named)
  const order = walk?.order ?? newestFirst
  const columns = walk === null ? COLUMNS : `${COLUMNS}, r.rank`
  const { text: runs, params } = runsThat(sql, environmentId, filter, page, named, walk)
  if (sift === undefined) {
    const found = await sql.page<RunRow>(withAgents(columns, runs, order), [...params, page.limit + 1], page.limit)
    return walk === null || walk.last === null ? found : continued(sql, found, walk.last)
  }
  params.push(sift.runsLookedAt)
  const stalled = filter.stalledAt === undefined ? null : await stalledRuns(sql, environmentId, filter.stalledAt)
  const further = [...(stalled === null ? [] : [stalled]), ...scoreConditions(sql, environmentId, filter)]
  const matches = [SIFT[sql.dialect], ...further.map(({ text }) => text)].join(' AND ')
  const sifted = `SELECT * FROM (${runs}) page WHERE ${matches} ${order('')} LIMIT ?`
  const values = [...params, ...siftValues(sift), ...further.flatMap((part) => part.params), page.limit + 1]
  const found = await sql.page<RunRow>(withAgents(columns, sifted, order), values, page.limit)
  const last = {
    text: `SELECT started_at AS "startedAt", id FROM (${runs}) page ${order('')} LIMIT 1 OFFSET ?`,
    params: [...params, sift.runsLookedAt - 1],
  }
  return continued(sql, found, walk === null ? last : walk.last)
}

/** Runs that do not match were examined too; continue after them. `last`: null if all were. */
async function continued(sql: Sql, found: Page<RunRow>, last: Part | null): Promise<RunsRead> {
  if (found.more || last === null) return found
  const lookedTo = await sql.get<RunPlace>(last.text, last.params)
  return lookedTo === null ? found : { rows: found.rows, more: true, lookedTo }
}

async function walkOf(
  sql: Sql,
  environmentId: string,
  filter: PlainFilter,
  page: RunPage,
  named: Part | undefined,
): Promise<RunWalk | null> {
  const { sift, score, scoreOrder, rankedBy } = filter
  if (rankedBy !== undefined) {
    return rankedWalk(sql, environmentId, rankedBy, await fewRuns(sql, environmentId, filter, named), page)
  }
  if (!sift || !score || !scoreOrder) return null
  return scoreWalk(sql, environmentId, { name: score.name, order: scoreOrder, looked: sift.runsLookedAt }, page)
}

/** Runs that an index finds, if they are few; null: they are many; 'all': there is no such filter. */
async function fewRuns(
  sql: Sql,
  environmentId: string,
  filter: PlainFilter,
  named: Part | undefined,
): Promise<Part | null | 'all'> {
  const { agentId, status, sessionId, hasGaps, approvalsLookedAt, from, to, sift, rankedBy } = filter
  const isBounded = named !== undefined || approvalsLookedAt !== undefined
  const isFiltered = [agentId, status, sessionId, hasGaps, from, to].some((value) => value !== undefined)
  if (!isBounded && !isFiltered) return sift === undefined ? 'all' : null
  const looked = rankedBy?.runsLookedAt ?? 0
  const { text, params } = runsThat(sql, environmentId, filter, { limit: looked, after: null }, named)
  const few = { text, params: [...params, looked] }
  if (isBounded) return few
  const more = await sql.get(`SELECT 1 AS one FROM (${text}) runs LIMIT 1 OFFSET ?`, [...params, looked + 1, looked])
  return more === null ? few : null
}

/** `alias`: that of the runs, with a dot. */
type RunOrder = (alias: string) => string

const newestFirst: RunOrder = (alias) => `ORDER BY ${alias}started_at DESC, ${alias}id DESC`

// Cut the page before agents are joined. Otherwise SQLite may start from the agents and sort all their runs.
const withAgents = (columns: string, runs: string, order: RunOrder) =>
  `SELECT ${columns} FROM (${runs}) r ${WITH_AGENT} ${order('r.')}`

/** Runs that a filter without a sift keeps. The last parameter, the limit, is still missing. */
function runsThat(
  { dialect }: Sql,
  environmentId: string,
  filter: PlainFilter,
  { after }: RunPage,
  named?: Part,
  walk: RunWalk | null = null,
): Part {
  const { approvalsLookedAt } = filter
  const asked = approvalsLookedAt === undefined ? null : askedRuns(dialect, environmentId, approvalsLookedAt)
  const source = walk?.runs ?? named ?? asked ?? ALL_RUNS
  const conditions = ['environment_id = ?']
  const params: SqlValue[] = [...source.params, environmentId]
  const add = (condition: string, ...values: SqlValue[]) => {
    conditions.push(condition)
    params.push(...values)
  }
  if (filter.agentId !== undefined) add('agent_id = ?', filter.agentId)
  if (filter.status !== undefined) add(filter.hasGaps ? UNINDEXED_STATUS[dialect] : 'status = ?', filter.status)
  if (filter.isRuleClosed) add('rule_closed_at IS NOT NULL')
  else if (filter.onlyOutcomesEnd && filter.status !== undefined) add('rule_closed_at IS NULL')
  if (filter.sessionId !== undefined) add('session_key = ?', textKey(filter.sessionId))
  // A literal, for the partial indexes.
  if (filter.hasGaps) add('has_gaps = 1')
  for (const other of [named, asked]) {
    if (other && other !== source) add(`run_id IN (SELECT run_id FROM ${other.text})`, ...other.params)
  }
  if (filter.from !== undefined) add('started_at >= ?', filter.from)
  if (filter.to !== undefined) add('started_at < ?', filter.to)
  if (after !== null && walk === null) add('(started_at, id) < (?, ?)', after.startedAt, after.id)
  return {
    text: `SELECT * FROM ${source.text} WHERE ${conditions.join(' AND ')} ${(walk?.order ?? newestFirst)('')} LIMIT ?`,
    params,
  }
}

/** Few runs have gaps, but all may have the status. */
const UNINDEXED_STATUS: Record<Sql['dialect'], string> = { sqlite: '+status = ?', postgres: `status || '' = ?` }

/** One text for all sifts: each text is prepared once and kept. Every text contains the empty text. */
const siftText = (position: (text: string) => string): string =>
  [
    'cost_nanos >= ? AND COALESCE(ended_at, last_event_at) - started_at >= ? AND error_count >= ?',
    ...TRAIT_KINDS.map(() => position('traits')),
  ].join(' AND ')
const SIFT: Record<Sql['dialect'], string> = {
  sqlite: siftText((text) => `instr(${text}, ?) > 0`),
  postgres: siftText((text) => `strpos(${text}, ?) > 0`),
}

function siftValues({ costNanosMin, lengthMsMin, errorsMin, traits }: RunSift): SqlValue[] {
  const sought = TRAIT_KINDS.map((kind) => {
    const name = traits[kind]
    return name === undefined ? '' : soughtTrait(kind, name)
  })
  return [costNanosMin, lengthMsMin, errorsMin, ...sought]
}
