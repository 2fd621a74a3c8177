import type { Workspace } from '@tacho/contract/tenants/workspace.ts'
import type { RowFor } from '../engine/row-for.ts'

export type WorkspaceRow = RowFor<Workspace>
export type NewWorkspaceRow = Omit<WorkspaceRow, 'archivedAt'>

export type TenantChange = { name: string } | { archivedAt: number | null }
