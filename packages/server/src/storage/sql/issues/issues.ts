import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { read, conditionsGiven, filterConditions, selectList, type FilterConditions, type Sql } from '../engine/sql.ts'
import type { RecordKind } from '@tacho/contract/issues/issue-record.ts'
import type {
  IssueRecordRow,
  IssueFilter,
  IssueGroupRow,
  IssuePage,
  IssueRow,
  ListedIssueRow,
  IssueWhole,
  PageBySeen,
  TrendSlots,
} from '../../issues/issues.ts'
import { firstRows, mapPage, type Page } from '../../engine/page.ts'
import { idKey } from './issue-affected.ts'
import { fingerprintsOf, fromEachFingerprint } from './issue-fingerprints.ts'
import { recordsOf } from './issue-records.ts'
import { textKey } from '../engine/keys.ts'
import { allIn, withJson, columnsOfRow } from '../engine/rows.ts'
import type { IssueState } from '@tacho/contract/issues/issue.ts'

export const issuesActs = read({ listIssues, findIssue, listIssueOccurrences, readIssueTrend })

const COLUMNS = selectList(columnsOfRow('issues'), 'i.')
const GROUP_COLUMNS = selectList(
  'fingerprint facts first_seen last_seen occurrences recoveries runs agents home_issue_id',
)

const toRow = withJson<IssueRow>('stateBy')

const affects = (kind: 'run' | 'agent', keys: string) => `i.id IN (SELECT f.issue_id FROM issue_affected a
    JOIN issue_fingerprints f ON f.environment_id = a.environment_id AND f.fingerprint = a.fingerprint
    WHERE a.environment_id = :env AND a.kind = '${kind}' AND a.subject_key ${keys})`
const WITH_TYPE = `i.id IN (SELECT f.issue_id FROM issue_fingerprints f
    WHERE f.environment_id = :env AND f.detection_type = :detectionType)`

/** Keys of the newest runs of an end user. */
export async function runKeysOf(sql: Sql, environmentId: string, user: string): Promise<string[]> {
  const text = `SELECT run_id AS "runId" FROM runs WHERE environment_id = :env AND user_key = :userKey
    ORDER BY started_at DESC, id DESC LIMIT ${LIMITS.issueUserRuns}`
  const runs = await sql.all<{ runId: string }>(text, { env: environmentId, userKey: textKey(user) })
  return runs.map(({ runId }) => textKey(runId))
}

const CONDITIONS: FilterConditions<Omit<IssueFilter, 'sort'>> = {
  q: async (words, sql, env, { state }) => ['i.id IN (:q)', await issuesNaming(sql, env, state, words)],
  state: (state) => ['i.state = :state', state],
  detectionType: (type) => [WITH_TYPE, type],
  agentId: (id) => [affects('agent', '= :agentId'), idKey(id)],
  runId: (id) => [affects('run', '= :runId'), textKey(id)],
  assignee: (name) => ['i.assignee = :assignee', name],
  assigned: (which) => [`i.assignee IS ${which === 'true' ? 'NOT ' : ''}NULL`],
  user: async (id, sql, env) => [affects('run', 'IN (:user)'), await runKeysOf(sql, env, id)],
  firstFrom: (time) => ['i.first_seen >= :firstFrom', time],
  firstTo: (time) => ['i.first_seen < :firstTo', time],
  from: (time) => ['i.last_seen >= :from', time],
  to: (time) => ['i.last_seen < :to', time],
}

