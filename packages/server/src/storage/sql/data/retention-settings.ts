import type { RetentionCounts, RetentionSettings } from '@tacho/contract/data/retention.ts'
import type { AuditEntry } from '../../people/operators.ts'
import {
  KEEP_ALL,
  SETTING_NAMES,
  type ReadSettings,
  type RetentionProgressRow,
  type RetentionRow,
  type Tenant,
} from '../../data/retention.ts'
import type { NewWork } from '../../engine/work.ts'
import { read, write, selectList, type Sql } from '../engine/sql.ts'
import { insertAudit } from '../people/audit.ts'
import { findEnvironment, lockWorkspace } from '../tenants/workspaces.ts'
import { insertRows, withJson } from '../engine/rows.ts'
import { takeSum, withSum } from '../engine/row-sums.ts'
import { findRun } from '../runs/runs.ts'
import { enqueueWork, RESTARTS } from '../engine/work.ts'

export const retentionActs = {
  ...read({ readRetention, readWorkspaceRetention }),
  ...write({ changeRetention, pinRun, queueRetention, startRetention, endRetention }),
}

const SETTINGS = withSum('retention_settings')

/** Stands for the workspace, in place of an environment's id. */
const DEFAULT = ''

type StoredSettings = Omit<RetentionSettings, 'keepOpenIssueRuns'> & { environmentId: string; keepOpenIssueRuns: 0 | 1 }

/** Damaged settings keep everything until somebody sets them again. */
function toSettings(sql: Sql, workspaceId: string, row: StoredSettings): ReadSettings {
  if (!takeSum(sql, 'retention_settings', row, row.environmentId || workspaceId)) {
    return { settings: KEEP_ALL, damaged: true }
  }
  const { environmentId: _, keepOpenIssueRuns, ...days } = row
  return { settings: { ...days, keepOpenIssueRuns: keepOpenIssueRuns === 1 } }
}

export async function settingsOf(
  sql: Sql,
  { workspaceId, environmentId }: Tenant,
): Promise<Omit<RetentionRow, 'progress'> & { workspace: ReadSettings | null }> {
  const text = `SELECT ${SETTINGS} FROM retention_settings
    WHERE workspace_id = :workspaceId AND environment_id IN (:env, '${DEFAULT}')`
  const stored = await sql.all<StoredSettings>(text, { workspaceId, env: environmentId })
  const environmentSetting = stored.find((row) => row.environmentId === environmentId)
  const ofWorkspace = stored.find((row) => row.environmentId === DEFAULT)
  const workspace = ofWorkspace === undefined ? null : toSettings(sql, workspaceId, ofWorkspace)
  if (environmentSetting !== undefined)
    return { ...toSettings(sql, workspaceId, environmentSetting), source: 'environment', workspace }
  if (workspace !== null) return { ...workspace, source: 'workspace', workspace }
  return { settings: KEEP_ALL, source: 'none', workspace }
}

async function readRetention(sql: Sql, tenant: Tenant): Promise<RetentionRow> {
  const { workspace: _, ...settings } = await settingsOf(sql, tenant)
  return { ...settings, progress: await findProgress(sql, tenant.environmentId) }
}

async function readWorkspaceRetention(sql: Sql, workspaceId: string): Promise<ReadSettings | null> {
  return (await settingsOf(sql, { workspaceId, environmentId: DEFAULT })).workspace
}

/** `environmentId` null: changes the workspace. False: the settings are no longer `before`, so nothing was changed. */
async function changeRetention(
  sql: Sql,
  workspaceId: string,
  environmentId: string | null,
  { before, settings }: { before: RetentionSettings; settings: RetentionSettings | null },
  now: number,
  audit: AuditEntry[],
): Promise<boolean> {
  // Concurrent changes must not both start from the same settings.
  await lockWorkspace(sql, workspaceId)
  const { settings: current } = await settingsOf(sql, { workspaceId, environmentId: environmentId ?? DEFAULT })
  if (SETTING_NAMES.some((name) => current[name] !== before[name])) return false
  const of = { workspaceId, env: environmentId ?? DEFAULT }
  await sql.run('DELETE FROM retention_settings WHERE workspace_id = :workspaceId AND environment_id = :env', of)
  if (settings !== null) {
    const setDays = Object.fromEntries(SETTING_NAMES.map((name) => [name, settings[name]]))
    await insertRows(sql, 'retention_settings', [{ workspaceId, environmentId: of.env, ...setDays }])
  }
  await insertAudit(sql, audit)
  const all = `SELECT id FROM environments WHERE workspace_id = :workspaceId AND removed_at IS NULL
    ORDER BY id LIMIT ${QUEUED_AT_ONCE}`
  const concerned =
    environmentId === null ? await sql.all<{ id: string }>(all, { workspaceId }) : [{ id: environmentId }]
  // A running pass may already be past what the new settings remove.
  await enqueueWork(sql, passesOf(concerned, now), RESTARTS)
  return true
}

const QUEUED_AT_ONCE = 1_000

function passesOf(environments: { id: string }[], dueAt: number): NewWork[] {
  return environments.map(({ id }) => ({ kind: 'retain', environmentId: id, subjectId: id, dueAt }))
}

