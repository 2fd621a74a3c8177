/** A work item names only an event and its subject. When people are told, the store says whether it still matters. */
import { isNotificationEvent, subjectBeginning, subjectText } from '../../messages/notifications.ts'
import type { NoticesTold, NoticeSubject } from '../../messages/notifications.ts'
import type { WorkHold } from '../../engine/work.ts'
import { look, write } from '../engine/act.ts'
import { chunksOf } from '../engine/chunks.ts'
import { prefixRange } from '../engine/prefix-range.ts'
import { countOf, type Sql } from '../engine/sql.ts'
import { enqueueWork, finishWork } from '../engine/work.ts'

export const noticesActs = {
  ...look({ listNotices }),
  ...write({ recordNoticesTold }),
}

/** Waiting items of an environment. Beyond this many, nothing more is postponed. */
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

/** Subjects with the same browsers and event that nobody works on, so that one message tells all. */
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
  hold: WorkHold,
  environmentId: string,
  { at, joined, told, gone, later }: NoticesTold,
): Promise<boolean> {
  if ((await finishWork(sql, hold)) === 0) return false
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