async function listIssues(
  sql: Sql,
  environmentId: string,
  { sort, ...filter }: IssueFilter,
  { limit, after }: IssuePage,
): Promise<Page<ListedIssueRow>> {
  const byFirst = sort === 'firstSeen'
  const givenFilters = await filterConditions(CONDITIONS, sql, environmentId, {
    ...filter,
    // The place of a page is always before the end of the window, so it replaces that condition.
    ...(after !== null && { [byFirst ? 'firstTo' : 'to']: undefined }),
    // Older issues come last in the other order. As a condition, it would make SQLite choose another index than the filter's.
    ...(!byFirst && { from: undefined }),
  })
  const { lastSeen, firstSeen, id } = after ?? {}
  const params = { ...givenFilters.params, env: environmentId, id, ...(byFirst ? { firstSeen } : { lastSeen }) }
  const conditions = [
    'i.environment_id = :env',
    'i.merged_into IS NULL',
    ...givenFilters.conditions,
    byFirst ? '(i.first_seen, i.id) < (:firstSeen, :id)' : '(i.last_seen, i.id) < (:lastSeen, :id)',
  ]
  const text = `SELECT ${COLUMNS} FROM issues i WHERE ${conditionsGiven(conditions, params)}
    ORDER BY i.${byFirst ? 'first_seen' : 'last_seen'} DESC, i.id DESC`
  const { rows, more } = mapPage(await sql.page(text, params, limit), toRow)
  const named = await withAgents(sql, environmentId, rows)
  if (byFirst) return { rows: named, more }
  const wanted = named.filter((issue) => issue.lastSeen >= (filter.from ?? -Infinity))
  return { rows: wanted, more: more && wanted.length === rows.length }
}

/** Adds the agents to issues with few of them: failures without a place have the same title for every agent. */
async function withAgents(sql: Sql, environmentId: string, rows: IssueRow[]): Promise<ListedIssueRow[]> {
  const fewAgentIssues = rows.filter(({ agents }) => agents > 0 && agents <= LIMITS.issueAgentsListed)
  const text = `SELECT DISTINCT f.issue_id AS "issueId", a.subject FROM issue_fingerprints f
    JOIN issue_affected a ON a.environment_id = f.environment_id AND a.fingerprint = f.fingerprint AND a.kind = 'agent'
    WHERE f.environment_id = :env AND f.issue_id IN (:ids)`
  const agentRows = await allIn<{ issueId: string; subject: string }>(sql, text, {
    env: environmentId,
    ids: fewAgentIssues.map(({ id }) => id),
  })
  const agents = Map.groupBy(agentRows, ({ issueId }) => issueId)
  return rows.map((row) => ({ ...row, agentIds: (agents.get(row.id) ?? []).map(({ subject }) => subject).toSorted() }))
}

export async function findIssue(sql: Sql, environmentId: string, id: string): Promise<IssueWhole | null> {
  const text = `SELECT ${COLUMNS} FROM issues i WHERE i.environment_id = :env AND i.id = :id`
  const of = { env: environmentId, id }
  const row = await sql.get<object>(text, of)
  if (row === null) return null
  const groups = await sql.all<IssueGroupRow>(
    `SELECT ${GROUP_COLUMNS} FROM issue_fingerprints
      WHERE environment_id = :env AND issue_id = :id ORDER BY fingerprint`,
    of,
  )
  const from = 'SELECT id FROM issues WHERE environment_id = :env AND merged_into = :id ORDER BY id'
  const merged = await sql.all<{ id: string }>(from, of)
  const fingerprints = groups.map(({ fingerprint }) => fingerprint)
  return {
    ...toRow(row),
    groups,
    mergedFrom: merged.map((issue) => issue.id),
    firstPayload: await outermost(sql, environmentId, fingerprints, 'ASC'),
    lastPayload: await outermost(sql, environmentId, fingerprints, 'DESC'),
  }
}

async function outermost(sql: Sql, environmentId: string, fingerprints: string[], order: 'ASC' | 'DESC') {
  const text = `SELECT id, seen_at AS "seenAt" FROM issue_records
    WHERE environment_id = :env AND fingerprint = :fingerprint AND record_kind = 'DETECTION'
    ORDER BY seen_at ${order}, id ${order} LIMIT 1`
  const [found] = await fromEachFingerprint<{ id: string }>(sql, {
    fingerprints,
    text,
    params: { env: environmentId },
    order: `"seenAt" ${order}, id ${order}`,
    limit: 1,
  })
  if (found === undefined) return null
  const select = 'SELECT payload FROM issue_records WHERE environment_id = :env AND id = :id'
  return (await sql.get<{ payload: string }>(select, { env: environmentId, id: found.id }))?.payload ?? null
}

