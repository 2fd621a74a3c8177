import type { OperatorApproval } from '@tacho/contract/approvals/operator-approval.ts'
import { toOperatorApproval } from '../../domain/approvals/approval.ts'
import type { ApprovalRow } from '../../storage/approvals/approvals.ts'
import type { Storage } from '../../storage/storage.ts'

type AgentNames = Pick<Storage, 'findRequesterNames'>

export async function namedApprovals(
  storage: AgentNames,
  environmentId: string,
  rows: readonly ApprovalRow[],
  now: number,
): Promise<OperatorApproval[]> {
  const names = await requesterNames(storage, environmentId, rows)
  return rows.map((row) => toOperatorApproval(row, names.get(row.id) ?? null, now))
}

/** By approval. */
export async function requesterNames(
  storage: AgentNames,
  environmentId: string,
  rows: readonly ApprovalRow[],
): Promise<ReadonlyMap<string, string>> {
  const requests = rows.map(({ id, agentId, runId }) => ({ id, agentId, runId }))
  return new Map(requests.length === 0 ? [] : await storage.findRequesterNames(environmentId, requests))
}
