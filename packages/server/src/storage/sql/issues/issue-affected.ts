import { read } from '../act.ts'
import type { AffectedAgentRow, AffectedRunRow, PageBySeen } from '../../issues.ts'
import { firstRows, type Page } from '../../page.ts'
import { inChunks } from '../rows/chunks.ts'
import { fingerprintsOf, fromEachFingerprint } from './issue-fingerprints.ts'
import type { DecidedRecord } from './issue-growth.ts'
import { agentKey, textKey } from '../keys.ts'
import type { Sql } from '../sql.ts'

export const issueAffectedActs = read({ listAffectedRuns, listAffectedAgents })

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
  const seenRuns = subjects(detections, ({ runId }) => runId, textKey)
  const seenAgents = subjects(detections, ({ agentId }) => agentId, idKey)
  const runs = await countSubjects(sql, place, 'run', seenRuns)
  const agents = await countSubjects(sql, place, 'agent', seenAgents)
  if (runs.inFingerprint + agents.inFingerprint === 0) return
  const more = 'SET runs = runs + :runs, agents = agents + :agents WHERE environment_id = :env'
  const ofFingerprint = { env: environmentId, fingerprint, runs: runs.inFingerprint, agents: agents.inFingerprint }
  await sql.run(`UPDATE issue_fingerprints ${more} AND fingerprint = :fingerprint`, ofFingerprint)
  const ofIssue = { env: environmentId, issueId, runs: runs.inIssue, agents: agents.inIssue }
  await sql.run(`UPDATE issues ${more} AND id = :issueId`, ofIssue)
}

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
      first_seen, last_seen) VALUES (:env, :fingerprint, :kind, :key, :subject, :occurrences, :firstSeen, :lastSeen)
    ON CONFLICT (environment_id, fingerprint, kind, subject_key) DO NOTHING`
  const grow = `UPDATE issue_affected SET occurrences = occurrences + :occurrences,
      first_seen = CASE WHEN :firstSeen < first_seen THEN :firstSeen ELSE first_seen END,
      last_seen = CASE WHEN :lastSeen > last_seen THEN :lastSeen ELSE last_seen END
    WHERE environment_id = :env AND fingerprint = :fingerprint AND kind = :kind AND subject_key = :key`
  const elsewhere = `SELECT 1 AS found FROM issue_fingerprints f JOIN issue_affected a
      ON a.environment_id = f.environment_id AND a.fingerprint = f.fingerprint
    WHERE f.environment_id = :env AND f.issue_id = :issueId AND f.fingerprint <> :fingerprint AND a.kind = :kind
      AND a.subject_key = :key LIMIT 1`
  const count = { inFingerprint: 0, inIssue: 0 }
  for (const { key, subject, occurrences, firstSeen, lastSeen } of all) {
    const of = { env: environmentId, fingerprint, kind, key }
    if ((await sql.run(insert, { ...of, subject, occurrences, firstSeen, lastSeen })) === 0) {
      await sql.run(grow, { ...of, occurrences, firstSeen, lastSeen })
      continue
    }
    count.inFingerprint += 1
    const known = await sql.get(elsewhere, { ...of, issueId })
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
  const text = 'SELECT id, run_id AS "runId", status FROM runs WHERE environment_id = :env AND run_id IN (:runIds)'
  const ids = found.map(({ subject }) => subject)
  const runs = await inChunks(ids, (runIds) =>
    sql.all<{ id: string; runId: string; status: string }>(text, { env: environmentId, runIds }),
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
    FROM agents WHERE environment_id = :env AND agent_key IN (:keys)`
  const agentKeys = found.map(({ key }) => key)
  const agents = await inChunks(agentKeys, (keys) =>
    sql.all<{ id: string; agentKey: string; name: string }>(text, { env: environmentId, keys }),
  )
  const byKey = new Map(agents.map((agent) => [agent.agentKey, agent]))
  const rows = found.map(({ subject, ...seen }) => {
    const agent = byKey.get(seen.key)
    return { ...seen, agentId: subject, agent: agent?.id ?? null, name: agent?.name ?? null }
  })
  return { rows, more }
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
          WHERE o.environment_id = :env AND o.kind = :kind AND o.subject_key = a.subject_key AND o.fingerprint IN (
            SELECT f.fingerprint FROM issue_fingerprints f WHERE f.environment_id = :env AND f.issue_id = :issueId)
          AND (+o.last_seen, o.fingerprint) > (a.last_seen, a.fingerprint))`
      : ''
  const text = `SELECT a.subject_key AS key, a.subject, a.occurrences, a.first_seen AS "firstSeen",
      a.last_seen AS "lastSeen" FROM issue_affected a
    WHERE a.environment_id = :env AND a.fingerprint = :fingerprint AND a.kind = :kind
      ${after ? 'AND (a.last_seen, a.subject_key) < (:at, :key)' : ''} ${once}
    ORDER BY a.last_seen DESC, a.subject_key DESC LIMIT :limit`
  const found = await fromEachFingerprint<Subject>(sql, {
    fingerprints,
    text,
    params: { env: environmentId, kind, at: after?.at, key: after?.key, issueId: once === '' ? null : issueId },
    order: '"lastSeen" DESC, key DESC',
    limit: limit + 1,
  })
  const { rows, more } = firstRows(found, limit)
  return { rows: once === '' ? rows : await withSums(sql, environmentId, issueId, kind, rows), more }
}

async function withSums(sql: Sql, environmentId: string, issueId: string, kind: Kind, found: Subject[]) {
  const text = `SELECT a.subject_key AS key, CAST(SUM(a.occurrences) AS BIGINT) AS occurrences,
      MIN(a.first_seen) AS "firstSeen"
    FROM issue_affected a JOIN issue_fingerprints f
      ON f.environment_id = a.environment_id AND f.fingerprint = a.fingerprint
    WHERE a.environment_id = :env AND f.issue_id = :issueId AND a.kind = :kind
      AND a.subject_key IN (:keys)
    GROUP BY a.subject_key`
  const sums = await inChunks(
    found.map(({ key }) => key),
    (keys) =>
      sql.all<Pick<Subject, 'key' | 'occurrences' | 'firstSeen'>>(text, { env: environmentId, issueId, kind, keys }),
  )
  const byKey = new Map(sums.map((sum) => [sum.key, sum]))
  return found.map((row) => ({ ...row, ...byKey.get(row.key) }))
}
