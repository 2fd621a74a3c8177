import { look, read, write } from '../engine/act.ts'
import type { AuditEntry } from '../../people/audit.ts'
import type { PageById } from '../../engine/page.ts'
import type { TenantChange, WorkspaceRow } from '../../tenants/workspaces.ts'
import type { EnvironmentRow, NewEnvironmentRow } from '../../tenants/environments.ts'
import { auditControl, lockControl } from '../engine/revision.ts'
import { insertRows } from '../engine/insert-rows.ts'
import { selectList, type Sql } from '../engine/sql.ts'
import { closeAfterMinutes } from '../../data/stalled.ts'
import { changeTenant } from './tenant-change.ts'
import { enqueueWork, removeWork } from '../engine/work.ts'
import { WORKSPACE_COLUMNS, findWorkspace } from './workspaces.ts'

export const environmentsActs = {
  ...look({ findTenant }),
  ...read({ listEnvironments, findEnvironment }),
  ...write({ createEnvironment, changeEnvironment }),
}

const ENVIRONMENT_COLUMNS = selectList('id workspace_id name created_at archived_at delete_at')
const IS_NOT_BEING_DELETED = 'removed_at IS NULL'

export async function insertEnvironment(sql: Sql, environment: NewEnvironmentRow): Promise<boolean> {
  const unlessTaken = 'ON CONFLICT (workspace_id, name) DO NOTHING'
  if ((await insertRows(sql, 'environments', [environment], unlessTaken)) === 0) return false
  const { id, createdAt } = environment
  const dueAt = createdAt + closeAfterMinutes(null) * 60_000
  await enqueueWork(sql, [{ kind: 'close_stalled', environmentId: id, subjectId: id, dueAt }])
  return true
}

async function createEnvironment(
  sql: Sql,
  environment: NewEnvironmentRow,
  audit: AuditEntry[],
): Promise<'created' | 'name_taken' | 'no_workspace'> {
  if ((await findWorkspace(sql, environment.workspaceId)) === null) return 'no_workspace'
  if (!(await insertEnvironment(sql, environment))) return 'name_taken'
  await auditControl(sql, audit)
  return 'created'
}

/** For acts that count something in an environment before they add to it, also across processes. */
export async function lockEnvironment(sql: Sql, id: string): Promise<void> {
  // SQLite has one writer.
  if (sql.dialect === 'postgres') await sql.get('SELECT id FROM environments WHERE id = :id FOR NO KEY UPDATE', { id })
}

function listEnvironments(sql: Sql, workspaceId: string, { limit, after }: PageById, withArchived = false) {
  const used = withArchived ? '' : ' AND archived_at IS NULL'
  const text = `SELECT ${ENVIRONMENT_COLUMNS} FROM environments WHERE workspace_id = :workspaceId AND id > :after
    AND ${IS_NOT_BEING_DELETED}${used} ORDER BY id`
  return sql.page<EnvironmentRow>(text, { workspaceId, after: after ?? '' }, limit)
}

export function findEnvironment(sql: Sql, id: string): Promise<EnvironmentRow | null> {
  return sql.get(`SELECT ${ENVIRONMENT_COLUMNS} FROM environments WHERE id = :id AND ${IS_NOT_BEING_DELETED}`, { id })
}

async function findTenant(sql: Sql, environmentId: string) {
  const ofEnvironment = `SELECT ${WORKSPACE_COLUMNS} FROM workspaces
    WHERE id = (SELECT workspace_id FROM environments WHERE id = :env)`
  const [environment, workspace] = await Promise.all([
    findEnvironment(sql, environmentId),
    sql.get<WorkspaceRow>(ofEnvironment, { env: environmentId }),
  ])
  return { environment, workspace: environment && workspace }
}

async function changeEnvironment(
  sql: Sql,
  id: string,
  change: TenantChange,
  audit: AuditEntry[],
): Promise<EnvironmentRow | 'name_taken' | null> {
  // Its deletion may begin at the same time.
  await lockControl(sql)
  const row = await findEnvironment(sql, id)
  if (row === null) return null
  const changed = await changeTenant(sql, 'environments', row, row.workspaceId, change, audit)
  if (changed === 'name_taken' || changed.archivedAt !== null || row.deleteAt === null) return changed
  await sql.run('UPDATE environments SET delete_at = NULL, deletion = NULL WHERE id = :id', { id })
  await removeWork(sql, { kind: 'delete_environment', environmentId: id, subjectId: id })
  return { ...changed, deleteAt: null }
}
