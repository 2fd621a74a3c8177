/** The subjects of an issue are the union over its fingerprints. */
import { read } from '../act.ts'
import type { AffectedAgentRow, AffectedRunRow, PageBySeen } from '../../issues.ts'
import { firstRows, type Page } from '../../page.ts'
import { chunksOf, PLACES } from '../rows/chunks.ts'
import { fingerprintsOf, fromEachFingerprint } from './issue-fingerprints.ts'
import type { DecidedRecord } from './issue-growth.ts'
import { agentKey, textKey } from '../keys.ts'
import type { Sql } from '../sql.ts'

export const issueAffectedActs = {
  listAffectedRuns: read(listAffectedRuns),
  listAffectedAgents: read(listAffectedAgents),
}

type Kind = 'run' | 'agent'

export interface AffectedPlace {
  environmentId: string
  fingerprint: string
  issueId: string
}

interface Subject {
  key: string
  subject: string
  occurrences: number
  firstSeen: number
  lastSeen: number
}

export async function countAffected(sql: Sql, place: AffectedPlace, detections: DecidedRecord[]): Promise<void> {
  const { environmentId, fingerprint, issueId } = place
  const runs = await countSubjects(
    sql,
    place,
    'run',
    subjects(detections, ({ runId }) => runId, textKey),
  )
  const agents = await countSubjects(
    sql,
    place,
    'agent',
    subjects(detections, ({ agentId }) => agentId, idKey),
  )
  if (runs.inFingerprint + agents.inFingerprint === 0) return
  const more = 'SET runs = runs + ?, agents = agents + ? WHERE environment_id = ?'
  const ofFingerprint = [runs.inFingerprint, agents.inFingerprint, environmentId, fingerprint]
  await sql.run(`UPDATE issue_fingerprints ${more} AND fingerprint = ?`, ofFingerprint)
  await sql.run(`UPDATE issues ${more} AND id = ?`, [runs.inIssue, agents.inIssue, environmentId, issueId])
}

/** As in the table of agents. */
export function idKey(agentId: string): string {
  return agentKey(agentId, '')
}

function subjects(
  detections: DecidedRecord[],
  subjectOf: (record: DecidedRecord) => string | null,
  keyOf: (subject: string) => string,
): Subject[] {
  const found = new Map<string, Subject>()
  for (const record of detections) {
    const subject = subjectOf(record)
    if (!subject) continue
    const { seenAt } = record
    const known = found.get(subject)
    if (known === undefined) {
      found.set(subject, { key: keyOf(subject), subject, occurrences: 1, firstSeen: seenAt, lastSeen: seenAt })
      continue
    }
    known.occurrences += 1
    known.firstSeen = Math.min(known.firstSeen, seenAt)
    known.lastSeen = Math.max(known.lastSeen, seenAt)
  }
  return [...found.values()]
}

async function countSubjects(
  sql: Sql,
  { environmentId, fingerprint, issueId }: AffectedPlace,
  kind: Kind,
  all: Subject[],
): Promise<{ inFingerprint: number; inIssue: number }> {
  const insert = `INSERT INTO issue_affected (environment_id, fingerprint, kind, subject_key, subject, occurrences,
      first_seen, last_seen) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (environment_id, fingerprint, kind, subject_key) DO NOTHING`
  const grow = `UPDATE issue_affected SET occurrences = occurrences + ?,
      first_seen = CASE WHEN ? < first_seen THEN ? ELSE first_seen END,
      last_seen = CASE WHEN ? > last_seen THEN ? ELSE last_seen END
    WHERE environment_id = ? AND fingerprint = ? AND kind = ? AND subject_key = ?`
  const elsewhere = `SELECT 1 AS found FROM issue_fingerprints f JOIN issue_affected a
      ON a.environment_id = f.environment_id AND a.fingerprint = f.fingerprint
    WHERE f.environment_id = ? AND f.issue_id = ? AND f.fingerprint <> ? AND a.kind = ? AND a.subject_key = ? LIMIT 1`
  const count = { inFingerprint: 0, inIssue: 0 }
  for (const { key, subject, occurrences, firstSeen, lastSeen } of all) {
    const row = [environmentId, fingerprint, kind, key]
    if ((await sql.run(insert, [...row, subject, occurrences, firstSeen, lastSeen])) === 0) {
      await sql.run(grow, [occurrences, firstSeen, firstSeen, lastSeen, lastSeen, ...row])
      continue
    }
    count.inFingerprint += 1
    const known = await sql.get(elsewhere, [environmentId, issueId, fingerprint, kind, key])
    if (known === null) count.inIssue += 1
  }
  return count
}

