/**
 * The queue of background work. A row exists while there is work to do.
 *
 *   waiting --claim, from due_at on--> held --finish--> deleted
 *      ^                                |
 *      +--postpone, restart, lease ends-+
 *
 * `due_at` of a held row is the end of its lease, so a dead node's work becomes due again.
 */
import { look, write, type Acts } from './act.ts'
import { WORK_COUNTED, WORK_KINDS } from '../work.ts'
import type {
  NewWork,
  WorkBacklog,
  WorkClaim,
  WorkHold,
  WorkItem,
  WorkKind,
  WorkPostponement,
  WorkStore,
} from '../work.ts'
import { insertRows } from './rows/insert-rows.ts'
import type { Sql } from './sql.ts'

export const workActs = {
  dueWork: look(dueWork),
  claimWork: write(claimWork),
  extendWork: write(extendWork),
  postponeWork: write(postponeWork),
  finishWork: write(finishWork),
  workBacklog: look(workBacklog),
} satisfies Partial<Acts<WorkStore>>

const STAYS = 'DO NOTHING'
export const RESTARTS = 'DO UPDATE SET due_at = excluded.due_at, lease_owner = NULL'

/**
 * Part of the act that causes the work. Work already queued stays unchanged, or starts again: it is taken from its holder,
 * who may have read what has changed since.
 */
export async function enqueueWork(
  sql: Sql,
  work: readonly NewWork[],
  whenQueued: typeof STAYS | typeof RESTARTS = STAYS,
): Promise<void> {
  const rows = work.map(({ kind, environmentId, subjectId, dueAt }) => {
    return { kind, subject_id: subjectId, environment_id: environmentId, due_at: dueAt, attempts: 0 }
  })
  await insertRows(sql, 'work', rows, `ON CONFLICT (kind, subject_id) ${whenQueued}`)
}

/** The kinds, as a table of one column. */
const KINDS = `(VALUES ${WORK_KINDS.map(() => '(?)').join(', ')}) AS asked`

async function dueWork(sql: Sql, now: number): Promise<WorkKind[]> {
  const text = `SELECT asked.column1 AS kind FROM ${KINDS}
    WHERE EXISTS (SELECT 1 FROM work WHERE kind = asked.column1 AND due_at <= ?)`
  const rows = await sql.all<{ kind: WorkKind }>(text, [...WORK_KINDS, now])
  return rows.map(({ kind }) => kind)
}

async function claimWork(sql: Sql, { kind, owner, now, leaseUntil, limit }: WorkClaim): Promise<WorkItem[]> {
  // PostgreSQL would run a plain subquery again for each row, and exceed the limit. The condition on due_at appears
  // twice because PostgreSQL checks it again if another transaction took a row. The plus stops SQLite from scanning all
  // due work by it.
  const skip = sql.dialect === 'postgres' ? 'FOR UPDATE SKIP LOCKED' : ''
  const text = `WITH due AS MATERIALIZED (
      SELECT subject_id FROM work WHERE kind = ? AND due_at <= ? ORDER BY due_at, subject_id LIMIT ? ${skip})
    UPDATE work SET due_at = ?, lease_owner = ?, attempts = attempts + 1
    WHERE kind = ? AND +due_at <= ? AND subject_id IN (SELECT subject_id FROM due)
    RETURNING environment_id AS "environmentId", subject_id AS "subjectId", attempts, last_error AS "lastError"`
  return sql.all<WorkItem>(text, [kind, now, limit, leaseUntil, owner, kind, now])
}

async function extendWork(sql: Sql, { kind, owner, subjectIds }: WorkHold, leaseUntil: number): Promise<number> {
  const text = 'UPDATE work SET due_at = ? WHERE kind = ? AND subject_id = ? AND lease_owner = ?'
  let held = 0
  for (const id of subjectIds.toSorted()) held += await sql.run(text, [leaseUntil, kind, id, owner])
  return held
}

export async function postponeWork(
  sql: Sql,
  { kind, owner, subjectIds }: WorkHold,
  { dueAt, error, counts }: WorkPostponement,
): Promise<number> {
  const text = `UPDATE work SET due_at = ?, lease_owner = NULL, last_error = ?, attempts = attempts - ?
    WHERE kind = ? AND subject_id = ? AND lease_owner = ?`
  let held = 0
  for (const id of subjectIds.toSorted()) held += await sql.run(text, [dueAt, error, counts ? 0 : 1, kind, id, owner])
  return held
}

export async function finishWork(sql: Sql, { kind, owner, subjectIds }: WorkHold): Promise<number> {
  const text = 'DELETE FROM work WHERE kind = ? AND subject_id = ? AND lease_owner = ?'
  let held = 0
  for (const id of subjectIds.toSorted()) held += await sql.run(text, [kind, id, owner])
  return held
}

async function workBacklog(sql: Sql, now: number): Promise<WorkBacklog[]> {
  const counted = (condition: string) => `(SELECT COUNT(*) FROM
      (SELECT 1 FROM work WHERE kind = asked.column1${condition} LIMIT ${WORK_COUNTED}) AS counted)`
  const text = `SELECT asked.column1 AS kind, ${counted('')} AS items, ${counted(' AND due_at <= ?')} AS due,
      (SELECT due_at FROM work WHERE kind = asked.column1 AND due_at <= ? ORDER BY due_at LIMIT 1) AS "dueSince"
    FROM ${KINDS}`
  const backlog = await sql.all<WorkBacklog>(text, [now, now, ...WORK_KINDS])
  return backlog.filter(({ items }) => items > 0)
}
