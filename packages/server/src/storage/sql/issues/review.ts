/**
 * Decides records: each joins the issue of its fingerprint, or opens it.
 *
 * Rows are locked in one order everywhere: failures of runs (named-lock.ts), records, fingerprints, issues, each by
 * key. Merging and splitting lock fingerprints too, so a locked fingerprint stays in its issue. The first decision
 * about a fingerprint inserts it and others wait, so one set of facts has one issue.
 */
import { write } from '../engine/act.ts'
import type { DecidedIssues, IssueDecision } from '../../issues/issue-records.ts'
import { announceIssues } from '../messages/announcements.ts'
import { countAffected, type AffectedPlace } from './issue-affected.ts'
import { growFingerprint, growIssue, seenIn, openIssue, type Decided, type DecidedRecord } from './issue-growth.ts'
import { endReview } from './issue-records.ts'
import { serviceRecordKey } from '../engine/keys.ts'
import type { Sql } from '../engine/sql.ts'
import { holdFailures } from '../engine/named-lock.ts'

export const reviewActs = write({ decideIssueRecords })

interface Group extends Decided {
  decision: IssueDecision
}

/** Skips a record that is no longer being evaluated, so that nothing counts twice. */
export async function decideIssueRecords(sql: Sql, environmentId: string, decisions: IssueDecision[], now: number) {
  const named = decisions.flatMap(({ reports }) => reports?.runId ?? [])
  await holdFailures(sql, environmentId, named)
  const groups = new Map<string, Group>()
  for (const decision of decisions.toSorted((a, b) => (a.recordId < b.recordId ? -1 : 1))) {
    if (await joinService(sql, environmentId, decision, now)) continue
    const record = await decide(sql, environmentId, decision, now)
    if (record === null) continue
    const group = groups.get(decision.fingerprint) ?? { decision, detections: [], recoveries: 0 }
    groups.set(decision.fingerprint, group)
    if (record.recordKind === 'DETECTION') group.detections.push(record)
    else group.recoveries += 1
  }
  return countGroups(sql, environmentId, groups, now)
}

/** True: the service counted the failure, and this record is evidence of the service's one. */
async function joinService(sql: Sql, environmentId: string, { recordId, reports }: IssueDecision, now: number) {
  if (reports === null) return false
  const select = 'SELECT id FROM issue_records WHERE environment_id = :env AND record_key = :key'
  const key = serviceRecordKey(reports.runId, reports.eventId)
  const counted = await sql.get<{ id: string }>(select, { env: environmentId, key })
  if (counted === null) return false
  const text = `UPDATE issue_records SET status = 'DECIDED', status_at = :now, same_as = :id
    WHERE environment_id = :env AND id = :recordId AND status = 'EVALUATING'`
  if ((await sql.run(text, { now, id: counted.id, env: environmentId, recordId })) === 1) {
    await endReview(sql, environmentId, recordId)
  }
  return true
}

async function decide(sql: Sql, environmentId: string, { recordId, fingerprint }: IssueDecision, now: number) {
  const text = `UPDATE issue_records SET status = 'DECIDED', status_at = :now, fingerprint = :fingerprint
    WHERE environment_id = :env AND id = :recordId AND status = 'EVALUATING'
    RETURNING id, record_kind AS "recordKind", seen_at AS "seenAt", run_id AS "runId", agent_id AS "agentId"`
  const record = await sql.get<DecidedRecord>(text, { now, fingerprint, env: environmentId, recordId })
  if (record !== null) await endReview(sql, environmentId, recordId)
  return record
}

async function countGroups(sql: Sql, environmentId: string, groups: ReadonlyMap<string, Group>, now: number) {
  const decided: DecidedIssues = { opened: [], regressed: [] }
  const grown = new Map<string, Group[]>()
  const detected: { place: AffectedPlace; detections: DecidedRecord[] }[] = []
  for (const [fingerprint, group] of [...groups].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const { decision, detections, recoveries } = group
    const growth = { ...seenIn(detections), recoveries }
    const known = await growFingerprint(sql, environmentId, decision, growth)
    // A recovery without a detection stays with its fingerprint.
    if (known.issueId === null && detections.length === 0) continue
    const issueId = known.issueId ?? decision.newIssueId
    detected.push({ place: { environmentId, fingerprint, issueId }, detections })
    if (known.issueId === null) {
      await openIssue(sql, environmentId, decision, { ...growth, recoveries: known.recoveries }, now)
      decided.opened.push(issueId)
    } else {
      grown.set(issueId, [...(grown.get(issueId) ?? []), group])
    }
  }
  for (const [issueId, some] of [...grown].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const detections = some.flatMap((group) => group.detections)
    const recoveries = some.reduce((sum, group) => sum + group.recoveries, 0)
    if (await growIssue(sql, environmentId, issueId, { detections, recoveries }, now)) decided.regressed.push(issueId)
  }
  // Must run while the issue row is locked.
  for (const { place, detections } of detected) await countAffected(sql, place, detections)
  await announceIssues(sql, environmentId, 'issue.opened', decided.opened, now)
  await announceIssues(sql, environmentId, 'issue.regressed', decided.regressed, now)
  return decided
}
