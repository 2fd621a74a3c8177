/**
 * Approvals and the states they go through.
 *
 *   (none) --createApproval--> PENDING --decideApprovals, before expires_at--> APPROVED | REJECTED
 *                                 |
 *                                 +--whoever looks at or after expires_at--> EXPIRED
 *
 * The last three are for ever: each is reached by a compare-and-set on PENDING, and told to nobody before it is stored,
 * so that no clock that jumps turns an answer round.
 *
 * Every transaction that changes approvals of an environment takes the environment's turn first (`takeTurn`) and keeps
 * it until it commits. So an environment's revisions are committed in their order: who has read everything up to one
 * revision, from whatever node, never finds a smaller one later.
 */
import type { ApprovalRow, CreatedApproval, Decided, DecisionRow, NewApprovalRow } from '../../approvals.ts'
import type { AuditEntry } from '../../audit.ts'
import { announceApprovals } from '../announcements.ts'
import { insertAudit } from '../audit.ts'
import { agentKeyOf, COLUMNS, findApproval, NAMES } from './approval-rows.ts'
import { requestKey, textKey } from '../keys.ts'
import type { Sql } from '../sql.ts'

export async function createApproval(sql: Sql, request: NewApprovalRow): Promise<CreatedApproval> {
  // Most that are asked for twice are retries: they need no turn.
  const early = await findRequest(sql, request)
  if (early !== null) return again(sql, early, request)
  const revision = await takeTurn(sql, request.environmentId, request.expiresAt)
  const stored = await findRequest(sql, request)
  if (stored !== null) return again(sql, stored, request)
  const approval: ApprovalRow = {
    ...request,
    status: 'PENDING',
    decidedAt: null,
    decisionReason: null,
    deciderKind: null,
    deciderId: null,
    deciderName: null,
    revision,
  }
  await insert(sql, approval)
  await announceApprovals(sql, request.environmentId, 'approval.requested', [approval], request.createdAt)
  return { outcome: 'created', approval }
}

async function again(sql: Sql, stored: ApprovalRow, request: NewApprovalRow): Promise<CreatedApproval> {
  const same = stored.toolName === request.toolName && stored.inputHash === request.inputHash
  const approval = await expireIfOverdue(sql, stored, request.createdAt)
  return { outcome: same ? 'existing' : 'conflict', approval }
}

export async function decideApprovals(
  sql: Sql,
  environmentId: string,
  ids: string[],
  decision: DecisionRow,
  audit: AuditEntry[],
): Promise<Decided[]> {
  const revision = await takeTurn(sql, environmentId, null)
  const outcomes: Decided[] = []
  for (const id of ids) outcomes.push(await decide(sql, environmentId, id, decision, revision))
  const decisions = outcomes.flatMap((each) => (each.outcome === 'decided' ? [each.approval] : []))
  const decided = new Set(decisions.map(({ id }) => id))
  await announceApprovals(sql, environmentId, 'approval.decided', decisions, decision.now)
  await insertAudit(
    sql,
    audit.filter(({ targetId }) => decided.has(targetId)),
  )
  return outcomes
}

async function decide(
  sql: Sql,
  environmentId: string,
  id: string,
  { status, reason, deciderKind, deciderId, deciderName, now }: DecisionRow,
  revision: number,
): Promise<Decided> {
  const text = `UPDATE approvals SET status = ?, revision = ?, decided_at = ?, decision_reason = ?, decider_kind = ?,
    decider_id = ?, decider_name = ?
    WHERE environment_id = ? AND id = ? AND status = 'PENDING' AND expires_at > ?`
  const decider = [deciderKind, deciderId, deciderName]
  const changed = await sql.run(text, [status, revision, now, reason, ...decider, environmentId, id, now])
  const approval = await findApproval(sql, environmentId, id)
  if (approval === null) return { id, outcome: 'not_found', approval }
  if (changed === 1) return { id, outcome: 'decided', approval }
  return { id, outcome: 'refused', approval: await expireIfOverdue(sql, approval, now) }
}

async function expireIfOverdue(sql: Sql, approval: ApprovalRow, now: number): Promise<ApprovalRow> {
  const { environmentId, id, status, expiresAt } = approval
  if (status !== 'PENDING' || expiresAt > now) return approval
  const revision = await takeTurn(sql, environmentId, null)
  const text = `UPDATE approvals SET status = 'EXPIRED', revision = ?
    WHERE environment_id = ? AND id = ? AND status = 'PENDING' AND expires_at <= ?`
  const changed = await sql.run(text, [revision, environmentId, id, now])
  const present = (await findApproval(sql, environmentId, id)) ?? approval
  if (changed === 1) await announceApprovals(sql, environmentId, 'approval.expired', [present], now)
  return present
}

export async function expireApprovals(sql: Sql, environmentId: string, now: number, limit: number): Promise<number> {
  const revision = await takeTurn(sql, environmentId, null)
  const overdue = `environment_id = ? AND status = 'PENDING' AND expires_at <= ?`
  const text = `UPDATE approvals SET status = 'EXPIRED', revision = ? WHERE ${overdue} AND id IN (
    SELECT id FROM approvals WHERE ${overdue} ORDER BY expires_at, id LIMIT ?) RETURNING ${COLUMNS}`
  const expired = await sql.all<ApprovalRow>(text, [revision, environmentId, now, environmentId, now, limit])
  await announceApprovals(sql, environmentId, 'approval.expired', expired, now)
  const next = await sql.get<{ deadline: number | null }>(
    `SELECT MIN(expires_at) AS deadline FROM approvals WHERE environment_id = ? AND status = 'PENDING'`,
    [environmentId],
  )
  const keep = 'UPDATE approval_feeds SET next_deadline = ? WHERE environment_id = ?'
  await sql.run(keep, [next?.deadline ?? null, environmentId])
  return expired.length
}

/** The environment's next revision. Until this transaction ends, no other changes approvals of the environment. */
async function takeTurn(sql: Sql, environmentId: string, deadline: number | null): Promise<number> {
  const row = await sql.get<{ revision: number }>(
    `INSERT INTO approval_feeds (environment_id, revision, next_deadline) VALUES (?, 1, ?)
      ON CONFLICT (environment_id) DO UPDATE SET revision = approval_feeds.revision + 1,
        next_deadline = CASE WHEN approval_feeds.next_deadline <= excluded.next_deadline
          THEN approval_feeds.next_deadline ELSE COALESCE(excluded.next_deadline, approval_feeds.next_deadline) END
      RETURNING revision`,
    [environmentId, deadline],
  )
  if (row === null) throw new Error('the turn of an environment was not given')
  return row.revision
}

function findRequest(sql: Sql, { environmentId, clientId, clientRequestId }: NewApprovalRow) {
  const text = `SELECT ${COLUMNS} FROM approvals WHERE environment_id = ? AND request_key = ?`
  return sql.get<ApprovalRow>(text, [environmentId, requestKey(clientId, clientRequestId)])
}

async function insert(sql: Sql, approval: ApprovalRow): Promise<void> {
  const { clientId, clientRequestId, toolName, policyId, runId } = approval
  const keys = {
    request_key: requestKey(clientId, clientRequestId),
    tool_key: textKey(toolName),
    agent_key: agentKeyOf(approval),
    policy_key: policyId === null ? null : textKey(policyId),
    run_key: runId === null ? null : textKey(runId),
  }
  const columns = [...NAMES.map(([column]) => column), ...Object.keys(keys)]
  const values = [...NAMES.map(([, name]) => approval[name]), ...Object.values(keys)]
  const text = `INSERT INTO approvals (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`
  await sql.run(text, values)
}
