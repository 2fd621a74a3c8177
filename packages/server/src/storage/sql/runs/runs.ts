import { LIMITS } from '@tacho/contract/engine/limits.ts'
import {
  lookup,
  contains,
  conditionsGiven,
  filterConditions,
  selectList,
  type FilterConditions,
  type NamedParams,
  type SqlFragment,
  type Sql,
  eventEnvironment,
} from '../engine/sql.ts'
import { RUN_FILTERS, runFiltersBy, type RunFiltersBy } from '@tacho/contract/runs/run-filters.ts'
import { firstRows, type Page } from '../../engine/page.ts'
import {
  type GapFilter,
  type GapRow,
  type RunCriteria,
  type RunPage,
  type RunPlace,
  type RunRow,
  type RunScan,
  type RunsRead,
  soughtTrait,
} from '../../runs/runs.ts'
import { isUuid } from '../../engine/uuid.ts'
import { agentKey, textKey } from '../engine/keys.ts'
import { prefixRange } from '../engine/rows.ts'
import {
  endedByNumber,
  byRank,
  runsOf,
  type RunOrder,
  type RankedRuns,
  scoreConditions,
  scoreDirection,
  runsByScore,
} from './ranked-runs.ts'
import { DEFAULT_STALLED_RULE, type StalledRuleRow } from '../../data/retention.ts'
import { takeSum, withSum } from '../engine/row-sums.ts'

export const runsActs = lookup({ findRun, listRuns, listGaps })

const GAP_COLUMNS = `${selectList('id run_id started_at agent_id recorders', 'r.')},
  a.name AS "agentName", a.display_name AS "agentDisplayName"`
const COLUMNS = `${GAP_COLUMNS}, a.external_id AS "agentExternalId", ${selectList(
  `session_id user_id status ended_at prompt_tokens completion_tokens total_tokens cost_nanos event_count differing_retries
    error_count traits uncosted failure failure_message said last_event_at received_at pinned_at rule_closed_at
    payloads_removed`,
  'r.',
)}`
const WITH_AGENT = 'JOIN agents a ON a.environment_id = r.environment_id AND a.id = r.agent_id'

