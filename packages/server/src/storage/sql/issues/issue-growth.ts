import type { RecordKind } from '@tacho/contract/issue-record.ts'
import type { IssueState } from '@tacho/contract/operator/issue.ts'
import type { IssueDecision, IssueRecordRow } from '../../issue-records.ts'
import type { IssueActor } from '../../issues.ts'
import { insertActivity } from './issue-activity.ts'
import type { Sql } from '../sql.ts'

export interface DecidedRecord extends Pick<IssueRecordRow, 'id' | 'seenAt' | 'runId' | 'agentId'> {
  kind: RecordKind
}

export interface Decided {
  detections: DecidedRecord[]
  recoveries: number
}

export interface Growth {
  occurrences: number
  recoveries: number
  firstSeen: number | null
  lastSeen: number | null
  detectionId: string | null
}

export function growthOf({ detections, recoveries }: Decided): Growth {
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

/** Also locks the fingerprint. Its issue is null until openIssue sets it. */
export async function growFingerprint(
  sql: Sql,
  environmentId: string,
  { fingerprint, detectionType, title, facts }: IssueDecision,
  { detectionId: _, ...growth }: Growth,
): Promise<{ issueId: string | null; recoveries: number }> {
  const text = `INSERT INTO issue_fingerprints AS f (environment_id, fingerprint, detection_type, title, facts,
      first_seen, last_seen, occurrences, recoveries, runs, agents)
    VALUES (:env, :fingerprint, :detectionType, :title, :facts, :firstSeen, :lastSeen, :occurrences, :recoveries, 0, 0)
    ON CONFLICT (environment_id, fingerprint) DO UPDATE SET
      occurrences = f.occurrences + excluded.occurrences, recoveries = f.recoveries + excluded.recoveries,
      first_seen = CASE WHEN f.first_seen IS NULL OR excluded.first_seen < f.first_seen THEN excluded.first_seen
        ELSE f.first_seen END,
      last_seen = CASE WHEN f.last_seen IS NULL OR excluded.last_seen > f.last_seen THEN excluded.last_seen
        ELSE f.last_seen END
    RETURNING issue_id AS "issueId", recoveries`
  const params = { env: environmentId, fingerprint, detectionType, title, facts, ...growth }
  const row = await sql.get<{ issueId: string | null; recoveries: number }>(text, params)
  if (row === null) throw new Error('A fingerprint was neither inserted nor found')
  return row
}

export async function openIssue(
  sql: Sql,
  environmentId: string,
  { fingerprint, newIssueId, title, detectionType }: IssueDecision,
  { detectionId: _, ...growth }: Growth,
  now: number,
): Promise<void> {
  const insert = `INSERT INTO issues (environment_id, id, title, detection_type, state, state_at, opened_at, first_seen,
      last_seen, occurrences, recoveries, runs, agents, regressions)
    VALUES (:env, :newIssueId, :title, :detectionType, 'OPEN', :now, :now, :firstSeen, :lastSeen, :occurrences,
      :recoveries, 0, 0, 0)`
  await sql.run(insert, { env: environmentId, newIssueId, title, detectionType, now, ...growth })
  const own = `UPDATE issue_fingerprints SET issue_id = :newIssueId, home_issue_id = :newIssueId
    WHERE environment_id = :env AND fingerprint = :fingerprint`
  await sql.run(own, { newIssueId, env: environmentId, fingerprint })
}

export async function growIssue(
  sql: Sql,
  environmentId: string,
  issueId: string,
  { detectionId, ...growth }: Growth,
  now: number,
): Promise<boolean> {
  const grow = `UPDATE issues SET occurrences = occurrences + :occurrences, recoveries = recoveries + :recoveries,
      first_seen = CASE WHEN :firstSeen < first_seen THEN :firstSeen ELSE first_seen END,
      last_seen = CASE WHEN :lastSeen > last_seen THEN :lastSeen ELSE last_seen END
    WHERE environment_id = :env AND id = :issueId RETURNING state, state_at AS "stateAt", state_by AS "stateBy"`
  const grown = { env: environmentId, issueId, ...growth }
  const issue = await sql.get<{ state: IssueState; stateAt: number; stateBy: string | null }>(grow, grown)
  if (issue?.state !== 'RESOLVED' || detectionId === null) return false
  const reopen = `UPDATE issues SET state = 'OPEN', state_at = :now, state_by = NULL, regressions = regressions + 1,
    last_regression_at = :now WHERE environment_id = :env AND id = :issueId`
  await sql.run(reopen, { now, env: environmentId, issueId })
  const resolvedBy = issue.stateBy === null ? null : (JSON.parse(issue.stateBy) as IssueActor)
  const detail = { recordId: detectionId, resolvedAt: new Date(issue.stateAt).toISOString(), resolvedBy }
  const entry = { id: detectionId, at: now, kind: 'REGRESSED' as const, actor: null, text: null, detail }
  await insertActivity(sql, { environmentId, id: issueId }, entry)
  return true
}
