/** Announcements contain nothing from payloads. */
import {
  type AlertNewsRow,
  isNotificationEvent,
  subjectBeginning,
  subjectText,
  type NoticesTold,
  type NoticeSubject,
} from '../../messages/messages.ts'
import { approvalData, type ApprovalRow } from '../../approvals/approvals.ts'
import { isoTime } from '../../engine/times.ts'
import type { IssueRow } from '../../issues/issues.ts'
import { findRequesterNames } from '../runs/agent-list.ts'
import { keepRemovalsWaiting } from '../data/erased-keys.ts'
import { type Sql, countOf, lookup, write } from '../engine/sql.ts'
import { announce } from './deliveries.ts'
import type { WorkHold } from '../../engine/work.ts'
import { chunksOf, prefixRange } from '../engine/rows.ts'
import { enqueueWork, finishWork } from '../engine/work.ts'

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
  // Blocks an erasure of the agent, which then removes the message too.
  if (agentId !== null) await keepRemovalsWaiting(sql, environmentId)
  const agentName = agentId === null ? null : await findAgentName(sql, environmentId, agentId)
  return announce(sql, environmentId, type, [{ at, data: { ...data, agentName } }])
}

/** Finds the name by the agent's internal id. */
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

/**
 * A work item names only an event and its subject. Whether the notification is still needed is checked when it is sent.
 */

export const noticesActs = {
  ...lookup({ listNotices }),
  ...write({ recordNoticesTold }),
}

/** From this many waiting notices in an environment, no notice is postponed again. */
const WAITING = 10_000

export async function queueNotices(sql: Sql, environmentId: string, event: string, ids: string[], at: number) {
  if (!isNotificationEvent(event) || ids.length === 0) return
  const chosen = 'SELECT 1 AS found FROM notification_choices WHERE environment_id = :env LIMIT 1'
  if ((await sql.get(chosen, { env: environmentId })) === null) return
  const subjects = ids.map((id) => ({ browserId: null, event, id, dueAt: at }))
  await enqueue(sql, environmentId, subjects)
}

function enqueue(sql: Sql, environmentId: string, subjects: (NoticeSubject & { dueAt: number })[]): Promise<void> {
  const work = subjects.map(({ dueAt, ...subject }) => {
    return { kind: 'notify_people', environmentId, subjectId: subjectText(subject), dueAt } as const
  })
  return enqueueWork(sql, work)
}

/** Lists subjects with the same browsers and event, of which no worker has a lease, so that one message covers all. */
async function listNotices(
  sql: Sql,
  environmentId: string,
  of: Pick<NoticeSubject, 'browserId' | 'event'>,
  limit: number,
): Promise<string[]> {
  const { from, below } = prefixRange(subjectBeginning(of))
  const text = `SELECT subject_id AS id FROM work WHERE environment_id = :env AND kind = 'notify_people'
    AND subject_id >= :from AND subject_id < :below AND lease_owner IS NULL ORDER BY subject_id LIMIT :limit`
  const rows = await sql.all<{ id: string }>(text, { env: environmentId, from, below, limit })
  return rows.map(({ id }) => id)
}

async function recordNoticesTold(
  sql: Sql,
  workHold: WorkHold,
  environmentId: string,
  { at, joined, told, gone, later }: NoticesTold,
): Promise<boolean> {
  if ((await finishWork(sql, workHold)) === 0) return false
  const end = `DELETE FROM work WHERE environment_id = :env AND kind = 'notify_people' AND subject_id IN (:ids)
    AND lease_owner IS NULL`
  for (const ids of chunksOf(joined.toSorted())) await sql.run(end, { env: environmentId, ids })
  // Sorted, so that two nodes cannot deadlock.
  const tell = 'UPDATE notified_browsers SET notified_at = :at WHERE id IN (:ids)'
  for (const ids of chunksOf(told.toSorted())) await sql.run(tell, { at, ids })
  const remove = 'DELETE FROM notified_browsers WHERE id IN (:ids)'
  for (const ids of chunksOf(gone.toSorted())) await sql.run(remove, { ids })
  if (later.length > 0 && (await hasRoom(sql, environmentId))) await enqueue(sql, environmentId, later)
  return true
}

async function hasRoom(sql: Sql, environmentId: string): Promise<boolean> {
  const text = `SELECT COUNT(*) AS count FROM (SELECT 1 FROM work
    WHERE environment_id = :env AND kind = 'notify_people' LIMIT ${WAITING}) AS page`
  return (await countOf(sql, text, { env: environmentId })) < WAITING
}
