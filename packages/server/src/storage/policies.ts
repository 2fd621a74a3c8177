/** Policies of a workspace. A version never changes; deployments.ts says which one is deployed. */
import type { PolicyAction, Severity } from '@tacho/contract/runtime-config.ts'
import type { AuditEntry } from './audit.ts'
import type { SavedVersion, VersionPage } from './prompts.ts'
import type { Page, PageById } from './page.ts'

export interface PolicyStore {
  createPolicy(
    policy: NewPolicyRow,
    first: NewPolicyVersionRow,
    audit: AuditEntry[],
  ): Promise<'created' | 'id_taken' | 'no_workspace'>
  /**
   * Null: no such policy in the workspace. If the newest version has the same content, nothing is written or audited.
   */
  createPolicyVersion(
    workspaceId: string,
    policyId: string,
    version: NewPolicyVersionRow,
    /** The newest version the author has seen; null for any. */
    follows: number | null,
    audit: AuditEntry[],
  ): Promise<SavedVersion<PolicyVersionRow> | null>
  /** By id. */
  listPolicies(workspaceId: string, page: PageById, withArchived?: boolean): Promise<Page<PolicyRow>>
  /** Null: no such policy. A deployed one is not archived: `deployedIn` names an environment. */
  archivePolicy(
    workspaceId: string,
    policyId: string,
    archivedAt: number | null,
    audit: AuditEntry[],
  ): Promise<PolicyRow | { deployedIn: string } | null>
  findPolicy(workspaceId: string, policyId: string): Promise<PolicyRow | null>
  listPolicyVersions(workspaceId: string, policyId: string, page: VersionPage): Promise<Page<PolicyVersionRow>>
  findPolicyVersion(workspaceId: string, policyId: string, number: number): Promise<PolicyVersionRow | null>
}

export interface NewPolicyRow {
  /** Unique in the workspace. */
  id: string
  workspaceId: string
  createdAt: number
}

export interface NewPolicyVersionRow {
  name: string
  description: string | null
  /** The source as written. */
  condition: string
  severity: Severity
  action: PolicyAction
  author: string
  note: string | null
  createdAt: number
}

export interface PolicyVersionRow extends NewPolicyVersionRow {
  policyId: string
  number: number
  importedAt: number | null
}

export interface PolicyRow extends NewPolicyRow {
  archivedAt: number | null
  newest: PolicyVersionRow
}
