/** Nothing here comes from a payload. */
import type { AlertNewsRow } from '../../messages/alerts.ts'
import { approvalData, type ApprovalRow } from '../../approvals/approvals.ts'
import { isoTime } from '../../engine/iso-time.ts'
import type { IssueRow } from '../../issues/issues.ts'
import { findRequesterNames } from '../runs/agent-list.ts'
import { keepRemovalsWaiting } from '../data/erased-keys.ts'
import type { Sql } from '../engine/sql.ts'
import { announce } from './deliveries.ts'
import { queueNotices } from './notices.ts'

export async function announceApprovals(
  sql: Sql,
  environmentId: string,
  event: 'approval.requested' | 'approval.decided' | 'approval.expired' | 'approval.withdrawn',
  approvals: ApprovalRow[],
  at: number,
  decidedBy?: string,
): Promise<void> {
  const news = (await dataOfApprovals(sql, environmentId, approvals)).map((data) => ({ at, data }))
  await announce(sql, environmentId, event, news, decidedBy)
  const ids = approvals.map(({ id }) => id)
  await queueNotices(sql, environmentId, event, ids, at)
}

export async function dataOfApprovals(sql: Sql, environmentId: string, approvals: readonly ApprovalRow[]) {
  const names = new Map(await findRequesterNames(sql, environmentId, approvals))
  return approvals.map((approval) => approvalData(approval, names.get(approval.id) ?? null))
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
    const issue = await sql.get<IssueNews>(ISSUE, { env: environmentId, id })
    if (issue !== null) news.push({ at, data: { environmentId, ...issueData(issue) } })
  }
  await announce(sql, environmentId, event, news)
  await queueNotices(sql, environmentId, event, ids, at)
}

export async function announceAlert(sql: Sql, environmentId: string, { type, data }: AlertNewsRow, at: number) {
  const { agentId } = data
  // An erasure of the agent waits, and then removes the message.
  if (agentId !== null) await keepRemovalsWaiting(sql, environmentId)
  const agentName = agentId === null ? null : await findAgentName(sql, environmentId, agentId)
  return announce(sql, environmentId, type, [{ at, data: { ...data, agentName } }])
}

/** By its internal id. */
export async function findAgentName(sql: Sql, environmentId: string, agentId: string): Promise<string | null> {
  const text = `SELECT COALESCE(a.display_name, a.name) AS name FROM agents a
    WHERE a.environment_id = :env AND a.id = :agentId AND EXISTS
      (SELECT 1 FROM runs r WHERE r.environment_id = :env AND r.agent_id = a.id)`
  return (await sql.get<{ name: string }>(text, { env: environmentId, agentId }))?.name ?? null
}

export type IssueNews = Pick<
  IssueRow,
  'id' | 'title' | 'detectionType' | 'state' | 'occurrences' | 'firstSeen' | 'lastSeen'
>
export const ISSUE = `SELECT id, title, detection_type AS "detectionType", state, occurrences, first_seen AS "firstSeen",
  last_seen AS "lastSeen" FROM issues WHERE environment_id = :env AND id = :id`

export function issueData({ id, firstSeen, lastSeen, ...issue }: IssueNews): object {
  return { issueId: id, ...issue, firstSeenAt: isoTime(firstSeen), lastSeenAt: isoTime(lastSeen) }
}
