import type { AskingPolicy } from '@tacho/contract/approvals/operator-approval.ts'
import { VERSION_PATTERN } from '@tacho/contract/engine/words.ts'
import { toPolicyVersion } from '../../domain/policies/policy.ts'
import type { ApprovalRow } from '../../storage/approvals/approvals.ts'
import type { EnvironmentRow } from '../../storage/tenants/environments.ts'
import type { Storage } from '../../storage/storage.ts'

const VERSION = new RegExp(VERSION_PATTERN)

/** Null: the request names no policy, or none that is known. */
export async function findAskingPolicy(
  storage: Pick<Storage, 'findPolicy' | 'findPolicyVersion' | 'findVersionsInForce'>,
  { id: environmentId, workspaceId }: EnvironmentRow,
  { policyId, policyVersion, createdAt }: ApprovalRow,
): Promise<AskingPolicy | null> {
  if (policyId === null) return null
  const [policy, { atThatTime, now }] = await Promise.all([
    storage.findPolicy(workspaceId, policyId),
    storage.findVersionsInForce(environmentId, 'policy', policyId, createdAt),
  ])
  const isNamed = policyVersion !== null && VERSION.test(policyVersion)
  const number = isNamed ? Number(policyVersion) : atThatTime
  if (policy === null || number === null) return null
  const version = await storage.findPolicyVersion(workspaceId, policyId, number)
  if (version === null) return null
  const drafted = policy.newest.number > number ? 'drafted' : null
  return {
    version: toPolicyVersion(version),
    basis: isNamed ? 'client' : 'in_force',
    newer: now !== null && now > number ? 'in_force' : drafted,
    inForce: now === null ? null : String(now),
    newest: String(policy.newest.number),
  }
}
