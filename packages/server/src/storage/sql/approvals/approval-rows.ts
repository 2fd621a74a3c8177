import { lookup, read, selectList, type Sql } from '../engine/sql.ts'
import type { ApprovalRow, Requester } from '../../approvals/approvals.ts'
import { inChunks, columnsOfRow } from '../engine/rows.ts'
import { textKey } from '../engine/keys.ts'

export const approvalRowsActs = {
  ...lookup({ findApproval }),
  ...read({ findApprovals }),
}

export const COLUMNS = selectList(['environment_id', ...columnsOfRow('approvals')])

export function findApproval(sql: Sql, environmentId: string, id: string): Promise<ApprovalRow | null> {
  const text = `SELECT ${COLUMNS} FROM approvals WHERE environment_id = :env AND id = :id`
  return sql.get(text, { env: environmentId, id })
}

export function findApprovals(sql: Sql, environmentId: string, ids: string[]): Promise<ApprovalRow[]> {
  const text = `SELECT ${COLUMNS} FROM approvals WHERE environment_id = :env AND id IN (:ids)`
  return inChunks(ids, (chunk) => sql.all<ApprovalRow>(text, { env: environmentId, ids: chunk }))
}

export function agentKeyOf({ agentId, clientId }: Requester): string {
  return textKey(agentId === null ? `client:${clientId}` : `agent:${agentId}`)
}