async function listIssueOccurrences(
  sql: Sql,
  environmentId: string,
  issueId: string,
  kind: RecordKind,
  { limit, after }: PageBySeen,
): Promise<Page<IssueRecordRow>> {
  const text = `SELECT id, seen_at AS "seenAt" FROM issue_records
    WHERE environment_id = :env AND fingerprint = :fingerprint AND record_kind = :kind
      ${after ? 'AND (seen_at, id) < (:at, :key)' : ''} ORDER BY seen_at DESC, id DESC LIMIT :limit`
  const issueRows = await fromEachFingerprint<{ id: string }>(sql, {
    fingerprints: await fingerprintsOf(sql, environmentId, issueId),
    text,
    params: { env: environmentId, kind, at: after?.at, key: after?.key },
    order: '"seenAt" DESC, id DESC',
    limit: limit + 1,
  })
  const ids = issueRows.map(({ id }) => id)
  const { rows } = firstRows(await recordsOf(sql, environmentId, ids), limit)
  return { rows, more: issueRows.length > rows.length }
}

async function readIssueTrend(sql: Sql, environmentId: string, issueId: string, slots: TrendSlots) {
  const { from, width, count, most } = slots
  const fingerprints = await fingerprintsOf(sql, environmentId, issueId)
  if (fingerprints.length === 0) return null
  const counts = Array.from({ length: count }, () => 0)
  let isPartial = false
  for (const fingerprint of fingerprints) {
    const rows = await sql.all<{ slot: number; found: number }>(
      `SELECT slot, COUNT(*) AS found FROM (SELECT CAST((seen_at - :from) / :width AS INTEGER) AS slot FROM issue_records
        WHERE environment_id = :env AND fingerprint = :fingerprint AND record_kind = 'DETECTION'
          AND seen_at >= :from AND seen_at < :to
        ORDER BY seen_at DESC LIMIT :most) AS seen GROUP BY slot`,
      { env: environmentId, fingerprint, from, to: from + count * width, width, most },
    )
    for (const { slot, found } of rows) counts[slot] = (counts[slot] ?? 0) + found
    isPartial ||= rows.reduce((sum, { found }) => sum + found, 0) >= most
  }
  return { counts, isPartial }
}

/**
 * Returns ids of issues that contain every word, among those last seen. The words are compared here: SQLite folds only
 * ASCII, and facts are JSON, whose member names are no words of the issue. Messages have `…` for parts that differ
 * between runs, so `A-17` finds `no order a-…`.
 */
async function issuesNaming(
  sql: Sql,
  environmentId: string,
  state: IssueState | undefined,
  search: string,
): Promise<string[]> {
  const newest = `SELECT id, title FROM issues WHERE environment_id = :env AND merged_into IS NULL
    ${state === undefined ? '' : 'AND state = :state'} ORDER BY last_seen DESC, id DESC LIMIT ${LIMITS.searchedIssues}`
  const issues = await sql.all<{ id: string; title: string }>(newest, { env: environmentId, state })
  const of = { env: environmentId, ids: issues.map(({ id }) => id) }
  const groups = await allIn<{ id: string; facts: string }>(
    sql,
    'SELECT issue_id AS id, facts FROM issue_fingerprints WHERE environment_id = :env AND issue_id IN (:ids)',
    of,
  )
  const agents = await allIn<{ id: string; subject: string; name: string | null }>(
    sql,
    `SELECT f.issue_id AS id, a.subject, COALESCE(g.display_name, g.name) AS name FROM issue_fingerprints f
      JOIN issue_affected a ON a.environment_id = f.environment_id AND a.fingerprint = f.fingerprint AND a.kind = 'agent'
      LEFT JOIN agents g ON g.environment_id = a.environment_id AND g.agent_key = a.subject_key
      WHERE f.environment_id = :env AND f.issue_id IN (:ids)`,
    of,
  )
  const texts = new Map(issues.map(({ id, title }) => [id, [title]]))
  for (const { id, facts } of groups) texts.get(id)?.push(...Object.values<string | string[]>(JSON.parse(facts)).flat())
  for (const { id, subject, name } of agents) texts.get(id)?.push(subject, name ?? '')
  const issueTexts = [...texts].map(([id, named]) => ({ id, text: named.join('\n').toLowerCase() }))
  const words = search
    .toLowerCase()
    .split(/\s+/)
    .map((word) => {
      // A word that no issue contains may be an id that messages replace by `…`.
      const isNamed = issueTexts.some(({ text }) => text.includes(word))
      return isNamed ? word : word.replace(/\d.*/, '…')
    })
  return issueTexts.filter(({ text }) => words.every((word) => text.includes(word))).map(({ id }) => id)
}
