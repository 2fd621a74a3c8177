import type { OperatorApproval } from '@tacho/contract/operator/approval.ts'
import { toOperatorApproval } from '../../domain/approval.ts'
import type { ApprovalRow } from '../../storage/approvals.ts'
import type { Storage } from '../../storage/storage.ts'

type AgentNames = Pick<Storage, 'findAgentNames'>

export async function namedApprovals(
  storage: AgentNames,
  environmentId: string,
  rows: readonly ApprovalRow[],
  now: number,
): Promise<OperatorApproval[]> {
  const names = await agentNames(storage, environmentId, rows)
  return rows.map((row) => toOperatorApproval(row, names.get(row.agentId ?? '') ?? null, now))
}

export async function agentNames(
  storage: AgentNames,
  environmentId: string,
  rows: readonly ApprovalRow[],
): Promise<ReadonlyMap<string, string>> {
  const agentIds = rows.flatMap(({ agentId }) => agentId ?? [])
  return new Map(agentIds.length === 0 ? [] : await storage.findAgentNames(environmentId, agentIds))
}
