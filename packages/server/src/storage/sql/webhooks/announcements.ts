/** What webhooks report about approvals and issues. Nothing here comes from a payload. */
import type { ApprovalRow } from '../../approvals.ts'
import type { IssueRow } from '../../issues.ts'
import { findAgentNames } from '../agent-list.ts'
import type { Sql } from '../sql.ts'
import { announce } from './deliveries.ts'

const isoTime = (time: number | null) => (time === null ? null : new Date(time).toISOString())

export async function announceApprovals(
  sql: Sql,
  environmentId: string,
  event: 'approval.requested' | 'approval.decided' | 'approval.expired',
  approvals: ApprovalRow[],
  at: number,
): Promise<void> {
  const agentIds = approvals.flatMap(({ agentId }) => agentId ?? [])
  const names = new Map(agentIds.length > 0 ? await findAgentNames(sql, environmentId, agentIds) : [])
  const news = approvals.map((approval) => {
    const agentName = names.get(approval.agentId ?? '') ?? null
    return { at, data: { environmentId, ...approvalData(approval), agentName } }
  })
  await announce(sql, environmentId, event, news)
}

export async function announceIssues(
  sql: Sql,
  environmentId: string,
  event: 'issue.opened' | 'issue.regressed',
  ids: string[],
  at: number,
): Promise<void> {
  const news: { at: number; data: object }[] = []
  for (const id of ids) {
    const issue = await sql.get<IssueNews>(ISSUE, [environmentId, id])
    if (issue !== null) news.push({ at, data: { environmentId, ...issueData(issue) } })
  }
  await announce(sql, environmentId, event, news)
}

type IssueNews = Pick<IssueRow, 'id' | 'title' | 'detectionType' | 'state' | 'occurrences' | 'firstSeen' | 'lastSeen'>
const ISSUE = `SELECT id, title, detection_type AS "detectionType", state, occurrences, first_seen AS "firstSeen",
  last_seen AS "lastSeen" FROM issues WHERE environment_id = ? AND id = ?`

function issueData({ id, firstSeen, lastSeen, ...issue }: IssueNews): object {
  return { issueId: id, ...issue, firstSeenAt: isoTime(firstSeen), lastSeenAt: isoTime(lastSeen) }
}

function approvalData(approval: ApprovalRow): object {
  const { id, status, toolName, inputHash, agentId, runId, sessionId, policyId, reason } = approval
  const { decisionReason, deciderName } = approval
  const times = { expiresAt: isoTime(approval.expiresAt), decidedAt: isoTime(approval.decidedAt) }
  const decision = { decisionReason, deciderName }
  return {
    approvalId: id,
    status,
    toolName,
    inputHash,
    agentId,
    runId,
    sessionId,
    policyId,
    reason,
    ...times,
    ...decision,
  }
}
