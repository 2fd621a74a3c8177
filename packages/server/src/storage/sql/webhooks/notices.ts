/**
 * What people are told in their browsers: work items, which name an event and its subject and hold nothing else. Whether it
 * still matters is read when it is told.
 */
import { isNotificationEvent, subjectBeginning, subjectText } from '../../notifications.ts'
import type { NoticesTold, NoticeSubject } from '../../notifications.ts'
import type { WorkHold } from '../../work.ts'
import { look, write } from '../act.ts'
import { chunksOf, PLACES } from '../rows/chunks.ts'
import { prefixRange } from '../rows/prefix-range.ts'
import type { Sql } from '../sql.ts'
import { enqueueWork, finishWork } from '../work.ts'

export const noticesActs = {
  listNotices: look(listNotices),
  recordNoticesTold: write(recordNoticesTold),
}

/** Items of an environment that wait. Beyond them, nothing more is put off. */
const WAITING = 10_000

/** Part of the act that causes the event: queues it if anybody chose the environment. */
export async function queueNotices(
  sql: Sql,
  environmentId: string,
  event: string,
  ids: string[],
  at: number,
): Promise<void> {
  if (!isNotificationEvent(event) || ids.length === 0) return
  const chosen = 'SELECT 1 AS found FROM notification_choices WHERE environment_id = ? LIMIT 1'
  if ((await sql.get(chosen, [environmentId])) === null) return
  await enqueue(
    sql,
    environmentId,
    ids.map((id) => ({ browserId: null, event, id, dueAt: at })),
  )
}

function enqueue(sql: Sql, environmentId: string, subjects: (NoticeSubject & { dueAt: number })[]): Promise<void> {
  const work = subjects.map(({ dueAt, ...subject }) => {
    return { kind: 'notify_people', environmentId, subjectId: subjectText(subject), dueAt } as const
  })
  return enqueueWork(sql, work)
}

/** Subjects with the same browsers and event that nobody works on, so that one message tells all. */
async function listNotices(
  sql: Sql,
  environmentId: string,
  of: Pick<NoticeSubject, 'browserId' | 'event'>,
  limit: number,
): Promise<string[]> {
  const { from, below } = prefixRange(subjectBeginning(of))
  const text = `SELECT subject_id AS id FROM work WHERE environment_id = ? AND kind = 'notify_people'
    AND subject_id >= ? AND subject_id < ? AND lease_owner IS NULL ORDER BY subject_id LIMIT ?`
  const rows = await sql.all<{ id: string }>(text, [environmentId, from, below, limit])
  return rows.map(({ id }) => id)
}

/** Ends the work. False, storing nothing: the owner no longer holds it. */
async function recordNoticesTold(
  sql: Sql,
  hold: WorkHold,
  environmentId: string,
  { at, joined, told, gone, later }: NoticesTold,
): Promise<boolean> {
  if ((await finishWork(sql, hold)) === 0) return false
  const end = `DELETE FROM work WHERE environment_id = ? AND kind = 'notify_people' AND subject_id IN (${PLACES})
    AND lease_owner IS NULL`
  for (const chunk of chunksOf(joined.toSorted())) await sql.run(end, [environmentId, ...chunk])
  // Sorted, so that two nodes cannot deadlock.
  const tell = `UPDATE notified_browsers SET notified_at = ? WHERE id IN (${PLACES})`
  for (const chunk of chunksOf(told.toSorted())) await sql.run(tell, [at, ...chunk])
  const remove = `DELETE FROM notified_browsers WHERE id IN (${PLACES})`
  for (const chunk of chunksOf(gone.toSorted())) await sql.run(remove, chunk)
  if (later.length > 0 && (await hasRoom(sql, environmentId))) await enqueue(sql, environmentId, later)
  return true
}

async function hasRoom(sql: Sql, environmentId: string): Promise<boolean> {
  const text = `SELECT COUNT(*) AS count FROM (SELECT 1 FROM work
    WHERE environment_id = ? AND kind = 'notify_people' LIMIT ?) AS page`
  const found = await sql.get<{ count: number }>(text, [environmentId, WAITING])
  return (found?.count ?? 0) < WAITING
}
