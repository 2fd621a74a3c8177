import type { IssueGroupRow, IssueRow } from '../../issues/issues.ts'
import { selectList, type Sql } from '../engine/sql.ts'

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
