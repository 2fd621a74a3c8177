import type { RetentionSettings } from '@tacho/contract/operator/retention.ts'
import { DAY_MS } from '../../hours.ts'
import type { RetainedRows } from '../../retention.ts'
import { uuidv7At } from '../../uuid.ts'
import { write } from '../act.ts'
import { findEnvironment } from '../environments.ts'
import type { Sql, SqlValue } from '../sql.ts'
import { addProgress, lockProgress, settingsOf } from './retention.ts'

export const expiredRowsActs = {
  removeExpiredRows: write(removeExpiredRows),
}

export interface RowsScope {
  workspaceId: string
  environmentId: string
}

interface OldRows {
  table: string
  where: string
  params: SqlValue[]
  key: string
  time: string
}

/** Pending requests end within a day, and then they are found. */
function oldApprovals({ environmentId }: RowsScope, before: number): OldRows {
  const where = "environment_id = ? AND created_at < ? AND status <> 'PENDING'"
  return { table: 'approvals', where, params: [environmentId, before], key: 'id', time: 'created_at' }
}

/** Ids of entries follow the time. */
function oldEntries({ environmentId }: RowsScope, before: number): OldRows {
  const where = 'environment_id = ? AND id < ?'
  return { table: 'audit_log', where, params: [environmentId, uuidv7At(before)], key: 'id', time: 'id' }
}

function oldEntriesOfWorkspace({ workspaceId }: RowsScope, before: number): OldRows {
  const where = 'workspace_id = ? AND environment_id IS NULL AND id < ?'
  return { table: 'audit_log', where, params: [workspaceId, uuidv7At(before)], key: 'id', time: 'id' }
}

/** An issue that is ignored until some time is kept, because it opens again by itself. */
function oldIssues(state: 'RESOLVED' | 'IGNORED', { environmentId }: RowsScope, before: number): OldRows {
  const where = `environment_id = ? AND state = ? AND last_seen < ? AND state_at < ? AND merged_into IS NULL
    AND ignored_until IS NULL`
  return { table: 'issues', where, params: [environmentId, state, before, before], key: 'id', time: 'last_seen' }
}

/** Rows without an environment follow the settings of the workspace. */
export function oldRows(
  what: RetainedRows,
  scope: RowsScope,
  settings: RetentionSettings,
  workspace: RetentionSettings | null,
  now: number,
): OldRows[] {
  const older = (days: number | null | undefined, of: (before: number) => OldRows[]) =>
    days === null || days === undefined ? [] : of(now - days * DAY_MS)
  if (what === 'approvals') return older(settings.approvalDays, (before) => [oldApprovals(scope, before)])
  if (what === 'issues') {
    return older(settings.issueDays, (before) => [
      oldIssues('RESOLVED', scope, before),
      oldIssues('IGNORED', scope, before),
    ])
  }
  return [
    ...older(settings.auditDays, (before) => [oldEntries(scope, before)]),
    ...older(workspace?.auditDays, (before) => [oldEntriesOfWorkspace(scope, before)]),
  ]
}

/** At most about `most`. Returns how many; 0: there are no more. */
async function removeExpiredRows(
  sql: Sql,
  environmentId: string,
  what: RetainedRows,
  now: number,
  most: number,
): Promise<number> {
  const progress = await lockProgress(sql, environmentId)
  const environment = await findEnvironment(sql, environmentId)
  if (environment === null) return 0
  const scope = { workspaceId: environment.workspaceId, environmentId }
  const { settings, workspace } = await settingsOf(sql, scope)
  for (const rows of oldRows(what, scope, settings, workspace, now)) {
    const { removed, counted } =
      what === 'issues' ? await removeIssue(sql, environmentId, rows, most) : await removeOldest(sql, rows, most)
    if (removed === 0) continue
    await addProgress(sql, environmentId, progress, now, { [what]: counted })
    return removed
  }
  return 0
}

interface Removed {
  removed: number
  /** Things, as people count them. */
  counted: number
}

async function removeOldest(sql: Sql, { table, where, params, key, time }: OldRows, most: number): Promise<Removed> {
  const oldest = `SELECT ${key} FROM ${table} WHERE ${where} ORDER BY ${time}, ${key} LIMIT ?`
  // Without the first condition, Citus would look for the ids on every machine.
  const own = table === 'audit_log' ? '' : 'environment_id = ? AND '
  const first = table === 'audit_log' ? [] : params.slice(0, 1)
  const text = `DELETE FROM ${table} WHERE ${own}${key} IN (${oldest})`
  const removed = await sql.run(text, [...first, ...params, most])
  return { removed, counted: removed }
}

/** Rows of the oldest issue, and the issue with the last ones. */
async function removeIssue(sql: Sql, environmentId: string, rows: OldRows, most: number): Promise<Removed> {
  const lock = sql.dialect === 'postgres' ? 'FOR UPDATE SKIP LOCKED' : ''
  const text = `SELECT id FROM issues WHERE ${rows.where} ORDER BY last_seen, id LIMIT 1 ${lock}`
  const issue = await sql.get<{ id: string }>(text, rows.params)
  if (issue === null) return { removed: 0, counted: 0 }
  const { id } = issue
  const prints = `(SELECT fingerprint FROM issue_fingerprints WHERE environment_id = ? AND issue_id = ?)`
  const merged = `(SELECT id FROM issues WHERE environment_id = ? AND (id = ? OR merged_into = ?))`
  let left = most
  const remove = async (statement: string, params: SqlValue[]) => {
    if (left > 0) left -= await sql.run(statement, [...params, left])
  }
  const ofIssue = [environmentId, environmentId, environmentId, id]
  await remove(
    `DELETE FROM issue_records WHERE environment_id = ? AND id IN (
      SELECT id FROM issue_records WHERE environment_id = ? AND fingerprint IN ${prints} LIMIT ?)`,
    ofIssue,
  )
  await remove(
    `DELETE FROM issue_affected WHERE environment_id = ? AND (fingerprint, kind, subject_key) IN (
      SELECT fingerprint, kind, subject_key FROM issue_affected WHERE environment_id = ? AND fingerprint IN ${prints} LIMIT ?)`,
    ofIssue,
  )
  await remove(
    `DELETE FROM issue_activity WHERE environment_id = ? AND (issue_id, at, id) IN (
      SELECT issue_id, at, id FROM issue_activity WHERE environment_id = ? AND issue_id IN ${merged} LIMIT ?)`,
    [environmentId, environmentId, environmentId, id, id],
  )
  if (left <= 0) return { removed: most, counted: 0 }
  const own = [environmentId, id]
  const removed = most - left
  const fingerprints = await sql.run('DELETE FROM issue_fingerprints WHERE environment_id = ? AND issue_id = ?', own)
  const targets = await sql.run('DELETE FROM issues WHERE environment_id = ? AND merged_into = ?', own)
  await sql.run('DELETE FROM issues WHERE environment_id = ? AND id = ?', own)
  return { removed: removed + fingerprints + targets + 1, counted: 1 }
}
