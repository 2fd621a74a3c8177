/** The columns of approvals, and reads of single rows. */
import { look, read, type Acts } from '../act.ts'
import type { ApprovalRow, Requester, ApprovalStore } from '../../approvals.ts'
import { inChunks, PLACES } from '../chunks.ts'
import { textKey } from '../keys.ts'
import type { Sql } from '../sql.ts'

export const approvalRowsActs = {
  findApproval: look(findApproval),
  findApprovals: read(findApprovals),
} satisfies Partial<Acts<ApprovalStore>>

/** Column, and its name in ApprovalRow. */
export const NAMES = [
  ['id', 'id'],
  ['environment_id', 'environmentId'],
  ['client_id', 'clientId'],
  ['client_request_id', 'clientRequestId'],
  ['run_id', 'runId'],
  ['session_id', 'sessionId'],
  ['agent_id', 'agentId'],
  ['policy_id', 'policyId'],
  ['tool_name', 'toolName'],
  ['input_hash', 'inputHash'],
  ['reason', 'reason'],
  ['timeout_ms', 'timeoutMs'],
  ['created_at', 'createdAt'],
  ['expires_at', 'expiresAt'],
  ['status', 'status'],
  ['decided_at', 'decidedAt'],
  ['decision_reason', 'decisionReason'],
  ['decider_kind', 'deciderKind'],
  ['decider_id', 'deciderId'],
  ['decider_name', 'deciderName'],
  ['revision', 'revision'],
] as const satisfies readonly (readonly [string, keyof ApprovalRow])[]

export const COLUMNS = NAMES.map(([column, name]) => `${column} AS "${name}"`).join(', ')

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
