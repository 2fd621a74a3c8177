/** Environments of a workspace. Runs, keys and deployments belong to one. */
import type { AuditEntry } from './audit.ts'
import type { PageById } from './page.ts'

export interface EnvironmentStore {
  createEnvironment(
    environment: EnvironmentRow,
    audit: AuditEntry[],
  ): Promise<'created' | 'name_taken' | 'no_workspace'>
  listEnvironments(workspaceId: string, page: PageById): Promise<EnvironmentRow[]>
  findEnvironment(id: string): Promise<EnvironmentRow | null>
}

export interface EnvironmentRow {
  id: string
  workspaceId: string
  name: string
  createdAt: number
}
