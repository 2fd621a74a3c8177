import type { IssueState } from '@tacho/contract/issues/issue.ts'
import type { IssueDecision, IssueRecordRow, IssueActor } from '../../issues/issues.ts'
import { insertRows } from '../engine/rows.ts'
import { insertActivity } from './issue-fingerprints.ts'
import type { Sql } from '../engine/sql.ts'

export type DecidedRecord = Pick<IssueRecordRow, 'id' | 'recordKind' | 'seenAt' | 'runId' | 'agentId'>

export interface Decided {
  detections: DecidedRecord[]
  recoveries: number
}

type Growth = ReturnType<typeof seenIn> & Pick<Decided, 'recoveries'>

/** Widens a span. Only SQLite's MIN takes two values. `row`: of the stored row, with a dot. */
export const spanWith = (first: string, last: string, row = ''): string =>
  `first_seen = CASE WHEN ${row}first_seen IS NULL OR ${first} < ${row}first_seen THEN ${first} ELSE ${row}first_seen END,
    last_seen = CASE WHEN ${row}last_seen IS NULL OR ${last} > ${row}last_seen THEN ${last} ELSE ${row}last_seen END`

export function seenIn(detections: readonly DecidedRecord[]) {
  const times = detections.map(({ seenAt }) => seenAt)
  const [firstSeen, lastSeen] = times.length === 0 ? [null, null] : [Math.min(...times), Math.max(...times)]
  return { occurrences: detections.length, firstSeen, lastSeen }
}

/** Also locks the fingerprint. Its issue is null until openIssue sets it. */
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
