/** The columns of approvals, and reads of single rows. */
import { look, read, type Acts } from '../act.ts'
import type { ApprovalRow, Requester, ApprovalStore } from '../../approvals.ts'
import { inChunks, PLACES } from '../rows/chunks.ts'
import { textKey } from '../keys.ts'
import { selectList, type Sql, type SqlValue } from '../sql.ts'

export const approvalRowsActs = {
  findApproval: look(findApproval),
  findApprovals: read(findApprovals),
} satisfies Partial<Acts<ApprovalStore>>

/** The column of each member of ApprovalRow. */
const NAMES = {
  id: 'id',
  environmentId: 'environment_id',
  clientId: 'client_id',
  clientRequestId: 'client_request_id',
  runId: 'run_id',
  sessionId: 'session_id',
  agentId: 'agent_id',
  policyId: 'policy_id',
  toolName: 'tool_name',
  inputHash: 'input_hash',
  reason: 'reason',
  timeoutMs: 'timeout_ms',
  createdAt: 'created_at',
  expiresAt: 'expires_at',
  status: 'status',
  decidedAt: 'decided_at',
  decisionReason: 'decision_reason',
  deciderKind: 'decider_kind',
  deciderId: 'decider_id',
  deciderName: 'decider_name',
  importedAt: 'imported_at',
  revision: 'revision',
} satisfies Record<keyof ApprovalRow, string>

export const COLUMNS = selectList(NAMES)

/** The row without its keys. */
export function columnsOfApproval(approval: ApprovalRow): Record<string, SqlValue> {
  const names = Object.keys(NAMES) as (keyof ApprovalRow)[]
  return Object.fromEntries(names.map((name) => [NAMES[name], approval[name]]))
}

export function findApproval(sql: Sql, environmentId: string, id: string): Promise<ApprovalRow | null> {
  return sql.get(`SELECT ${COLUMNS} FROM approvals WHERE environment_id = ? AND id = ?`, [environmentId, id])
}

export function findApprovals(sql: Sql, environmentId: string, ids: string[]): Promise<ApprovalRow[]> {
  const text = `SELECT ${COLUMNS} FROM approvals WHERE environment_id = ? AND id IN (${PLACES})`
  return inChunks(ids, (chunk) => sql.all<ApprovalRow>(text, [environmentId, ...chunk]))
}

export function agentKeyOf({ agentId, clientId }: Requester): string {
  return textKey(agentId === null ? `client:${clientId}` : `agent:${agentId}`)
}
