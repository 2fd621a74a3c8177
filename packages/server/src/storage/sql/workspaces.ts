import { read, write, type Acts } from './act.ts'
import type { AuditEntry } from '../audit.ts'
import type { PageById } from '../page.ts'
import type { WorkspaceRow, WorkspaceStore } from '../workspaces.ts'
import { insertAudit } from './audit.ts'
import { chunksOf, PLACES } from './chunks.ts'
import { growRevision } from './revision.ts'
import type { Sql } from './sql.ts'

export const workspacesActs = {
  createWorkspace: write(createWorkspace),
  listWorkspaces: read(listWorkspaces),
  findWorkspace: read(findWorkspace),
} satisfies Partial<Acts<WorkspaceStore>>

const COLUMNS = 'id, name, created_at AS "createdAt"'

export async function insertWorkspace(sql: Sql, { id, name, createdAt }: WorkspaceRow): Promise<boolean> {
  const text = 'INSERT INTO workspaces (id, name, created_at) VALUES (?, ?, ?) ON CONFLICT (name) DO NOTHING'
  return (await sql.run(text, [id, name, createdAt])) === 1
}

async function createWorkspace(
  sql: Sql,
  workspace: WorkspaceRow,
  audit: AuditEntry[],
): Promise<'created' | 'name_taken'> {
  if (!(await insertWorkspace(sql, workspace))) return 'name_taken'
  await insertAudit(sql, audit)
  await growRevision(sql)
  return 'created'
}

async function listWorkspaces(
  sql: Sql,
  { limit, after }: PageById,
  within: readonly string[] | null = null,
): Promise<WorkspaceRow[]> {
  const start = after ?? ''
  if (within === null) {
    return sql.all(`SELECT ${COLUMNS} FROM workspaces WHERE id > ? ORDER BY id LIMIT ?`, [start, limit])
  }
  // The first ids may belong to deleted workspaces, so the needed number is unknown.
  const text = `SELECT ${COLUMNS} FROM workspaces WHERE id IN (${PLACES}) ORDER BY id`
  const rows: WorkspaceRow[] = []
  for (const ids of chunksOf(within.filter((id) => id > start).toSorted())) {
    rows.push(...(await sql.all<WorkspaceRow>(text, ids)))
    if (rows.length >= limit) break
  }
  return rows.slice(0, limit)
}

export function findWorkspace(sql: Sql, id: string): Promise<WorkspaceRow | null> {
  return sql.get(`SELECT ${COLUMNS} FROM workspaces WHERE id = ?`, [id])
}
