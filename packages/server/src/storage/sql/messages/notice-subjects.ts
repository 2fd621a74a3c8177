import type { NotificationEvent } from '@tacho/contract/messages/notification.ts'
import type { Severity } from '@tacho/contract/policies/runtime-config.ts'
import type { NoticeRow } from '../../messages/notifications.ts'
import { lookup, read, countOf, type Sql } from '../engine/sql.ts'
import { findAlert } from './alerts.ts'
import { findApprovals } from '../approvals/approval-rows.ts'
import { allIn } from '../engine/rows.ts'
import { dataOfApprovals, findAgentName, ISSUE, issueData, type IssueNews } from './announcements.ts'

export const noticeSubjectsActs = {
  ...lookup({ countWaitingApprovals }),
  ...read({ findNotices }),
}

async function findNotices(
  sql: Sql,
  environmentId: string,
  event: NotificationEvent,
  ids: string[],
  now: number,
): Promise<NoticeRow[]> {
  if (event === 'approval.requested') return approvalNotices(sql, environmentId, ids, now)
  const one = event === 'alert.firing' || event === 'budget.reached' ? alertNotice : issueNotice
  const noticeRows: NoticeRow[] = []
  for (const id of ids) {
    const notice = await one(sql, environmentId, id)
    if (notice !== null) noticeRows.push(notice)
  }
  return noticeRows
}

const NOTHING = { until: null, policySeverity: null, alert: null }

async function approvalNotices(sql: Sql, environmentId: string, ids: string[], now: number): Promise<NoticeRow[]> {
  const approvals = await findApprovals(sql, environmentId, ids)
  const data = await dataOfApprovals(sql, environmentId, approvals)
  const of = { env: environmentId, ids: approvals.flatMap(({ policyId }) => policyId ?? []) }
  const inForce = `SELECT d.item_id AS id, v.severity FROM deployments d JOIN environments e ON e.id = d.environment_id
    JOIN policy_versions v ON v.workspace_id = e.workspace_id AND v.policy_id = d.item_id AND v.number = d.version
    WHERE d.environment_id = :env AND d.kind = 'policy' AND d.item_id IN (:ids)`
  const severities = await allIn<{ id: string; severity: Severity }>(sql, inForce, of)
  const severityOf = new Map(severities.map(({ id, severity }) => [id, severity]))
  return approvals.map((approval, index) => ({
    ...NOTHING,
    id: approval.id,
    at: approval.createdAt,
    until: approval.expiresAt,
    isCurrent:
      approval.status === 'PENDING' &&
      approval.expiresAt > now &&
      approval.importedAt === null &&
      approval.withdrawnAt === null,
    policySeverity: severityOf.get(approval.policyId ?? '') ?? null,
    data: data[index] ?? {},
  }))
}

/** A budget stays reached until its period ends, which its next check sees. */
async function alertNotice(sql: Sql, environmentId: string, id: string): Promise<NoticeRow | null> {
  const alert = await findAlert(sql, environmentId, id)
  if (alert === null) return null
  const { rule, state, createdAt } = alert
  const isCurrent = rule.kind === 'budget' ? state.percentTold > 0 : state.status === 'FIRING'
  const agentName = rule.agentId === null ? null : await findAgentName(sql, environmentId, rule.agentId)
  return { ...NOTHING, id, at: createdAt, isCurrent, alert, data: { agentName } }
}

async function issueNotice(sql: Sql, environmentId: string, id: string): Promise<NoticeRow | null> {
  const issue = await sql.get<IssueNews>(ISSUE, { env: environmentId, id })
  if (issue === null) return null
  const data = { environmentId, ...issueData(issue) }
  return { ...NOTHING, id, at: issue.lastSeen, isCurrent: issue.state === 'OPEN', data }
}

function countWaitingApprovals(sql: Sql, environmentId: string, now: number, most: number): Promise<number> {
  const text = `SELECT COUNT(*) AS count FROM (SELECT 1 FROM approvals
    WHERE environment_id = :env AND status = 'PENDING' AND expires_at > :now AND withdrawn_at IS NULL LIMIT :most) AS page`
  return countOf(sql, text, { env: environmentId, now, most })
}
