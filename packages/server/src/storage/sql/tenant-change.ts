import type { AuditEntry } from '../audit.ts'
import type { TenantChange } from '../workspaces.ts'
import { insertAudit } from './audit.ts'
import { growRevision, lockControl } from './revision.ts'
import type { Sql } from './sql.ts'

interface Archivable {
  id: string
  name: string
  archivedAt: number | null
}

/**
 * An archived tenant keeps the time when it was archived first. `others`: condition for tenants whose names it must not
 * have.
 */
export async function changeTenant<Row extends Archivable>(
  sql: Sql,
  table: 'workspaces' | 'environments',
  row: Row,
  others: { condition: string; params: string[] },
  change: TenantChange,
  audit: AuditEntry[],
): Promise<Row | 'name_taken'> {
  // All changes lock in this order, so that two cannot wait for each other, and two renames at once do not both find
  // the name free.
  await lockControl(sql)
  if ('name' in change) {
    if (change.name === row.name) return row
    const text = `SELECT id FROM ${table} WHERE name = ? AND ${others.condition}`
    if ((await sql.get(text, [change.name, ...others.params])) !== null) return 'name_taken'
    await sql.run(`UPDATE ${table} SET name = ? WHERE id = ?`, [change.name, row.id])
  } else {
    if ((change.archivedAt === null) === (row.archivedAt === null)) return row
    await sql.run(`UPDATE ${table} SET archived_at = ? WHERE id = ?`, [change.archivedAt, row.id])
  }
  await insertAudit(sql, audit)
  // Credential caches follow the revision.
  await growRevision(sql)
  return { ...row, ...change }
}
