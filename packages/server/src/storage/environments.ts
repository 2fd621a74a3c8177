/** Environments of a workspace. Runs, keys and deployments belong to one. */
import type { AuditEntry } from './audit.ts'
import type { PageById } from './page.ts'
import type { TenantChange } from './workspaces.ts'

export interface EnvironmentStore {
  createEnvironment(
    environment: NewEnvironmentRow,
    audit: AuditEntry[],
  ): Promise<'created' | 'name_taken' | 'no_workspace'>
  listEnvironments(workspaceId: string, page: PageById, withArchived?: boolean): Promise<EnvironmentRow[]>
  /** Null: no such environment. Nothing is written or audited if it is so already. */
  changeEnvironment(
    id: string,
    change: TenantChange,
    audit: AuditEntry[],
  ): Promise<EnvironmentRow | 'name_taken' | null>
  findEnvironment(id: string): Promise<EnvironmentRow | null>
}

export interface NewEnvironmentRow {
  id: string
  workspaceId: string
  name: string
  createdAt: number
}

export interface EnvironmentRow extends NewEnvironmentRow {
  /** Its keys are refused since then; null: it is in use. */
  archivedAt: number | null
}
