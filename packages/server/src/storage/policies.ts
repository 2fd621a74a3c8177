/** A version never changes; deployments.ts says which one is deployed. */
import type { PolicyAction, Severity } from '@tacho/contract/runtime-config.ts'

export interface NewPolicyRow {
  id: string
  workspaceId: string
  createdAt: number
}

export interface NewPolicyVersionRow {
  name: string
  description: string | null
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
