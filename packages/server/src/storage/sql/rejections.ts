/** Refused events are remembered, the newest of each environment. */
import { read, type Acts } from './act.ts'
import type { EventVerdict, NewEvent, RejectionRow, EventStore } from '../events.ts'
import { rejectionKey } from './keys.ts'
import type { Sql } from './sql.ts'

export const rejectionsActs = {
  findRejection: read(findRejection),
} satisfies Partial<Acts<EventStore>>

/** How many are kept per environment, give or take what came since the last trim. */
export const REJECTIONS_KEPT = 10_000

/** What only the store could refuse, to be remembered beside what its batch came with. */
export function refusedByStore(events: NewEvent[], verdicts: EventVerdict[], rejectedAt: number): RejectionRow[] {
  return events.flatMap(({ runId, eventId }, index) => {
    const verdict = verdicts[index]
    if (verdict !== 'absent' && verdict !== 'unstorable') return []
    return [{ runId, eventId, code: verdict === 'absent' ? 'timestamp_too_old' : 'unstorable', rejectedAt }]
  })
}

export async function keepRejections(sql: Sql, environmentId: string, rejections: RejectionRow[]): Promise<void> {
  const text = `INSERT INTO rejections (environment_id, rejection_key, code, rejected_at) VALUES (?, ?, ?, ?)
    ON CONFLICT (environment_id, rejection_key) DO UPDATE SET code = excluded.code, rejected_at = excluded.rejected_at`
  const keyed = rejections.map((row) => ({ ...row, key: rejectionKey(row.runId, row.eventId) }))
  keyed.sort((a, b) => (a.key < b.key ? -1 : 1))
  for (const { key, code, rejectedAt } of keyed) await sql.run(text, [environmentId, key, code, rejectedAt])
}

/** Forgets the oldest beyond the bound. Reads as many index rows as are kept, so call it now and then. */
export async function trimRejections(sql: Sql, environmentId: string, kept = REJECTIONS_KEPT): Promise<void> {
  const text = `DELETE FROM rejections WHERE environment_id = ? AND rejected_at <= (
    SELECT rejected_at FROM rejections WHERE environment_id = ? ORDER BY rejected_at DESC LIMIT 1 OFFSET ?)`
  await sql.run(text, [environmentId, environmentId, kept])
}

async function findRejection(
  sql: Sql,
  environmentId: string,
  runId: string,
  eventId: string,
): Promise<RejectionRow | null> {
  const text = `SELECT code, rejected_at AS "rejectedAt" FROM rejections
    WHERE environment_id = ? AND rejection_key = ?`
  const row = await sql.get<Pick<RejectionRow, 'code' | 'rejectedAt'>>(text, [
    environmentId,
    rejectionKey(runId, eventId),
  ])
  return row && { runId, eventId, ...row }
}
