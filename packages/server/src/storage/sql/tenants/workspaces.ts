import { read, write } from '../engine/act.ts'
import type { AuditEntry } from '../../people/audit.ts'
import { firstRows, type Page, type PageById } from '../../engine/page.ts'
import type { NewWorkspaceRow, TenantChange, WorkspaceRow } from '../../tenants/workspaces.ts'
import { chunksOf } from '../engine/chunks.ts'
import { insertRows } from '../engine/insert-rows.ts'
import { auditControl } from '../engine/revision.ts'
import { selectList, type Sql } from '../engine/sql.ts'
import { changeTenant } from './tenant-change.ts'

export const workspacesActs = {
  ...read({ listWorkspaces, findWorkspace }),
  ...write({ createWorkspace, changeWorkspace }),
}

export const WORKSPACE_COLUMNS = selectList('id name created_at archived_at')

export async function insertWorkspace(sql: Sql, workspace: NewWorkspaceRow): Promise<boolean> {
  return (await insertRows(sql, 'workspaces', [workspace], 'ON CONFLICT (name) DO NOTHING')) === 1
}

async function createWorkspace(
  sql: Sql,
  workspace: NewWorkspaceRow,
  audit: AuditEntry[],
): Promise<'created' | 'name_taken'> {
  if (!(await insertWorkspace(sql, workspace))) return 'name_taken'
  await auditControl(sql, audit)
  return 'created'
}

/** Until the transaction ends, also across processes. */
export async function lockWorkspace(sql: Sql, id: string): Promise<void> {
  // SQLite has one writer.
  if (sql.dialect === 'postgres') await sql.get('SELECT id FROM workspaces WHERE id = :id FOR NO KEY UPDATE', { id })
}

async function listWorkspaces(
  sql: Sql,
  { limit, after }: PageById,
  within: readonly string[] | null = null,
  withArchived = false,
): Promise<Page<WorkspaceRow>> {
  const start = after ?? ''
  const used = withArchived ? '' : ' AND archived_at IS NULL'
  if (within === null) {
    return sql.page(
      `SELECT ${WORKSPACE_COLUMNS} FROM workspaces WHERE id > :start${used} ORDER BY id`,
      { start },
      limit,
    )
  }
  // The first ids may belong to deleted workspaces, so the needed number is unknown.
  const text = `SELECT ${WORKSPACE_COLUMNS} FROM workspaces WHERE id IN (:ids)${used} ORDER BY id`
  const rows: WorkspaceRow[] = []
  for (const ids of chunksOf(within.filter((id) => id > start).toSorted())) {
    rows.push(...(await sql.all<WorkspaceRow>(text, { ids })))
    if (rows.length > limit) break
  }
  return firstRows(rows, limit)
}

export function findWorkspace(sql: Sql, id: string): Promise<WorkspaceRow | null> {
  return sql.get(`SELECT ${WORKSPACE_COLUMNS} FROM workspaces WHERE id = :id`, { id })
}

async function changeWorkspace(sql: Sql, id: string, change: TenantChange, audit: AuditEntry[]) {
  const row = await findWorkspace(sql, id)
  return row && changeTenant(sql, 'workspaces', row, null, change, audit)
}