async function pinRun(
  sql: Sql,
  environmentId: string,
  runIdOrUuid: string,
  pinnedAt: number | null,
  audit: AuditEntry[],
): Promise<{ id: string; runId: string; pinnedAt: number | null } | null> {
  const run = await findRun(sql, environmentId, runIdOrUuid)
  if (run === null) return null
  const { id, runId } = run
  const isSame = (run.pinnedAt === null) === (pinnedAt === null)
  if (isSame) return { id, runId, pinnedAt: run.pinnedAt }
  const text = 'UPDATE runs SET pinned_at = :pinnedAt WHERE environment_id = :env AND id = :id'
  // A job may have removed the run since.
  if ((await sql.run(text, { pinnedAt, env: environmentId, id })) === 0) return null
  await insertAudit(sql, audit)
  return { id, runId, pinnedAt }
}

async function queueRetention(sql: Sql, now: number, endedBefore: number): Promise<void> {
  const text = `SELECT e.id FROM environments e
    WHERE e.removed_at IS NULL
      AND EXISTS (SELECT 1 FROM retention_settings s WHERE s.workspace_id = e.workspace_id AND s.environment_id IN ('', e.id))
      AND NOT EXISTS (SELECT 1 FROM retention_progress p WHERE p.environment_id = e.id AND p.pass_ended_at >= :endedBefore)
      AND NOT EXISTS (SELECT 1 FROM work w WHERE w.environment_id = e.id AND w.kind = 'retain')
    ORDER BY e.id LIMIT :limit`
  const due = await sql.all<{ id: string }>(text, { endedBefore, limit: QUEUED_AT_ONCE })
  await enqueueWork(sql, passesOf(due, now))
}

const NOTHING: RetentionCounts = { runs: 0, events: 0, payloads: 0, issues: 0, approvals: 0, auditEntries: 0 }

const PROGRESS = selectList('pass_started_at pass_ended_at last_slice_at reached_at pass total')
const toProgress = withJson<RetentionProgressRow>('pass', 'total')

async function findProgress(sql: Sql, environmentId: string): Promise<RetentionProgressRow | null> {
  const text = `SELECT ${PROGRESS} FROM retention_progress WHERE environment_id = :env`
  const row = await sql.get<object>(text, { env: environmentId })
  return row && toProgress(row)
}

/** Null: the environment has nothing to remove. */
async function startRetention(sql: Sql, environmentId: string, now: number): Promise<RetentionSettings | null> {
  const environment = await findEnvironment(sql, environmentId)
  if (environment === null) return null
  const { settings, source } = await settingsOf(sql, { workspaceId: environment.workspaceId, environmentId })
  if (source === 'none') return null
  // An unfinished pass continues and keeps its counts.
  const text = `INSERT INTO retention_progress
      (environment_id, pass_started_at, pass_ended_at, last_slice_at, reached_at, pass, total)
    VALUES (:env, :now, NULL, NULL, NULL, :counts, :counts)
    ON CONFLICT (environment_id) DO UPDATE SET pass_started_at = excluded.pass_started_at, pass_ended_at = NULL,
      reached_at = NULL, pass = excluded.pass
    WHERE retention_progress.pass_ended_at IS NOT NULL`
  await sql.run(text, { env: environmentId, now, counts: JSON.stringify(NOTHING) })
  return settings
}

/** Serialises the slices of an environment, should two nodes work on it. */
export async function lockProgress(sql: Sql, environmentId: string): Promise<RetentionProgressRow> {
  if (sql.dialect === 'postgres') {
    const lock = 'SELECT 1 FROM retention_progress WHERE environment_id = :env FOR NO KEY UPDATE'
    await sql.get(lock, { env: environmentId })
  }
  const progress = await findProgress(sql, environmentId)
  if (progress === null) throw new Error('The retention pass of this slice has not started')
  return progress
}

export async function addProgress(
  sql: Sql,
  environmentId: string,
  progress: RetentionProgressRow,
  now: number,
  removed: Partial<RetentionCounts>,
  reachedAt: number | null = progress.reachedAt,
): Promise<void> {
  const isSome = Object.values(removed).some((count) => count > 0)
  const text = `UPDATE retention_progress SET last_slice_at = :sliceAt, reached_at = :reachedAt, pass = :pass, total = :total
    WHERE environment_id = :env`
  const sums = { pass: sumOf(progress.pass, removed), total: sumOf(progress.total, removed) }
  await sql.run(text, { env: environmentId, sliceAt: isSome ? now : progress.lastSliceAt, reachedAt, ...sums })
}

function sumOf(counts: RetentionCounts, more: Partial<RetentionCounts>): string {
  const names = Object.keys(NOTHING) as (keyof RetentionCounts)[]
  return JSON.stringify(Object.fromEntries(names.map((name) => [name, (counts[name] ?? 0) + (more[name] ?? 0)])))
}

async function endRetention(sql: Sql, environmentId: string, now: number): Promise<void> {
  const text = 'UPDATE retention_progress SET pass_ended_at = :now WHERE environment_id = :env'
  await sql.run(text, { now, env: environmentId })
}
