import type { RetentionSettings } from '@tacho/contract/data/retention.ts'
import { DAY_MS } from '../../engine/times.ts'
import type { RetainedRows, Tenant } from '../../data/retention.ts'
import { uuidv7At } from '../../engine/uuid.ts'
import { write, type Sql, type SqlValue } from '../engine/sql.ts'
import { findEnvironment } from '../tenants/workspaces.ts'
import { addProgress, lockProgress, settingsOf } from './retention.ts'

export const expiredRowsActs = write({ removeExpiredRows })

interface OldRows {
  table: string
  where: string
  params: Readonly<Record<string, SqlValue>>
  time: string
}

/** Pending requests end within a day, and then they are found. */
function oldApprovals(env: string, before: number): OldRows {
  const where = "environment_id = :env AND created_at < :before AND status <> 'PENDING'"
  return { table: 'approvals', where, params: { env, before }, time: 'created_at' }
}

/** Ids of entries follow the time. */
function oldEntries(owner: string, params: Record<string, string>, before: number): OldRows {
  return { table: 'audit_log', where: `${owner} AND id < :id`, params: { ...params, id: uuidv7At(before) }, time: 'id' }
}

/** An issue that is ignored until some time is kept, because it opens again by itself. */
function oldIssues(state: 'RESOLVED' | 'IGNORED', env: string, before: number): OldRows {
  const where = `environment_id = :env AND state = :state AND last_seen < :before AND state_at < :before
    AND merged_into IS NULL AND ignored_until IS NULL`
  return { table: 'issues', where, params: { env, state, before }, time: 'last_seen' }
}

/** Rows without an environment follow the settings of the workspace. */
export function oldRows(
  what: RetainedRows,
  { workspaceId, environmentId: env }: Tenant,
  settings: RetentionSettings,
  workspace: RetentionSettings | null,
  now: number,
): OldRows[] {
  const older = (days: number | null | undefined, of: (before: number) => OldRows[]) =>
    days === null || days === undefined ? [] : of(now - days * DAY_MS)
  if (what === 'approvals') return older(settings.approvalDays, (before) => [oldApprovals(env, before)])
  if (what === 'issues') {
    const states = ['RESOLVED', 'IGNORED'] as const
    return older(settings.issueDays, (before) => states.map((state) => oldIssues(state, env, before)))
  }
  const ofWorkspace = 'workspace_id = :workspaceId AND environment_id IS NULL'
  return [
    ...older(settings.auditDays, (before) => [oldEntries('environment_id = :env', { env }, before)]),
    ...older(workspace?.auditDays, (before) => [oldEntries(ofWorkspace, { workspaceId }, before)]),
  ]
}

async function removeExpiredRows(sql: Sql, environmentId: string, what: RetainedRows, now: number, most: number) {
  const progress = await lockProgress(sql, environmentId)
  const environment = await findEnvironment(sql, environmentId)
  if (environment === null) return 0
  const scope = { workspaceId: environment.workspaceId, environmentId }
  const { settings, workspace } = await settingsOf(sql, scope)
  for (const rows of oldRows(what, scope, settings, workspace?.settings ?? null, now)) {
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

async function removeOldest(sql: Sql, { table, where, params, time }: OldRows, most: number): Promise<Removed> {
  const oldest = `SELECT id FROM ${table} WHERE ${where} ORDER BY ${time}, id LIMIT :most`
  // Without the first condition, Citus would look for the ids on every machine.
  const tenantCondition = table === 'audit_log' ? '' : 'environment_id = :env AND '
  const text = `DELETE FROM ${table} WHERE ${tenantCondition}id IN (${oldest})`
  const removed = await sql.run(text, { ...params, most })
  return { removed, counted: removed }
}

/** Removes rows of the oldest issue. The issue itself goes with its last rows. */
async function removeIssue(sql: Sql, environmentId: string, rows: OldRows, most: number): Promise<Removed> {
  const lock = sql.dialect === 'postgres' ? 'FOR UPDATE SKIP LOCKED' : ''
  const text = `SELECT id FROM issues WHERE ${rows.where} ORDER BY last_seen, id LIMIT 1 ${lock}`
  const issue = await sql.get<{ id: string }>(text, rows.params)
  if (issue === null) return { removed: 0, counted: 0 }
  const { id } = issue
  const prints = `(SELECT fingerprint FROM issue_fingerprints WHERE environment_id = :env AND issue_id = :id)`
  const merged = `(SELECT id FROM issues WHERE environment_id = :env AND (id = :id OR merged_into = :id))`
  let left = most
  const rowKey = { env: environmentId, id }
  for (const [table, key, condition] of [
    ['issue_records', 'id', `fingerprint IN ${prints}`],
    ['issue_affected', 'fingerprint, kind, subject_key', `fingerprint IN ${prints}`],
    ['issue_activity', 'issue_id, at, id', `issue_id IN ${merged}`],
  ]) {
    if (left <= 0) break
    const some = `SELECT ${key} FROM ${table} WHERE environment_id = :env AND ${condition} LIMIT :left`
    const remove = `DELETE FROM ${table} WHERE environment_id = :env AND (${key}) IN (${some})`
    left -= await sql.run(remove, { ...rowKey, left })
  }
  if (left <= 0) return { removed: most, counted: 0 }
  const removed = most - left
  const ofIssue = 'DELETE FROM issue_fingerprints WHERE environment_id = :env AND issue_id = :id'
  const fingerprints = await sql.run(ofIssue, rowKey)
  const targets = await sql.run('DELETE FROM issues WHERE environment_id = :env AND merged_into = :id', rowKey)
  await sql.run('DELETE FROM issues WHERE environment_id = :env AND id = :id', rowKey)
  return { removed: removed + fingerprints + targets + 1, counted: 1 }
}
