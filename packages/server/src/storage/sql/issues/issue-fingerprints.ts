import { type NamedParams, type Sql, selectList, read } from '../engine/sql.ts'
import type { IssueGroupRow, IssueRow, IssueActivityRow, IssueRef, PageBySeen } from '../../issues/issues.ts'
import { mapPage } from '../../engine/page.ts'
import { insertRows, withJson } from '../engine/rows.ts'

export async function fingerprintsOf(sql: Sql, environmentId: string, issueId: string): Promise<string[]> {
  const text = `SELECT fingerprint FROM issue_fingerprints WHERE environment_id = :env AND issue_id = :issueId
    ORDER BY fingerprint`
  const rows = await sql.all<{ fingerprint: string }>(text, { env: environmentId, issueId })
  return rows.map(({ fingerprint }) => fingerprint)
}

/** One branch per fingerprint, each ordered and limited separately, so that an index serves it. */
interface Branches {
  fingerprints: string[]
  /** Selects the rows of one fingerprint, which it names `:fingerprint`. */
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
  // The issue's first record gives it its title.
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