async function listAffectedRuns(
  sql: Sql,
  environmentId: string,
  issueId: string,
  page: PageBySeen,
): Promise<Page<AffectedRunRow>> {
  const { rows: found, more } = await listSubjects(sql, environmentId, issueId, 'run', page)
  const text = 'SELECT id, run_id AS "runId", status FROM runs WHERE environment_id = ? AND run_id IN'
  const runs = await matching<{ id: string; runId: string; status: string }>(
    sql,
    text,
    environmentId,
    found.map(({ subject }) => subject),
  )
  const byId = new Map(runs.map((run) => [run.runId, run]))
  const rows = found.map(({ subject, ...seen }) => {
    const run = byId.get(subject)
    return { ...seen, runId: subject, run: run?.id ?? null, status: run?.status ?? null }
  })
  return { rows, more }
}

async function listAffectedAgents(
  sql: Sql,
  environmentId: string,
  issueId: string,
  page: PageBySeen,
): Promise<Page<AffectedAgentRow>> {
  const { rows: found, more } = await listSubjects(sql, environmentId, issueId, 'agent', page)
  const text = `SELECT id, agent_key AS "agentKey", COALESCE(display_name, name) AS name
    FROM agents WHERE environment_id = ? AND agent_key IN`
  const agents = await matching<{ id: string; agentKey: string; name: string }>(
    sql,
    text,
    environmentId,
    found.map(({ key }) => key),
  )
  const byKey = new Map(agents.map((agent) => [agent.agentKey, agent]))
  const rows = found.map(({ subject, ...seen }) => {
    const agent = byKey.get(seen.key)
    return { ...seen, agentId: subject, agent: agent?.id ?? null, name: agent?.name ?? null }
  })
  return { rows, more }
}

async function matching<Row>(sql: Sql, text: string, environmentId: string, values: string[]): Promise<Row[]> {
  const rows: Row[] = []
  for (const chunk of chunksOf(values))
    rows.push(...(await sql.all<Row>(`${text} (${PLACES})`, [environmentId, ...chunk])))
  return rows
}

async function listSubjects(
  sql: Sql,
  environmentId: string,
  issueId: string,
  kind: Kind,
  { limit, after }: PageBySeen,
): Promise<Page<Subject>> {
  const fingerprints = await fingerprintsOf(sql, environmentId, issueId)
  // If several fingerprints have the same subject, the one that saw it last represents it. The plus stops SQLite from
  // searching by time.
  const once =
    fingerprints.length > 1
      ? `AND NOT EXISTS (SELECT 1 FROM issue_affected o
          WHERE o.environment_id = ? AND o.kind = ? AND o.subject_key = a.subject_key AND o.fingerprint IN (
            SELECT f.fingerprint FROM issue_fingerprints f WHERE f.environment_id = ? AND f.issue_id = ?)
          AND (+o.last_seen, o.fingerprint) > (a.last_seen, a.fingerprint))`
      : ''
  const text = `SELECT a.subject_key AS key, a.subject, a.occurrences, a.first_seen AS "firstSeen",
      a.last_seen AS "lastSeen" FROM issue_affected a
    WHERE a.environment_id = ? AND a.fingerprint = ? AND a.kind = ?
      ${after ? 'AND (a.last_seen, a.subject_key) < (?, ?)' : ''} ${once}
    ORDER BY a.last_seen DESC, a.subject_key DESC LIMIT ?`
  const place = after ? [after.at, after.key] : []
  const others = once === '' ? [] : [environmentId, kind, environmentId, issueId]
  const found = await fromEachFingerprint<Subject>(sql, {
    fingerprints,
    branch: (fingerprint) => {
      const params = [environmentId, fingerprint, kind, ...place, ...others, limit + 1]
      return { text, params }
    },
    order: '"lastSeen" DESC, key DESC',
    limit: limit + 1,
  })
  const { rows, more } = firstRows(found, limit)
  return { rows: once === '' ? rows : await withSums(sql, environmentId, issueId, kind, rows), more }
}

async function withSums(
  sql: Sql,
  environmentId: string,
  issueId: string,
  kind: Kind,
  found: Subject[],
): Promise<Subject[]> {
  const text = `SELECT a.subject_key AS key, CAST(SUM(a.occurrences) AS BIGINT) AS occurrences,
      MIN(a.first_seen) AS "firstSeen"
    FROM issue_affected a JOIN issue_fingerprints f
      ON f.environment_id = a.environment_id AND f.fingerprint = a.fingerprint
    WHERE a.environment_id = ? AND f.issue_id = ? AND a.kind = ?
      AND a.subject_key IN (${PLACES})
    GROUP BY a.subject_key`
  const byKey = new Map<string, Pick<Subject, 'occurrences' | 'firstSeen'>>()
  for (const chunk of chunksOf(found.map(({ key }) => key))) {
    const sums = await sql.all<Pick<Subject, 'key' | 'occurrences' | 'firstSeen'>>(text, [
      environmentId,
      issueId,
      kind,
      ...chunk,
    ])
    for (const sum of sums) byKey.set(sum.key, sum)
  }
  return found.map((row) => ({ ...row, ...byKey.get(row.key) }))
}
