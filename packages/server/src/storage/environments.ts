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
  /**
   * Orders the deletion of an archived environment; restoring it cancels the order. An order that stands stays as it is.
   * `asked` goes to the audit log, now and, with what was deleted, in the end.
   */
  orderDeletion(id: string, deleteAt: number, asked: AuditEntry): Promise<EnvironmentRow | 'in_use' | null>
  /** Deletes one slice of an environment whose time has come. Returns the table of the next one; null: nothing is left. */
  deleteFromEnvironment(id: string, slice: DeletionSlice, now: number): Promise<number | null>
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
  /** When it is to be deleted; null: no deletion is ordered. */
  deleteAt: number | null
}

export interface DeletionSlice {
  /** Where it starts: the place of a table in the order of deletion, first 0. */
  table: number
  /** Rows to delete at most; of runs, a fixed number. */
  most: number
}
