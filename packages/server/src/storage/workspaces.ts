/** Workspaces: an organisation's people, prompts and policies, and its environments. */
import type { AuditEntry } from './audit.ts'
import type { PageById } from './page.ts'

export interface WorkspaceStore {
  createWorkspace(workspace: WorkspaceRow, audit: AuditEntry[]): Promise<'created' | 'name_taken'>
  /** Only the ids in `within`, if given. */
  listWorkspaces(page: PageById, within?: readonly string[] | null): Promise<WorkspaceRow[]>
  findWorkspace(id: string): Promise<WorkspaceRow | null>
}

export interface WorkspaceRow {
  id: string
  name: string
  createdAt: number
}
