import { type NamedParams, type Sql, selectList, read } from '../engine/sql.ts'
import type {
  IssueGroupRow,
  IssueRow,
  IssueActivityRow,
  IssueRef,
  PageBySeen,
  IssueDecision,
  IssueRecordRow,
  IssueActor,
} from '../../issues/issues.ts'
import { mapPage } from '../../engine/page.ts'
import { insertRows, withJson } from '../engine/rows.ts'
import type { IssueState } from '@tacho/contract/issues/issue.ts'

export async function fingerprintsOf(sql: Sql, environmentId: string, issueId: string): Promise<string[]> {
  const text = `SELECT fingerprint FROM issue_fingerprints WHERE environment_id = :env AND issue_id = :issueId
    ORDER BY fingerprint`
  const rows = await sql.all<{ fingerprint: string }>(text, { env: environmentId, issueId })
  return rows.map(({ fingerprint }) => fingerprint)
}

/** A query with one branch per fingerprint, each ordered and limited separately, so that an index serves it. */
interface Branches {
  fingerprints: string[]
  /** Selects the rows of the fingerprint `:fingerprint`. */
  text: string
  params: NamedParams
  order: string
  limit: number
}

export function fromEachFingerprint<Row>(sql: Sql, { fingerprints, text, params, order, limit }: Branches) {
  if (fingerprints.length === 0) return Promise.resolve([])
  const names = fingerprints.map((_, index) => `fingerprint${index}`)
  const branches = names.map((name) => `SELECT * FROM (${text.replaceAll(':fingerprint', `:${name}`)}) AS of_${name}`)
  const named = Object.fromEntries(names.map((name, index) => [name, fingerprints[index]]))
  return sql.all<Row>(`${branches.join(' UNION ALL ')} ORDER BY ${order} LIMIT :limit`, { ...params, ...named, limit })
}

type Group = Omit<IssueGroupRow, 'fingerprint' | 'facts'> & Pick<IssueRow, 'title' | 'detectionType'>

const FINGERPRINT_COLUMNS = selectList(
  'home_issue_id title detection_type first_seen last_seen occurrences recoveries runs agents',
)

export async function recountIssue(sql: Sql, environmentId: string, issueId: string): Promise<void> {
  const of = { env: environmentId, issueId }
  const groups = await sql.all<Group>(
    `SELECT ${FINGERPRINT_COLUMNS} FROM issue_fingerprints
      WHERE environment_id = :env AND issue_id = :issueId ORDER BY first_seen, fingerprint`,
    of,
  )
  // The issue gets the title of its first group.
  const named = groups.find(({ homeIssueId }) => homeIssueId === issueId) ?? groups[0]
  if (named === undefined) return
  const sum = (count: (group: Group) => number) => groups.reduce((total, group) => total + count(group), 0)
  const affected = groups.length === 1 ? named : await distinct(sql, environmentId, issueId)
  const text = `UPDATE issues SET title = :title, detection_type = :detectionType, first_seen = :firstSeen,
    last_seen = :lastSeen, occurrences = :occurrences, recoveries = :recoveries, runs = :runs, agents = :agents
    WHERE environment_id = :env AND id = :issueId`
  await sql.run(text, {
    title: named.title,
    detectionType: named.detectionType,
    firstSeen: Math.min(...groups.map(({ firstSeen }) => firstSeen)),
    lastSeen: Math.max(...groups.map(({ lastSeen }) => lastSeen)),
    occurrences: sum(({ occurrences }) => occurrences),
    recoveries: sum(({ recoveries }) => recoveries),
    runs: affected.runs,
    agents: affected.agents,
    ...of,
  })
}

/** Several fingerprints may affect the same run or agent, which counts once. */
async function distinct(sql: Sql, environmentId: string, issueId: string): Promise<{ runs: number; agents: number }> {
  // SQLite keeps the order of a cross join. Otherwise it would scan everything affected in the environment.
  const text = `SELECT a.kind, COUNT(DISTINCT a.subject_key) AS count
    FROM issue_fingerprints f CROSS JOIN issue_affected a
    WHERE f.environment_id = :env AND f.issue_id = :issueId AND a.environment_id = f.environment_id
      AND a.fingerprint = f.fingerprint GROUP BY a.kind`
  const counts = await sql.all<{ kind: 'run' | 'agent'; count: number }>(text, { env: environmentId, issueId })
  const of = (kind: string) => counts.find((row) => row.kind === kind)?.count ?? 0
  return { runs: of('run'), agents: of('agent') }
}

export const issueActivityActs = read({ listIssueActivity })

type NewActivity = Pick<IssueActivityRow, 'id' | 'at' | 'kind' | 'actor'> & { text?: string; detail?: object }

export async function insertActivity(sql: Sql, issue: IssueRef, entry: NewActivity): Promise<void> {
  const { environmentId, id: issueId } = issue
  await insertRows(sql, 'issue_activity', [{ environmentId, issueId, text: null, detail: {}, ...entry }])
}

const ACTIVITY_COLUMNS = selectList('id at kind actor imported_at text detail')

const toRow = withJson<IssueActivityRow>('actor')

