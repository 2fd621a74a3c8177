import type { Workspace } from '@tacho/contract/operator/workspace.ts'
import type { RowFor } from './row-for.ts'

export type WorkspaceRow = RowFor<Workspace>
export type NewWorkspaceRow = Omit<WorkspaceRow, 'archivedAt'>

export type TenantChange = { name: string } | { archivedAt: number | null }
