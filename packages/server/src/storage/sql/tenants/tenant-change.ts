import type { AuditEntry } from '../../people/audit.ts'
import type { TenantChange } from '../../tenants/workspaces.ts'
import { auditControl, lockControl } from '../engine/revision.ts'
import { given, type Sql } from '../engine/sql.ts'

interface Archivable {
  id: string
  name: string
  archivedAt: number | null
}

/** `workspaceId`: names differ within it; null: all do. */
export async function changeTenant<Row extends Archivable>(
  sql: Sql,
  table: 'workspaces' | 'environments',
  row: Row,
  workspaceId: string | null,
  change: TenantChange,
  audit: AuditEntry[],
): Promise<Row | 'name_taken'> {
  // All changes lock in this order, so that two cannot wait for each other, and two renames at once do not both find
  // the name free.
  await lockControl(sql)
  if ('name' in change) {
    if (change.name === row.name) return row
    const { name } = change
    const within = given(['name = :name', 'workspace_id = :workspaceId'], { name, workspaceId })
    const taken = await sql.get(`SELECT id FROM ${table} WHERE ${within}`, { name, workspaceId })
    if (taken !== null) return 'name_taken'
    await sql.run(`UPDATE ${table} SET name = :name WHERE id = :id`, { name, id: row.id })
  } else {
    if ((change.archivedAt === null) === (row.archivedAt === null)) return row
    const archive = `UPDATE ${table} SET archived_at = :archivedAt WHERE id = :id`
    await sql.run(archive, { archivedAt: change.archivedAt, id: row.id })
  }
  await auditControl(sql, audit)
  return { ...row, ...change }
}
