import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { read, type Sql } from '../engine/sql.ts'
import type { PageBySeen } from '../../issues/issues.ts'
import { firstRows } from '../../engine/page.ts'
import type { RunRow } from '../../runs/runs.ts'
import { allIn, insertRows } from '../engine/rows.ts'
import { fingerprintsOf, fromEachFingerprint, seenIn, spanWith, type DecidedRecord } from './issue-fingerprints.ts'
import { agentKey, textKey } from '../engine/keys.ts'

export const issueAffectedActs = read({ listAffectedRuns, listAffectedAgents, countAffectedUsers })

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
  const runs = await countSubjects(sql, place, 'run', detections)
  const agents = await countSubjects(sql, place, 'agent', detections)
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

const SUBJECTS = { run: ['runId', textKey], agent: ['agentId', idKey] } as const

async function countSubjects(sql: Sql, place: AffectedPlace, kind: Kind, detections: DecidedRecord[]) {
  const { environmentId, fingerprint, issueId } = place
  const [member, keyOf] = SUBJECTS[kind]
  const unlessKnown = 'ON CONFLICT (environment_id, fingerprint, kind, subject_key) DO NOTHING'
  const grow = `UPDATE issue_affected SET occurrences = occurrences + :occurrences, ${spanWith(':firstSeen', ':lastSeen')}
    WHERE environment_id = :env AND fingerprint = :fingerprint AND kind = :kind AND subject_key = :subjectKey`
  const elsewhere = `SELECT 1 AS found FROM issue_fingerprints f JOIN issue_affected a
      ON a.environment_id = f.environment_id AND a.fingerprint = f.fingerprint
    WHERE f.environment_id = :env AND f.issue_id = :issueId AND f.fingerprint <> :fingerprint AND a.kind = :kind
      AND a.subject_key = :subjectKey LIMIT 1`
  const count = { inFingerprint: 0, inIssue: 0 }
  for (const [subject, some] of Map.groupBy(detections, (record) => record[member])) {
    if (!subject) continue
    const [subjectKey, seen] = [keyOf(subject), seenIn(some)]
    const row = { environmentId, fingerprint, kind, subjectKey, subject, ...seen }
    const of = { env: environmentId, fingerprint, kind, subjectKey }
    if ((await insertRows(sql, 'issue_affected', [row], unlessKnown)) === 0) {
      await sql.run(grow, { ...of, ...seen })
      continue
    }
    count.inFingerprint += 1
    const known = await sql.get(elsewhere, { ...of, issueId })
    if (known === null) count.inIssue += 1
  }
  return count
}

async function listAffectedRuns(sql: Sql, environmentId: string, issueId: string, page: PageBySeen) {
  const { rows: affectedRows, more } = await listSubjects(sql, environmentId, issueId, 'run', page)
  const text = 'SELECT id, run_id AS "runId", status FROM runs WHERE environment_id = :env AND run_id IN (:runIds)'
  const runIds = affectedRows.map(({ subject }) => subject)
  const runs = await allIn<Pick<RunRow, 'id' | 'runId' | 'status'>>(sql, text, { env: environmentId, runIds })
  const byId = new Map(runs.map((run) => [run.runId, run]))
  const rows = affectedRows.map(({ subject, ...seen }) => {
    const run = byId.get(subject)
    return { ...seen, runId: subject, internalRunId: run?.id ?? null, status: run?.status ?? null }
  })
  return { rows, more }
}

/** Counts distinct end users of the newest runs. */
async function countAffectedUsers(sql: Sql, environmentId: string, issueId: string): Promise<number> {
  const newest = { limit: LIMITS.issueUserRuns, after: null }
  const { rows } = await listSubjects(sql, environmentId, issueId, 'run', newest)
  const text = `SELECT DISTINCT user_key AS "userKey" FROM runs
    WHERE environment_id = :env AND run_id IN (:runIds) AND user_key IS NOT NULL`
  const runIds = rows.map(({ subject }) => subject)
  const users = await allIn<{ userKey: string }>(sql, text, { env: environmentId, runIds })
  return new Set(users.map(({ userKey }) => userKey)).size
}

async function listAffectedAgents(sql: Sql, environmentId: string, issueId: string, page: PageBySeen) {
  const { rows: affectedRows, more } = await listSubjects(sql, environmentId, issueId, 'agent', page)
  const text = `SELECT id, agent_key AS key, COALESCE(display_name, name) AS name
    FROM agents WHERE environment_id = :env AND agent_key IN (:keys)`
  const keys = affectedRows.map(({ key }) => key)
  const agents = await allIn<{ id: string; key: string; name: string }>(sql, text, { env: environmentId, keys })
  const byKey = new Map(agents.map((agent) => [agent.key, agent]))
  const rows = affectedRows.map(({ subject, ...seen }) => {
    const agent = byKey.get(seen.key)
    return { ...seen, agentId: subject, internalAgentId: agent?.id ?? null, name: agent?.name ?? null }
  })
  return { rows, more }
}

async function listSubjects(sql: Sql, environmentId: string, issueId: string, kind: Kind, page: PageBySeen) {
  const { limit, after } = page
  const fingerprints = await fingerprintsOf(sql, environmentId, issueId)
  // If several fingerprints have the same subject, it is listed by the one that saw it last. The plus stops SQLite from
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
  const affectedSubjects = await fromEachFingerprint<Subject>(sql, {
    fingerprints,
    text,
    params: { env: environmentId, kind, at: after?.at, key: after?.key, issueId: once === '' ? null : issueId },
    order: '"lastSeen" DESC, key DESC',
    limit: limit + 1,
  })
  const { rows, more } = firstRows(affectedSubjects, limit)
  return { rows: once === '' ? rows : await withSums(sql, environmentId, issueId, kind, rows), more }
}

async function withSums(sql: Sql, environmentId: string, issueId: string, kind: Kind, affectedSubjects: Subject[]) {
  const text = `SELECT a.subject_key AS key, CAST(SUM(a.occurrences) AS BIGINT) AS occurrences,
      MIN(a.first_seen) AS "firstSeen"
    FROM issue_affected a JOIN issue_fingerprints f
      ON f.environment_id = a.environment_id AND f.fingerprint = a.fingerprint
    WHERE a.environment_id = :env AND f.issue_id = :issueId AND a.kind = :kind
      AND a.subject_key IN (:keys)
    GROUP BY a.subject_key`
  const keys = affectedSubjects.map(({ key }) => key)
  const of = { env: environmentId, issueId, kind, keys }
  const sums = await allIn<Pick<Subject, 'key' | 'occurrences' | 'firstSeen'>>(sql, text, of)
  const byKey = new Map(sums.map((sum) => [sum.key, sum]))
  return affectedSubjects.map((row) => ({ ...row, ...byKey.get(row.key) }))
}