async function listIssueActivity(sql: Sql, environmentId: string, issueId: string, { limit, after }: PageBySeen) {
  const text = `SELECT ${ACTIVITY_COLUMNS} FROM issue_activity
    WHERE environment_id = :env AND issue_id = :issueId ${after ? 'AND (at, id) < (:at, :key)' : ''}
    ORDER BY at DESC, id DESC`
  const params = { env: environmentId, issueId, at: after?.at, key: after?.key }
  return mapPage(await sql.page(text, params, limit), toRow)
}

export type DecidedRecord = Pick<IssueRecordRow, 'id' | 'recordKind' | 'seenAt' | 'runId' | 'agentId'>

export interface Decided {
  detections: DecidedRecord[]
  recoveries: number
}

type Growth = ReturnType<typeof seenIn> & Pick<Decided, 'recoveries'>

/**
 * Widens a span. Without MIN, because only SQLite's MIN takes two values. `row`: the prefix of the stored row, with a
 * dot.
 */
export const spanWith = (first: string, last: string, row = ''): string =>
  `first_seen = CASE WHEN ${row}first_seen IS NULL OR ${first} < ${row}first_seen THEN ${first} ELSE ${row}first_seen END,
    last_seen = CASE WHEN ${row}last_seen IS NULL OR ${last} > ${row}last_seen THEN ${last} ELSE ${row}last_seen END`

export function seenIn(detections: readonly DecidedRecord[]) {
  const times = detections.map(({ seenAt }) => seenAt)
  const [firstSeen, lastSeen] = times.length === 0 ? [null, null] : [Math.min(...times), Math.max(...times)]
  return { occurrences: detections.length, firstSeen, lastSeen }
}

/** Also locks the fingerprint. Its issue stays null until openIssue sets it. */
export async function growFingerprint(sql: Sql, environmentId: string, decision: IssueDecision, growth: Growth) {
  const { fingerprint, detectionType, title, facts } = decision
  const text = `INSERT INTO issue_fingerprints AS f (environment_id, fingerprint, detection_type, title, facts,
      first_seen, last_seen, occurrences, recoveries, runs, agents)
    VALUES (:env, :fingerprint, :detectionType, :title, :facts, :firstSeen, :lastSeen, :occurrences, :recoveries, 0, 0)
    ON CONFLICT (environment_id, fingerprint) DO UPDATE SET
      occurrences = f.occurrences + excluded.occurrences, recoveries = f.recoveries + excluded.recoveries,
      ${spanWith('excluded.first_seen', 'excluded.last_seen', 'f.')}
    RETURNING issue_id AS "issueId", recoveries`
  const params = { env: environmentId, fingerprint, detectionType, title, facts, ...growth }
  const row = await sql.get<{ issueId: string | null; recoveries: number }>(text, params)
  if (row === null) throw new Error('A fingerprint was neither inserted nor found')
  return row
}

export async function openIssue(sql: Sql, environmentId: string, decision: IssueDecision, growth: Growth, now: number) {
  const { fingerprint, newIssueId, title, detectionType } = decision
  const opened = { id: newIssueId, title, detectionType, state: 'OPEN', stateAt: now, openedAt: now }
  const counts = { ...growth, runs: 0, agents: 0, regressions: 0 }
  await insertRows(sql, 'issues', [{ environmentId, ...opened, ...counts }])
  const moveSets = `UPDATE issue_fingerprints SET issue_id = :newIssueId, home_issue_id = :newIssueId
    WHERE environment_id = :env AND fingerprint = :fingerprint`
  await sql.run(moveSets, { newIssueId, env: environmentId, fingerprint })
}

/** True: a resolved issue has come back. */
export async function growIssue(sql: Sql, environmentId: string, issueId: string, decided: Decided, now: number) {
  const grow = `UPDATE issues SET occurrences = occurrences + :occurrences, recoveries = recoveries + :recoveries,
      ${spanWith(':firstSeen', ':lastSeen')}
    WHERE environment_id = :env AND id = :issueId RETURNING state, state_at AS "stateAt", state_by AS "stateBy"`
  const grown = { env: environmentId, issueId, ...seenIn(decided.detections), recoveries: decided.recoveries }
  const issue = await sql.get<{ state: IssueState; stateAt: number; stateBy: string | null }>(grow, grown)
  const [detection] = decided.detections
  if (issue?.state !== 'RESOLVED' || detection === undefined) return false
  const reopen = `UPDATE issues SET state = 'OPEN', state_at = :now, state_by = NULL, regressions = regressions + 1,
    last_regression_at = :now WHERE environment_id = :env AND id = :issueId`
  await sql.run(reopen, { now, env: environmentId, issueId })
  const resolvedBy = issue.stateBy === null ? null : (JSON.parse(issue.stateBy) as IssueActor)
  const detail = { recordId: detection.id, resolvedAt: new Date(issue.stateAt).toISOString(), resolvedBy }
  const entry = { id: detection.id, at: now, kind: 'REGRESSED', actor: null, detail } as const
  await insertActivity(sql, { environmentId, id: issueId }, entry)
  return true
}
