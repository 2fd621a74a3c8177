/** A version never changes; deployments.ts says which one is deployed. */
import type { PolicyAction, Severity } from '@tacho/contract/policies/runtime-config.ts'
import type { OnError } from '@tacho/contract/engine/words.ts'
import type { RowOf } from '../engine/tables.ts'

export interface PolicyVersionRow extends RowOf<'policy_versions'> {
  severity: Severity
  action: PolicyAction
  onError: OnError | null
  /** Then it has no text. */
  damaged?: true
}

export type NewPolicyVersionRow = Omit<PolicyVersionRow, 'policyId' | 'number' | 'importedAt' | 'damaged'>

export interface PolicyRow extends Omit<RowOf<'policies'>, 'newest'> {
  workspaceId: string
  newest: PolicyVersionRow
}

export type NewPolicyRow = Omit<PolicyRow, 'archivedAt' | 'newest'>
