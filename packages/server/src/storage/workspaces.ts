/** Workspaces: an organisation's people, prompts and policies, and its environments. */

export interface NewWorkspaceRow {
  id: string
  name: string
  createdAt: number
}

export interface WorkspaceRow extends NewWorkspaceRow {
  /** The keys of its environments are refused since then; null: it is in use. */
  archivedAt: number | null
}

/** Null brings it back. */
export type TenantChange = { name: string } | { archivedAt: number | null }
