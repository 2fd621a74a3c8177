/**
 *   opened --> OPEN --resolve--> RESOLVED
 *               |^ ^               |   |
 *               || +----reopen-----+   |
 *               || +--next detection---+  a regression
 *        ignore ||reopen
 *               v|
 *             IGNORED   detections count and change nothing; until a time: the service reopens it then
 *
 * Every state change is one compare-and-set. A merged issue cannot be changed.
 */
import { write, type Sql } from '../engine/sql.ts'
import type { ActivityKind, IssueState } from '@tacho/contract/issues/issue.ts'
import type { AuditEntry } from '../../people/operators.ts'
import type { ChangedIssue, IssueChange, IssueRef } from '../../issues/issues.ts'
import { enqueueWork, removeWork } from '../engine/work.ts'
import { insertAudit } from '../people/audit.ts'
import { insertActivity } from './issue-fingerprints.ts'
import { findIssue } from './issues.ts'

export const issueChangesActs = write({ changeIssueState, endIgnoring, assignIssue, commentIssue })

const CHANGES: Record<IssueState, { from: IssueState[]; kind: ActivityKind }> = {
  RESOLVED: { from: ['OPEN'], kind: 'RESOLVED' },
  IGNORED: { from: ['OPEN'], kind: 'IGNORED' },
  OPEN: { from: ['RESOLVED', 'IGNORED'], kind: 'REOPENED' },
}

async function changeIssueState(
  sql: Sql,
  issue: IssueRef,
  to: IssueState,
  change: IssueChange,
  audit: AuditEntry[],
  ignoredUntil: number | null = null,
): Promise<ChangedIssue | null> {
  const { from, kind } = CHANGES[to]
  const by = JSON.stringify(change.actor)
  const text = `UPDATE issues SET state = :to, state_at = :at, state_by = :by, ignored_until = :ignoredUntil
    WHERE environment_id = :env AND id = :id AND merged_into IS NULL AND state IN (:from)`
  const params = { env: issue.environmentId, id: issue.id, to, at: change.at, by, ignoredUntil, from }
  const changed = (await sql.run(text, params)) === 1
  if (changed) {
    const detail = ignoredUntil === null ? {} : { until: new Date(ignoredUntil).toISOString() }
    await insertActivity(sql, issue, { ...change, kind, detail })
    await insertAudit(sql, audit)
    await removeWork(sql, reopening(issue))
    if (ignoredUntil !== null) await enqueueWork(sql, [{ ...reopening(issue), dueAt: ignoredUntil }])
  }
  return changedIssue(sql, issue, changed)
}

const reopening = ({ environmentId, id }: IssueRef) => {
  return { kind: 'reopen_issue', environmentId, subjectId: id } as const
}

async function endIgnoring(sql: Sql, issue: IssueRef, entryId: string, now: number): Promise<void> {
  const text = `UPDATE issues SET state = 'OPEN', state_at = :now, state_by = NULL, ignored_until = NULL
    WHERE environment_id = :env AND id = :id AND merged_into IS NULL AND state = 'IGNORED' AND ignored_until <= :now`
  if ((await sql.run(text, { now, env: issue.environmentId, id: issue.id })) === 1) {
    await insertActivity(sql, issue, { id: entryId, at: now, kind: 'REOPENED', actor: null })
  }
  await removeWork(sql, reopening(issue))
}

async function assignIssue(
  sql: Sql,
  issue: IssueRef,
  assignee: string | null,
  change: IssueChange,
  audit: AuditEntry[],
) {
  const text = 'UPDATE issues SET assignee = :assignee WHERE environment_id = :env AND id = :id AND merged_into IS NULL'
  const changed = (await sql.run(text, { assignee, env: issue.environmentId, id: issue.id })) === 1
  if (changed) {
    await insertActivity(sql, issue, { ...change, kind: 'ASSIGNED', detail: { assignee } })
    await insertAudit(sql, audit)
  }
  return changedIssue(sql, issue, changed)
}

async function commentIssue(sql: Sql, issue: IssueRef, text: string, change: IssueChange, audit: AuditEntry[]) {
  if ((await findIssue(sql, issue.environmentId, issue.id)) === null) return false
  await insertActivity(sql, issue, { ...change, kind: 'COMMENTED', text })
  await insertAudit(sql, audit)
  return true
}

async function changedIssue(sql: Sql, issue: IssueRef, changed: boolean): Promise<ChangedIssue | null> {
  const row = await findIssue(sql, issue.environmentId, issue.id)
  return row && { changed, issue: row }
}
