export interface NewWorkspaceRow {
  id: string
  name: string
  createdAt: number
}

export interface WorkspaceRow extends NewWorkspaceRow {
  /** From then on the keys of its environments are refused. */
  archivedAt: number | null
}

/** Null brings it back. */
export type TenantChange = { name: string } | { archivedAt: number | null }
