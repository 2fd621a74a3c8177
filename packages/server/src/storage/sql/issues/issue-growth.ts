import type { RecordKind } from '@tacho/contract/issue-record.ts'
import type { IssueState } from '@tacho/contract/operator/issue.ts'
import type { IssueDecision } from '../../issue-records.ts'
import type { IssueActor } from '../../issues.ts'
import { insertActivity } from './issue-activity.ts'
import type { Sql } from '../sql.ts'

export interface DecidedRecord {
  id: string
  kind: RecordKind
  seenAt: number
  runId: string | null
  agentId: string
}

export interface Growth {
  occurrences: number
  recoveries: number
  firstSeen: number | null
  lastSeen: number | null
  detectionId: string | null
}

export function growthOf(detections: DecidedRecord[], recoveries: number): Growth {
  const times = detections.map(({ seenAt }) => seenAt)
  const [first] = detections
  return {
    occurrences: detections.length,
    recoveries,
    firstSeen: first ? Math.min(...times) : null,
    lastSeen: first ? Math.max(...times) : null,
    detectionId: first?.id ?? null,
  }
}

export function addGrowth(one: Growth | undefined, other: Growth): Growth {
  if (one === undefined) return other
  const times = (values: (number | null)[]) => values.filter((value) => value !== null)
  const first = times([one.firstSeen, other.firstSeen])
  const last = times([one.lastSeen, other.lastSeen])
  return {
    occurrences: one.occurrences + other.occurrences,
    recoveries: one.recoveries + other.recoveries,
    firstSeen: first.length > 0 ? Math.min(...first) : null,
    lastSeen: last.length > 0 ? Math.max(...last) : null,
    detectionId: one.detectionId ?? other.detectionId,
  }
}

/** Also locks the fingerprint. Its issue is null until openIssue sets it. */
export async function growFingerprint(
  sql: Sql,
  environmentId: string,
  { fingerprint, detectionType, title, facts }: IssueDecision,
  { occurrences, recoveries, firstSeen, lastSeen }: Growth,
): Promise<{ issueId: string | null; recoveries: number }> {
  const text = `INSERT INTO issue_fingerprints AS f (environment_id, fingerprint, detection_type, title, facts,
      first_seen, last_seen, occurrences, recoveries, runs, agents) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0)
    ON CONFLICT (environment_id, fingerprint) DO UPDATE SET
      occurrences = f.occurrences + excluded.occurrences, recoveries = f.recoveries + excluded.recoveries,
      first_seen = CASE WHEN f.first_seen IS NULL OR excluded.first_seen < f.first_seen THEN excluded.first_seen
        ELSE f.first_seen END,
      last_seen = CASE WHEN f.last_seen IS NULL OR excluded.last_seen > f.last_seen THEN excluded.last_seen
        ELSE f.last_seen END
    RETURNING issue_id AS "issueId", recoveries`
  const params = [environmentId, fingerprint, detectionType, title, facts, firstSeen, lastSeen, occurrences, recoveries]
  const row = await sql.get<{ issueId: string | null; recoveries: number }>(text, params)
  if (row === null) throw new Error('A fingerprint was neither inserted nor found')
  return row
}

export async function openIssue(
  sql: Sql,
  environmentId: string,
  { fingerprint, newIssueId, title, detectionType }: IssueDecision,
  growth: Growth,
  now: number,
): Promise<void> {
  const { firstSeen, lastSeen, occurrences, recoveries } = growth
  const insert = `INSERT INTO issues (environment_id, id, title, detection_type, state, state_at, opened_at, first_seen,
      last_seen, occurrences, recoveries, runs, agents, regressions)
    VALUES (?, ?, ?, ?, 'OPEN', ?, ?, ?, ?, ?, ?, 0, 0, 0)`
  const counts = [firstSeen, lastSeen, occurrences, recoveries]
  await sql.run(insert, [environmentId, newIssueId, title, detectionType, now, now, ...counts])
  const own = `UPDATE issue_fingerprints SET issue_id = ?, home_issue_id = ?
    WHERE environment_id = ? AND fingerprint = ?`
  await sql.run(own, [newIssueId, newIssueId, environmentId, fingerprint])
}

/** True: a resolved issue has come back. */
export async function growIssue(
  sql: Sql,
  environmentId: string,
  issueId: string,
  growth: Growth,
  now: number,
): Promise<boolean> {
  const { occurrences, recoveries, firstSeen, lastSeen, detectionId } = growth
  const grow = `UPDATE issues SET occurrences = occurrences + ?, recoveries = recoveries + ?,
      first_seen = CASE WHEN ? < first_seen THEN ? ELSE first_seen END,
      last_seen = CASE WHEN ? > last_seen THEN ? ELSE last_seen END
    WHERE environment_id = ? AND id = ? RETURNING state, state_at AS "stateAt", state_by AS "stateBy"`
  const counts = [occurrences, recoveries, firstSeen, firstSeen, lastSeen, lastSeen]
  const issue = await sql.get<{ state: IssueState; stateAt: number; stateBy: string | null }>(grow, [
    ...counts,
    environmentId,
    issueId,
  ])
  if (issue?.state !== 'RESOLVED' || detectionId === null) return false
  const reopen = `UPDATE issues SET state = 'OPEN', state_at = ?, state_by = NULL, regressions = regressions + 1,
    last_regression_at = ? WHERE environment_id = ? AND id = ?`
  await sql.run(reopen, [now, now, environmentId, issueId])
  const resolvedBy = issue.stateBy === null ? null : (JSON.parse(issue.stateBy) as IssueActor)
  const detail = { recordId: detectionId, resolvedAt: new Date(issue.stateAt).toISOString(), resolvedBy }
  const entry = { id: detectionId, at: now, kind: 'REGRESSED' as const, actor: null, text: null, detail }
  await insertActivity(sql, { environmentId, id: issueId }, entry)
  return true
}
