import type { PageById, WorkspaceRow } from '../storage.ts'
import { growRevision } from './revision.ts'
import type { Sql } from './sql.ts'

const COLUMNS = 'id, name, created_at AS "createdAt"'

export async function insertWorkspace(sql: Sql, { id, name, createdAt }: WorkspaceRow): Promise<boolean> {
  const text = 'INSERT INTO workspaces (id, name, created_at) VALUES (?, ?, ?) ON CONFLICT (name) DO NOTHING'
  return (await sql.run(text, [id, name, createdAt])) === 1
}

export async function createWorkspace(sql: Sql, workspace: WorkspaceRow): Promise<'created' | 'name_taken'> {
  if (!(await insertWorkspace(sql, workspace))) return 'name_taken'
  await growRevision(sql)
  return 'created'
}

export function listWorkspaces(sql: Sql, { limit, after }: PageById): Promise<WorkspaceRow[]> {
  return sql.all(`SELECT ${COLUMNS} FROM workspaces WHERE id > ? ORDER BY id LIMIT ?`, [after ?? '', limit])
}

export function findWorkspace(sql: Sql, id: string): Promise<WorkspaceRow | null> {
  return sql.get(`SELECT ${COLUMNS} FROM workspaces WHERE id = ?`, [id])
}
