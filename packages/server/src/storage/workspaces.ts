/** Workspaces: an organisation's people, prompts and policies, and its environments. */
import type { AuditEntry } from './audit.ts'
import type { PageById } from './page.ts'

export interface WorkspaceStore {
  createWorkspace(workspace: NewWorkspaceRow, audit: AuditEntry[]): Promise<'created' | 'name_taken'>
  /** Only the ids in `within`, if given. */
  listWorkspaces(page: PageById, within?: readonly string[] | null, withArchived?: boolean): Promise<WorkspaceRow[]>
  /** Null: no such workspace. Nothing is written or audited if it is so already. */
  changeWorkspace(id: string, change: TenantChange, audit: AuditEntry[]): Promise<WorkspaceRow | 'name_taken' | null>
  findWorkspace(id: string): Promise<WorkspaceRow | null>
}

export interface NewWorkspaceRow {
  id: string
  name: string
  createdAt: number
}

export interface WorkspaceRow extends NewWorkspaceRow {
  /** The keys of its environments are refused since then; null: it is in use. */
  archivedAt: number | null
}

/** A new name, or when it is archived; null restores it. */
export type TenantChange = { name: string } | { archivedAt: number | null }