/**
 * Select one run of an environment, by external and by internal id. For an equality on a new table, PostgreSQL may use
 * any of the tenant's indexes. Only one index has this order.
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
  if (!isUuid(uuid)) return null
  const text = `SELECT ${COLUMNS} FROM (SELECT * FROM runs WHERE environment_id = :env AND ${OF_UUID}) r ${WITH_AGENT}`
  return sql.get(text, { env: environmentId, run: uuid.toLowerCase() })
}

export async function listRuns(sql: Sql, environmentId: string, filter: SqlFilter, page: RunPage): Promise<RunsRead> {
  const { q, agent, ...otherFilters } = filter
  if (filter.onlyOutcomesEnd && filter.status === 'RUNNING') {
    const { status, ...others } = filter
    const silent = () => listRuns(sql, environmentId, { ...others, isRuleClosed: true }, page)
    const before = await silent()
    const open = await listRuns(sql, environmentId, { ...others, status, onlyOutcomesEnd: false }, page)
    // Read the rule-closed runs again: the rule may have closed a run between the first two reads.
    return firstRuns([before, open, await silent()], filter, page)
  }
  const list = (ofAgent: PlainFilter): Promise<RunsRead> =>
    q === undefined ? pageOfRuns(sql, environmentId, ofAgent, page) : searchRuns(sql, environmentId, q, ofAgent, page)
  if (agent === undefined) return list(otherFilters)
  const foundPages: RunsRead[] = []
  for (const agentId of await agentsNamed(sql, environmentId, agent)) {
    if (otherFilters.agentId === undefined || otherFilters.agentId === agentId)
      foundPages.push(await list({ ...otherFilters, agentId }))
  }
  return firstRuns(foundPages, filter, page)
}

async function listGaps(sql: Sql, environmentId: string, filter: GapFilter, page: RunPage) {
  const { text, params } = await runsWhere(sql, environmentId, { ...filter, completeness: 'GAPS' }, page)
  return sql.page<GapRow>(withAgents(GAP_COLUMNS, text, newestFirst), { ...params, most: page.limit + 1 }, page.limit)
}

type PlainFilter = Omit<SqlFilter, 'q' | 'agent'>

interface SqlFilter extends RunCriteria {
  isRuleClosed?: boolean
}

/** Merges pages. If a page has more rows, the result ends at the end of that page, because those rows come next. */
function firstRuns(pages: RunsRead[], { scoreOrder, rankedBy }: RunCriteria, { limit }: RunPage): RunsRead {
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

async function searchRuns(sql: Sql, environmentId: string, search: string, filter: PlainFilter, page: RunPage) {
  const foundPages = [await pageOfRuns(sql, environmentId, filter, page, namedRuns(environmentId, search))]
  // No run has two sessions or two agents, so skip the query. It would scan all runs of one of them.
  if (filter.session === undefined || filter.session === search) {
    foundPages.push(await pageOfRuns(sql, environmentId, { ...filter, session: search }, page))
  }
  for (const agentId of await agentsNamed(sql, environmentId, search)) {
    if (filter.agentId !== undefined && filter.agentId !== agentId) continue
    foundPages.push(await pageOfRuns(sql, environmentId, { ...filter, agentId }, page))
  }
  return firstRuns(foundPages, filter, page)
}

const ALL_RUNS: SqlFragment = { text: 'runs', params: {} }

/** The index of external ids is not ordered by start, so at most this many are sorted. */
function namedRuns(environmentId: string, prefix: string): SqlFragment {
  const { from, below } = prefixRange(prefix)
  const params = { env: environmentId, prefix: from, prefixEnd: below }
  const range = conditionsGiven(['run_id >= :prefix', 'run_id < :prefixEnd'], params)
  const runs = `SELECT * FROM runs WHERE environment_id = :env AND ${range}
    ORDER BY run_id DESC LIMIT ${LIMITS.searchedRunIds}`
  return { text: `(${runs}) named`, params }
}

/**
 * Finds agents by id or name. No index has the names of agents that have an external id, so only the newest are
 * examined.
 */
async function agentsNamed(sql: Sql, environmentId: string, name: string): Promise<Set<string>> {
  // Two lookups instead of IN, for which SQLite would scan every agent.
  const ofKey = (key: string) => `SELECT id FROM agents WHERE environment_id = :env AND agent_key = ${key}`
  const keys = { env: environmentId, byId: agentKey(name, ''), byName: agentKey(null, name) }
  const byKey = await sql.all<{ id: string }>(`${ofKey(':byId')} UNION ALL ${ofKey(':byName')}`, keys)
  const newest = `SELECT id, name, display_name FROM agents WHERE environment_id = :env
    ORDER BY id DESC LIMIT ${LIMITS.searchedAgents}`
  const byName = await sql.all<{ id: string }>(
    `SELECT id FROM (${newest}) named WHERE name = :name OR display_name = :name
      ORDER BY id DESC LIMIT ${LIMITS.searchedAgentsOfName}`,
    { env: environmentId, name },
  )
  return new Set([...byKey, ...byName].map(({ id }) => id))
}

function askedRuns(sql: Sql, environmentId: string, approvals: number): SqlFragment {
  const newest = `SELECT run_id FROM approvals WHERE environment_id = :env
    ORDER BY created_at DESC, id DESC LIMIT :approvals`
  const asked = `SELECT DISTINCT run_id FROM (${newest}) newest WHERE run_id IS NOT NULL`
  return { text: runsOf(sql, asked, 'asked', 'run_id'), params: { env: environmentId, approvals } }
}

async function pageOfRuns(sql: Sql, environmentId: string, filter: PlainFilter, page: RunPage, named?: SqlFragment) {
  const { scan } = filter
  const ranked = await rankedRunsOf(sql, environmentId, filter, page, named)
  const order = ranked?.order ?? newestFirst
  const columns = ranked === null ? COLUMNS : `${COLUMNS}, r.rank`
  const { text: runs, params } = await runsWhere(sql, environmentId, filter, page, named, ranked)
  if (scan === undefined) {
    const all = { ...params, most: page.limit + 1 }
    const plainPage = await sql.page<RunRow>(withAgents(columns, runs, order), all, page.limit)
    return continued(sql, plainPage, ranked?.last ?? null)
  }
  const examined = { ...params, most: scan.runsLookedAt }
  const stalled = filter.stalledAt === undefined ? null : await stalledRuns(sql, environmentId, filter.stalledAt)
  const further = [...(stalled === null ? [] : [stalled]), ...scoreConditions(sql, filter)]
  const matches = [scanCondition(sql), ...further.map(({ text }) => text)].join(' AND ')
  const scanned = `SELECT * FROM (${runs}) page WHERE ${matches} ${order('')} LIMIT :limit`
  const values = Object.assign({ ...examined, ...scanParams(scan) }, ...further.map((condition) => condition.params))
  const scannedPage = await sql.page<RunRow>(
    withAgents(columns, scanned, order),
    { ...values, limit: page.limit + 1 },
    page.limit,
  )
  const last = {
    text: `SELECT started_at AS "startedAt", id FROM (${runs}) page ${order('')} LIMIT 1 OFFSET :past`,
    params: { ...examined, past: scan.runsLookedAt - 1 },
  }
  return continued(sql, scannedPage, ranked === null ? last : ranked.last)
}

/** Runs that do not match were examined too; continue after them. */
async function continued(sql: Sql, runsRead: Page<RunRow>, last: SqlFragment | null): Promise<RunsRead> {
  if (runsRead.more || last === null) return runsRead
  const lookedTo = await sql.get<RunPlace>(last.text, last.params)
  return lookedTo === null ? runsRead : { rows: runsRead.rows, more: true, lookedTo }
}

async function rankedRunsOf(
  sql: Sql,
  environmentId: string,
  filter: PlainFilter,
  page: RunPage,
  named: SqlFragment | undefined,
) {
  const { scan, score, scoreOrder, rankedBy } = filter
  if (rankedBy !== undefined) {
    return endedByNumber(sql, environmentId, rankedBy, await fewIndexedRuns(sql, environmentId, filter, named), page)
  }
  if (!scan || !score || !scoreOrder) return null
  return runsByScore(sql, environmentId, { name: score.name, order: scoreOrder, looked: scan.runsLookedAt }, page)
}

/** Runs that an index finds, if they are few; null: they are many; 'all': there is no such filter. */
async function fewIndexedRuns(sql: Sql, environmentId: string, filter: PlainFilter, named: SqlFragment | undefined) {
  const { approvalsLookedAt, scan, rankedBy } = filter
  const isBounded = named !== undefined || approvalsLookedAt !== undefined
  const isFiltered = runFiltersBy('index').some((name) => filter[name] !== undefined)
  if (!isBounded && !isFiltered) return scan === undefined ? 'all' : null
  const looked = rankedBy?.runsLookedAt ?? 0
  // `:few` is the limit of the inner query; `:most` that of the outer one.
  const { text, params } = await runsWhere(
    sql,
    environmentId,
    filter,
    { limit: looked, after: null },
    named,
    null,
    ':few',
  )
  const fewRuns = { text, params: { ...params, few: looked } }
  if (isBounded) return fewRuns
  const past = { ...params, few: looked + 1, looked }
  const more = await sql.get(`SELECT 1 AS one FROM (${text}) runs LIMIT 1 OFFSET :looked`, past)
  return more === null ? fewRuns : null
}

const newestFirst: RunOrder = (alias) => `ORDER BY ${alias}started_at DESC, ${alias}id DESC`

// Cut the page before agents are joined. Otherwise SQLite may start from the agents and sort all their runs.
const withAgents = (columns: string, runs: string, order: RunOrder) =>
  `SELECT ${columns} FROM (${runs}) r ${WITH_AGENT} ${order('r.')}`

/** Keeps the planner off the status index: few runs have gaps, but all may have the status. */
const UNINDEXED_STATUS = { sqlite: '+status = :status', postgres: `status || '' = :status` }

/** One condition for each filter that an index answers. */
const INDEXED: FilterConditions<Pick<RunCriteria, RunFiltersBy<'index'>>> = {
  agentId: (id) => ['agent_id = :agentId', id],
  session: (id) => ['session_key = :session', textKey(id)],
  user: (id) => ['user_key = :user', textKey(id)],
  from: (time) => ['started_at >= :from', time],
  to: (time) => ['started_at < :to', time],
  status: (status, { dialect }, _, { completeness }) => [
    completeness === undefined ? 'status = :status' : UNINDEXED_STATUS[dialect],
    status,
  ],
  // A literal, because only a literal lets the planner use the partial indexes.
  completeness: () => ['has_gaps = 1'],
}

/** Selects the runs that match all filters that need no scan. The caller adds the value of the limit. */
async function runsWhere(
  sql: Sql,
  environmentId: string,
  filter: PlainFilter,
  { after }: RunPage,
  named?: SqlFragment,
  ranked: RankedRuns | null = null,
  limit = ':most',
): Promise<SqlFragment> {
  const { approvalsLookedAt, status, isRuleClosed, onlyOutcomesEnd } = filter
  const asked = approvalsLookedAt === undefined ? null : askedRuns(sql, environmentId, approvalsLookedAt)
  const source = ranked?.runs ?? named ?? asked ?? ALL_RUNS
  const others = [named, asked].flatMap((other) => (other && other !== source ? other : []))
  const indexed = await filterConditions(INDEXED, sql, environmentId, filter)
  const place = ranked === null && after ? { startedAt: after.startedAt, id: after.id } : {}
  const filterParams: NamedParams = { env: environmentId, ...indexed.params, ...place }
  const params: NamedParams = Object.assign(filterParams, source.params, ...others.map((other) => other.params))
  const conditions = [
    'environment_id = :env',
    ...indexed.conditions,
    ...(isRuleClosed ? ['rule_closed_at IS NOT NULL'] : []),
    ...(!isRuleClosed && onlyOutcomesEnd && status !== undefined ? ['rule_closed_at IS NULL'] : []),
    ...others.map((other) => `run_id IN (SELECT run_id FROM ${other.text})`),
    '(started_at, id) < (:startedAt, :id)',
  ]
  const order = (ranked?.order ?? newestFirst)('')
  return {
    text: `SELECT * FROM ${source.text} WHERE ${conditionsGiven(conditions, params)} ${order} LIMIT ${limit}`,
    params,
  }
}

/** Filters with a statement of their own. */
type OwnScan = 'activity' | 'score' | 'unscored' | 'unjudged' | 'share'
type ColumnScan = Exclude<RunFiltersBy<'scan'>, OwnScan>

/** Columns that must be at least the sought value. An absent filter seeks 0. */
const SCANNED_COLUMNS: {
  [Name in ColumnScan]: [column: string, sought: (value: NonNullable<RunScan[Name]>) => number]
} = {
  minCost: ['cost_nanos', (cost) => Math.round(Number(cost) * 1e9)],
  minLengthMs: ['COALESCE(ended_at, last_event_at) - started_at', (lengthMs) => lengthMs],
  hasErrors: ['error_count', () => 1],
}

const TRAITS = runFiltersBy('trait')

/**
 * One text for all scans, because each text is prepared once and cached. An absent filter seeks the empty text, which
 * every text contains.
 */
const scanCondition = (sql: Sql): string =>
  [
    ...Object.entries(SCANNED_COLUMNS).map(
      ([name, [column]]) => `(${column} >= :${name}${name === 'minCost' ? ' OR uncosted IS NOT NULL' : ''})`,
    ),
    ...TRAITS.map((name) => contains(sql, 'traits', `:${name}`)),
  ].join(' AND ')

function scanParams(scan: RunScan): NamedParams {
  const columns = Object.entries(SCANNED_COLUMNS).map(([name, [, sought]]) => {
    const value = scan[name as ColumnScan]
    return [name, value === undefined ? 0 : sought(value as never)]
  })
  const traits = TRAITS.map((name) => {
    const { trait, kind } = RUN_FILTERS[name]
    const value = scan[name]
    return [name, value === undefined ? '' : soughtTrait(trait, kind === 'words' ? null : value)]
  })
  return Object.fromEntries([...columns, ...traits])
}

export async function readStalledRule(sql: Sql, environmentId: string): Promise<StalledRuleRow | null> {
  const text = `SELECT ${withSum('stalled_rules')} FROM stalled_rules WHERE environment_id = :env`
  const row = await sql.get<StalledRuleRow>(text, { env: environmentId })
  if (row === null) return null
  // A damaged rule closes no run.
  if (!takeSum(sql, 'stalled_rules', row, environmentId))
    return { ...DEFAULT_STALLED_RULE, closeAs: null, damaged: true }
  return { idleMinutes: row.idleMinutes, closeAs: row.closeAs }
}

/** Running runs whose last event is before this time are stalled. */
export async function stalledBefore(sql: Sql, environmentId: string, now: number): Promise<number> {
  const { idleMinutes } = (await readStalledRule(sql, environmentId)) ?? DEFAULT_STALLED_RULE
  return now - idleMinutes * 60_000
}

/**
 * SQL: whether the agent of the outer statement's run waits for a person in its framework, so its newest event is
 * WAITING.
 */
export const isPaused = (sql: Sql): string => `'WAITING' = COALESCE((SELECT e.event_type FROM events e
  WHERE e.environment_id = ${eventEnvironment(sql)} AND e.run = number ORDER BY e.time DESC, e.seq DESC LIMIT 1), '')`

/**
 * Requests for approval for which a client waits, or which it left to a later process. After a kill, no client reads
 * the answer.
 */
export const WAITED_FOR = `status = 'PENDING' AND expires_at > :now AND withdrawn_at IS NULL
  AND (last_seen_at IS NULL OR last_seen_at > :askedSince)`

export const askedSince = (now: number): number => now - LIMITS.approvalWaitingMs

async function stalledRuns(sql: Sql, environmentId: string, now: number): Promise<SqlFragment> {
  const waiting = `SELECT run_id FROM approvals WHERE environment_id = :env AND ${WAITED_FOR} AND run_id IS NOT NULL`
  const text = `status = 'RUNNING' AND last_event_at < :idleSince AND run_id NOT IN (${waiting})
    AND NOT ${isPaused(sql)}`
  return {
    text,
    params: {
      env: environmentId,
      now,
      askedSince: askedSince(now),
      idleSince: await stalledBefore(sql, environmentId, now),
    },
  }
}
