import type { Workspace } from '@tacho/contract/operator/workspace.ts'
import type { RowFor } from './row-for.ts'

/** From `archivedAt` on the keys of its environments are refused. */
export type WorkspaceRow = RowFor<Workspace>
export type NewWorkspaceRow = Omit<WorkspaceRow, 'archivedAt'>

/** Null brings it back. */
export type TenantChange = { name: string } | { archivedAt: number | null }
