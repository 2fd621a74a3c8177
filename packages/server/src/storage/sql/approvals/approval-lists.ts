import { look, read } from '../act.ts'
import type {
  ApprovalFilter,
  ApprovalGroupRow,
  ApprovalPage,
  ApprovalRevision,
  ApprovalRow,
  ChangePlace,
  GroupBounds,
  Requester,
} from '../../approvals.ts'
import type { Page } from '../../page.ts'
import { agentKeyOf, COLUMNS } from './approval-rows.ts'
import { chunksOf, inChunks, PLACES, ROWS } from '../rows/chunks.ts'
import { textKey } from '../keys.ts'
import type { Sql, SqlValue } from '../sql.ts'

export const approvalListsActs = {
  listApprovals: read(listApprovals),
  listApprovalsOfRun: read(listApprovalsOfRun),
  groupApprovals: read(groupApprovals),
  countRequests: read(countRequests),
  listOverdueEnvironments: read(listOverdueEnvironments),
  approvalRevisions: look(approvalRevisions),
  listChangedApprovals: read(listChangedApprovals),
}

/** With status PENDING by (expiresAt, id) ascending, otherwise by (createdAt, id) descending. */
function listApprovals(
  sql: Sql,
  environmentId: string,
  filter: ApprovalFilter,
  { limit, after }: ApprovalPage,
): Promise<Page<ApprovalRow>> {
  const conditions = ['environment_id = ?']
  const params: SqlValue[] = [environmentId]
  const add = (condition: string, ...values: SqlValue[]) => {
    conditions.push(condition)
    params.push(...values)
  }
  const { status, toolName, inputHash, agentId, policyId, runId } = filter
  // A literal, so that the planner finds the index of pending approvals.
  if (status === 'PENDING') add(`status = 'PENDING'`)
  else if (status !== undefined) add('status = ?', status)
  if (toolName !== undefined) add('tool_key = ?', textKey(toolName))
  if (inputHash !== undefined) add('input_hash = ?', inputHash)
  if (agentId !== undefined) add('agent_key = ?', agentKeyOf({ agentId, clientId: '' }))
  if (policyId !== undefined) add('policy_key = ?', textKey(policyId))
  if (runId !== undefined) add('run_key = ?', textKey(runId))
  const byDeadline = status === 'PENDING'
  if (after !== null) add(byDeadline ? '(expires_at, id) > (?, ?)' : '(created_at, id) < (?, ?)', after.time, after.id)
  const order = byDeadline ? 'expires_at, id' : 'created_at DESC, id DESC'
  const text = `SELECT ${COLUMNS} FROM approvals WHERE ${conditions.join(' AND ')} ORDER BY ${order}`
  return sql.page(text, params, limit)
}

/** Oldest first. `run` is the external id. */
function listApprovalsOfRun(sql: Sql, environmentId: string, run: string, limit: number): Promise<Page<ApprovalRow>> {
  const text = `SELECT ${COLUMNS} FROM approvals WHERE environment_id = ? AND run_key = ?
    ORDER BY created_at, id`
  return sql.page(text, [environmentId, textKey(run)], limit)
}

/** Those pending at `now`, oldest deadline first. Only the `requests` oldest deadlines are grouped. */
function groupApprovals(
  sql: Sql,
  environmentId: string,
  now: number,
  { requests, groups }: GroupBounds,
): Promise<ApprovalGroupRow[]> {
  const text = `SELECT tool_name AS "toolName", input_hash AS "inputHash", COUNT(*) AS requests,
      COUNT(DISTINCT run_key) AS runs, COUNT(DISTINCT agent_key) AS agents, COUNT(DISTINCT policy_key) AS policies,
      MIN(expires_at) AS "oldestExpiresAt", MIN(created_at) AS "oldestCreatedAt"
    FROM (SELECT tool_name, input_hash, tool_key, run_key, agent_key, policy_key, expires_at, created_at
      FROM approvals WHERE environment_id = ? AND status = 'PENDING' AND expires_at > ?
      ORDER BY expires_at, id LIMIT ?) AS pending
    GROUP BY tool_key, tool_name, input_hash
    ORDER BY MIN(expires_at), MIN(created_at), tool_key, input_hash LIMIT ?`
  return sql.all(text, [environmentId, now, requests, groups])
}

/** At or after `since`; counts at most `most`. */
async function countRequests(
  sql: Sql,
  environmentId: string,
  requesters: Requester[],
  since: number,
  most: number,
): Promise<number[]> {
  const text = `SELECT asked.column1 AS "agentKey", (SELECT COUNT(*) FROM (SELECT 1 FROM approvals
      WHERE environment_id = ? AND agent_key = asked.column1 AND created_at >= ? LIMIT ?) AS lately) AS requests
    FROM (VALUES ${ROWS}) AS asked`
  const keys = requesters.map(agentKeyOf)
  const found = await inChunks(
    keys,
    (chunk) => sql.all<{ agentKey: string; requests: number }>(text, [environmentId, since, most, ...chunk]),
    // No agent has this key, so counting it costs nothing.
    '',
  )
  const counts = new Map(found.map(({ agentKey, requests }) => [agentKey, requests]))
  return keys.map((key) => counts.get(key) ?? 0)
}

async function listOverdueEnvironments(sql: Sql, now: number, limit: number): Promise<string[]> {
  const text = `SELECT environment_id AS id FROM approval_feeds WHERE next_deadline <= ? ORDER BY next_deadline LIMIT ?`
  const rows = await sql.all<{ id: string }>(text, [now, limit])
  return rows.map(({ id }) => id)
}

async function approvalRevisions(sql: Sql, environmentIds: string[]): Promise<ApprovalRevision[]> {
  const text = `SELECT environment_id AS "environmentId", revision, removed_revision AS "removedRevision"
    FROM approval_feeds WHERE environment_id IN (${PLACES})`
  const found = new Map<string, ApprovalRevision>()
  for (const chunk of chunksOf(environmentIds)) {
    const rows = await sql.all<ApprovalRevision>(text, chunk)
    for (const row of rows) found.set(row.environmentId, row)
  }
  return environmentIds.map((environmentId) => {
    return found.get(environmentId) ?? { environmentId, revision: 0, removedRevision: 0 }
  })
}

/** By (revision, id). */
function listChangedApprovals(
  sql: Sql,
  environmentId: string,
  { revision, id }: ChangePlace,
  limit: number,
): Promise<Page<ApprovalRow>> {
  const text = `SELECT ${COLUMNS} FROM approvals WHERE environment_id = ? AND (revision, id) > (?, ?)
    ORDER BY revision, id`
  return sql.page(text, [environmentId, revision, id], limit)
}
