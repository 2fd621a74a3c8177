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
import type {
  ChangedIssue,
  IssueChange,
  IssueRef,
  IssueSplit,
  IssueWhole,
  MergeOutcome,
  SplitOutcome,
} from '../../issues/issues.ts'
import { enqueueWork, removeWork } from '../engine/work.ts'
import { insertAudit } from '../people/audit.ts'
import { insertActivity, fingerprintsOf, recountIssue } from './issue-fingerprints.ts'
import { findIssue } from './issues.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { StorageError } from '../../engine/store.ts'
import { allIn, insertRows } from '../engine/rows.ts'

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

/**
 * Merging and splitting move fingerprints between issues. Records follow because they belong to their fingerprint.
 *
 * merged_into never names a merged issue: a merge also moves the issues that were merged into its source. An unmerged
 * issue has a fingerprint, so locking its fingerprints locks the issue. See issue-records.ts for the order.
 */
export const issueGroupingActs = write({ mergeIssues, splitIssue })

const ATTEMPTS = 5

/** Tries again while another transaction moves fingerprints of the issue: `change` returns null then. */
async function whileUnmerged<Outcome>(sql: Sql, issue: IssueRef, change: () => Promise<Outcome | null>) {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const into = await mergedInto(sql, issue)
    if (into === undefined) return { outcome: 'no_issue' } as const
    if (into !== null) return { outcome: 'merged_already', into } as const
    const outcome = await change()
    if (outcome !== null) return outcome
  }
  throw new StorageError('overloaded', 'Another transaction is merging or splitting the issue')
}

function mergeIssues(
  sql: Sql,
  issue: IssueRef,
  into: string,
  change: IssueChange,
  audit: AuditEntry[],
): Promise<MergeOutcome> {
  const { environmentId } = issue
  return whileUnmerged<MergeOutcome>(sql, issue, async () => {
    const target = await mergedInto(sql, { environmentId, id: into })
    if (target === undefined) return { outcome: 'no_target' }
    const root = target ?? into
    if (root === issue.id) return { outcome: 'same_issue' }
    const held = await holdFingerprints(sql, environmentId, [issue.id, root])
    if (held === null) return null
    if (held.length > LIMITS.issueFingerprints) return { outcome: 'too_many_groups' }
    await merge(sql, issue, root, change)
    await insertAudit(sql, audit)
    return { outcome: 'merged', issue: await whole(sql, environmentId, root) }
  })
}

async function merge(sql: Sql, issue: IssueRef, root: string, change: IssueChange): Promise<void> {
  const { environmentId } = issue
  const params = { env: environmentId, root, id: issue.id }
  const move = 'UPDATE issue_fingerprints SET issue_id = :root WHERE environment_id = :env AND issue_id = :id'
  await sql.run(move, params)
  const passOn = 'UPDATE issues SET merged_into = :root WHERE environment_id = :env AND (id = :id OR merged_into = :id)'
  await sql.run(passOn, params)
  await recountIssue(sql, environmentId, root)
  await insertActivity(sql, issue, { ...change, kind: 'MERGED_INTO', detail: { issueId: root } })
  await insertActivity(sql, { environmentId, id: root }, { ...change, kind: 'MERGED', detail: { issueId: issue.id } })
}

function splitIssue(
  sql: Sql,
  issue: IssueRef,
  { fingerprints, newIssueId }: IssueSplit,
  change: IssueChange,
  audit: AuditEntry[],
): Promise<SplitOutcome> {
  const { environmentId } = issue
  return whileUnmerged<SplitOutcome>(sql, issue, async () => {
    const held = await holdFingerprints(sql, environmentId, [issue.id])
    if (held === null) return null
    if (!fingerprints.every((fingerprint) => held.includes(fingerprint))) return { outcome: 'no_such_group' }
    if (fingerprints.length === held.length) return { outcome: 'nothing_left' }
    const target = await split(sql, issue, fingerprints, newIssueId, change)
    await insertAudit(sql, audit)
    return { outcome: 'split', issue: await whole(sql, environmentId, target) }
  })
}

async function split(sql: Sql, issue: IssueRef, fingerprints: string[], newIssueId: string, change: IssueChange) {
  const { environmentId } = issue
  const { at } = change
  const target = (await returnHome(sql, issue, fingerprints)) ?? newIssueId
  if (target === newIssueId) {
    const opened = {
      id: target,
      title: '',
      detectionType: '',
      state: 'OPEN',
      stateAt: at,
      stateBy: change.actor,
      openedAt: at,
    }
    const counts = { firstSeen: 0, lastSeen: 0, occurrences: 0, recoveries: 0, runs: 0, agents: 0, regressions: 0 }
    await insertRows(sql, 'issues', [{ environmentId, ...opened, ...counts }])
  }
  const move = `UPDATE issue_fingerprints SET issue_id = :target, home_issue_id = :target
    WHERE environment_id = :env AND fingerprint = :fingerprint`
  for (const fingerprint of fingerprints) await sql.run(move, { target, env: environmentId, fingerprint })
  for (const one of [issue.id, target].toSorted()) await recountIssue(sql, environmentId, one)
  const detail = { issueId: target, fingerprints }
  await insertActivity(sql, issue, { ...change, kind: 'SPLIT', detail })
  const from = { issueId: issue.id, fingerprints }
  await insertActivity(sql, { environmentId, id: target }, { ...change, kind: 'SPLIT_FROM', detail: from })
  return target
}

async function returnHome(sql: Sql, { environmentId, id }: IssueRef, fingerprints: string[]): Promise<string | null> {
  const text = `SELECT DISTINCT home_issue_id AS home FROM issue_fingerprints
    WHERE environment_id = :env AND fingerprint IN (:fingerprints)`
  const homes = await allIn<{ home: string }>(sql, text, { env: environmentId, fingerprints })
  const [first, ...others] = new Set(homes.map(({ home }) => home))
  if (first === undefined || others.length > 0) return null
  const revive =
    'UPDATE issues SET merged_into = NULL WHERE environment_id = :env AND id = :first AND merged_into = :id'
  return (await sql.run(revive, { env: environmentId, first, id })) === 1 ? first : null
}

/** The issue into which it was merged. Null: not merged. Undefined: no such issue. */
async function mergedInto(sql: Sql, { environmentId, id }: IssueRef): Promise<string | null | undefined> {
  const text = 'SELECT merged_into AS "mergedInto" FROM issues WHERE environment_id = :env AND id = :id'
  return (await sql.get<{ mergedInto: string | null }>(text, { env: environmentId, id }))?.mergedInto
}

/** Locks the fingerprints of the issues until the transaction ends. Null: the set changed in the meantime. */
async function holdFingerprints(sql: Sql, environmentId: string, issueIds: string[]): Promise<string[] | null> {
  const list = async () => {
    const lists: string[][] = []
    for (const id of issueIds) lists.push(await fingerprintsOf(sql, environmentId, id))
    return lists
  }
  // A failed attempt releases its locks. Otherwise the next attempt would lock out of order, and could deadlock.
  const savepoint = async (text: string) => {
    if (sql.dialect === 'postgres') await sql.run(text)
  }
  await savepoint('SAVEPOINT held')
  const before = await list()
  const lockSets = `UPDATE issue_fingerprints SET issue_id = issue_id
    WHERE environment_id = :env AND fingerprint = :fingerprint`
  for (const fingerprint of before.flat().toSorted()) await sql.run(lockSets, { env: environmentId, fingerprint })
  const after = await list()
  // An issue without fingerprints was merged after it was read, because an unmerged issue has one.
  const isMerged = after.some((fingerprints) => fingerprints.length === 0)
  if (!isMerged && JSON.stringify(before) === JSON.stringify(after)) return after.flat()
  await savepoint('ROLLBACK TO SAVEPOINT held')
  return null
}

async function whole(sql: Sql, environmentId: string, id: string): Promise<IssueWhole> {
  const issue = await findIssue(sql, environmentId, id)
  if (issue === null) throw new Error('An issue that was just changed is missing')
  return issue
}
