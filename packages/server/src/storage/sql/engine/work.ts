/**
 * The queue of background work. A row exists while there is work to do.
 *
 *   waiting --claim, from due_at on--> held --finish--> deleted
 *      ^                                |
 *      +--postpone, restart, lease ends-+
 *
 * `due_at` of a held row is the end of its lease, so a dead node's work becomes due again.
 */
import { lookup, write, selectList, type Sql, type SqlValue } from './sql.ts'
import {
  WORK_COUNTED,
  WORK_KINDS,
  type NewWork,
  type SharedWorkItem,
  type WorkBacklog,
  type WorkClaim,
  type WorkHold,
  type WorkItem,
  type WorkKind,
  type WorkPostponement,
  type WorkSubject,
  type IdempotencyClaim,
  type IdempotencyKey,
  type IdempotencyOutcome,
  type KeptReply,
} from '../../engine/work.ts'
import { insertRows } from './rows.ts'

export const workActs = {
  ...lookup({ dueWork, workBacklog }),
  ...write({ claimWork, claimWorkInTurn, extendWork, postponeWork, finishWork, replanWork }),
}

/** Transactions lock the rows of work in this order, so that they cannot deadlock. */
function inOrder<Subject extends WorkSubject>(work: readonly Subject[]): Subject[] {
  const placeOf = ({ environmentId, subjectId }: WorkSubject) => `${environmentId} ${subjectId}`
  return work.toSorted((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1))
}

const STAYS = 'DO NOTHING'
export const RESTARTS = 'DO UPDATE SET due_at = excluded.due_at, lease_owner = NULL'

/**
 * Queued work stays as it is, or starts again. Starting again takes it from its holder, who may have read outdated
 * data.
 */
export async function enqueueWork(
  sql: Sql,
  work: readonly NewWork[],
  whenQueued: typeof STAYS | typeof RESTARTS = STAYS,
): Promise<void> {
  const rows = inOrder(work).map(({ kind, environmentId, subjectId, dueAt }) => {
    return { environmentId, kind, subjectId, dueAt, attempts: 0 }
  })
  await insertRows(sql, 'work', rows, `ON CONFLICT (environment_id, kind, subject_id) ${whenQueued}`)
}

const KINDS = `(VALUES ${WORK_KINDS.map((kind) => `('${kind}')`).join(', ')}) AS asked`

async function dueWork(sql: Sql, now: number): Promise<WorkKind[]> {
  const text = `SELECT asked.column1 AS kind FROM ${KINDS}
    WHERE EXISTS (SELECT 1 FROM work WHERE kind = asked.column1 AND due_at <= :now)`
  const rows = await sql.all<{ kind: WorkKind }>(text, { now })
  return rows.map(({ kind }) => kind)
}

function claimWork(sql: Sql, { kind, owner, now, leaseUntil, limit }: WorkClaim): Promise<WorkItem[]> {
  return sql.all(claimText(sql, 'environment_id, subject_id'), { kind, owner, now, leaseUntil, limit })
}

function claimText({ dialect }: Sql, key: string, within = ''): string {
  // PostgreSQL would run a plain subquery again for each row, and exceed the limit. The condition on due_at appears
  // twice because PostgreSQL checks it again if another transaction took a row. The plus stops SQLite from using due_at
  // to scan all due work.
  return `WITH due AS MATERIALIZED (
      SELECT ${key} FROM work WHERE ${within}kind = :kind AND due_at <= :now
      ORDER BY due_at, ${key} LIMIT :limit ${dialect === 'postgres' ? 'FOR UPDATE SKIP LOCKED' : ''})
    UPDATE work SET due_at = :leaseUntil, lease_owner = :owner, attempts = attempts + 1
    WHERE ${within}kind = :kind AND +due_at <= :now AND (${key}) IN (SELECT ${key} FROM due)
    RETURNING ${selectList('environment_id subject_id attempts last_error')}`
}

/**
 * Environments are found one by one in the index, because one may have most of the work. Without the order by kind,
 * PostgreSQL reads the whole primary key.
 */
const firstAfter = (condition: string) => `(SELECT CASE WHEN kind = :kind THEN environment_id END FROM work
    WHERE ${condition} ORDER BY kind, environment_id LIMIT 1)`
const WAITING = `WITH RECURSIVE waiting (environment_id) AS (
    SELECT ${firstAfter('kind >= :kind')}
    UNION ALL
    SELECT ${firstAfter('(kind, environment_id) > (:kind, waiting.environment_id)')}
    FROM waiting WHERE waiting.environment_id IS NOT NULL)
  SELECT waiting.environment_id AS "environmentId", e.workspace_id AS "workspaceId",
    (SELECT COUNT(*) FROM (SELECT 1 FROM work
      WHERE kind = :kind AND environment_id = waiting.environment_id AND due_at <= :now
      ORDER BY due_at LIMIT :limit) AS counted) AS due
  FROM waiting JOIN environments e ON e.id = waiting.environment_id`

/**
 * Claims work first for the workspaces that hold the least. A workspace gets another item only while more are free than
 * it holds.
 */
async function claimWorkInTurn(
  sql: Sql,
  { kind, owner, now, leaseUntil, limit }: WorkClaim,
  held: [workspaceId: string, items: number][],
): Promise<SharedWorkItem[]> {
  const waiting = await sql.all<Waiting>(WAITING, { kind, now, limit })
  const text = claimText(sql, 'subject_id', 'environment_id = :env AND ')
  const items: SharedWorkItem[] = []
  for (const { environmentId, workspaceId, count } of sharesOf(waiting, limit, held)) {
    const share = { kind, env: environmentId, now, limit: count, leaseUntil, owner }
    const claimed = await sql.all<WorkItem>(text, share)
    items.push(...claimed.map((item) => ({ ...item, workspaceId })))
  }
  return items
}

interface Waiting {
  environmentId: string
  workspaceId: string
  due: number
}

function sharesOf(waiting: Waiting[], limit: number, held: [workspaceId: string, items: number][]) {
  const holds = new Map(held)
  const shares = waiting
    .filter(({ due }) => due > 0)
    .map((each) => ({ ...each, count: 0, order: Math.random() }))
    // Shuffle, so that no environment of a workspace is always the last.
    .sort((one, other) => one.order - other.order)
  const holdOf = ({ workspaceId }: Waiting) => holds.get(workspaceId) ?? 0
  for (let free = limit; free > 0; free--) {
    const open = shares.filter((share) => share.count < share.due && holdOf(share) < free)
    const [next] = open.sort((one, other) => holdOf(one) - holdOf(other) || one.count - other.count)
    if (!next) break
    next.count++
    holds.set(next.workspaceId, holdOf(next) + 1)
  }
  return shares.filter(({ count }) => count > 0)
}

/** Work whose time people or receivers chose. */
const PLANNED_FAR: readonly WorkKind[] = ['reopen_issue', 'delete_environment']
const WAITS_LONG: readonly WorkKind[] = ['deliver_webhook', 'notify_people']
const LONG_MS = 24 * 3_600_000
const LEASE_MS = 600_000

/**
 * For a clock that was set back: makes work due now if the wrong clock planned it later than work of its kind ever is.
 * `latestMs`: how far ahead other work may be planned.
 */
async function replanWork(sql: Sql, now: number, latestMs: number): Promise<number> {
  const others = WORK_KINDS.filter((kind) => ![...PLANNED_FAR, ...WAITS_LONG].includes(kind))
  let replanned = 0
  for (const [kinds, latest] of [
    [others, latestMs],
    [WAITS_LONG, LONG_MS],
  ] as const) {
    const text = `UPDATE work SET due_at = :now WHERE kind IN (:kinds)
      AND due_at > CASE WHEN lease_owner IS NULL THEN :latest ELSE :lease END`
    replanned += await sql.run(text, { now, kinds, latest: now + latest, lease: now + LEASE_MS })
  }
  return replanned
}

const HELD = 'environment_id = :env AND kind = :kind AND subject_id = :id AND lease_owner = :owner'

async function forEachHeld(
  sql: Sql,
  { kind, owner, items }: WorkHold,
  text: string,
  params: Readonly<Record<string, SqlValue>> = {},
): Promise<number> {
  let held = 0
  for (const { environmentId, subjectId } of inOrder(items)) {
    held += await sql.run(text, { ...params, env: environmentId, kind, id: subjectId, owner })
  }
  return held
}

function extendWork(sql: Sql, workHold: WorkHold, leaseUntil: number): Promise<number> {
  return forEachHeld(sql, workHold, `UPDATE work SET due_at = :leaseUntil WHERE ${HELD}`, { leaseUntil })
}

export function postponeWork(
  sql: Sql,
  workHold: WorkHold,
  { dueAt, error, counts }: WorkPostponement,
): Promise<number> {
  const text = `UPDATE work SET due_at = :dueAt, lease_owner = NULL, last_error = :error, attempts = attempts - :uncounted
    WHERE ${HELD}`
  return forEachHeld(sql, workHold, text, { dueAt, error, uncounted: counts ? 0 : 1 })
}

export function finishWork(sql: Sql, workHold: WorkHold): Promise<number> {
  return forEachHeld(sql, workHold, `DELETE FROM work WHERE ${HELD}`)
}

/** Deletes work. A worker that holds it notices at its next report. */
export async function removeWork(sql: Sql, { kind, environmentId, subjectId }: Omit<NewWork, 'dueAt'>): Promise<void> {
  const text = 'DELETE FROM work WHERE environment_id = :env AND kind = :kind AND subject_id = :subjectId'
  await sql.run(text, { env: environmentId, kind, subjectId })
}

async function workBacklog(sql: Sql, now: number): Promise<WorkBacklog[]> {
  const counted = (condition: string) => `(SELECT COUNT(*) FROM
      (SELECT 1 FROM work WHERE kind = asked.column1${condition} LIMIT ${WORK_COUNTED}) AS counted)`
  const text = `SELECT asked.column1 AS kind, ${counted('')} AS items, ${counted(' AND due_at <= :now')} AS due,
      (SELECT due_at FROM work WHERE kind = asked.column1 AND due_at <= :now ORDER BY due_at LIMIT 1) AS "dueSince"
    FROM ${KINDS}`
  const backlog = await sql.all<WorkBacklog>(text, { now })
  return backlog.filter(({ items }) => items > 0)
}

/**
 *   (free) --claim--> running --keep--> answered --a day--> (free)
 *                     |    ^
 *             release |    | claimed again by the same request, after a minute
 *                     v    |
 *                  (free)--'
 */

export const idempotencyActs = write({
  claimIdempotencyKey,
  keepIdempotentReply,
  releaseIdempotencyKey,
  deleteOldIdempotencyKeys,
})

const ONE = 'actor_kind = :actorKind AND actor_id = :actorId AND idempotency_key = :key'
/** The time distinguishes a claim from its takeover, which is at least a minute later. */
const CLAIMED = `${ONE} AND state = 'running' AND created_at = :claimedAt`

async function claimIdempotencyKey(
  sql: Sql,
  key: IdempotencyKey,
  claim: IdempotencyClaim,
): Promise<IdempotencyOutcome> {
  const insert = `INSERT INTO idempotency_keys AS held
      (actor_kind, actor_id, idempotency_key, fingerprint, created_at, state)
      VALUES (:actorKind, :actorId, :key, :fingerprint, :now, 'running')
    ON CONFLICT (actor_kind, actor_id, idempotency_key) DO UPDATE
    SET fingerprint = excluded.fingerprint, created_at = excluded.created_at, state = 'running', status = NULL, reply = NULL
    WHERE held.created_at <= :freeUntil
      OR (held.state = 'running' AND held.created_at <= :deadUntil AND held.fingerprint = excluded.fingerprint)`
  if ((await sql.run(insert, { ...key, ...claim })) > 0) return 'claimed'
  const text = `SELECT fingerprint, status, reply FROM idempotency_keys WHERE ${ONE}`
  const row = await sql.get<{ fingerprint: string; status: number | null; reply: string | null }>(text, { ...key })
  // Another node may have released the key between the two statements.
  if (row === null) return 'running'
  if (row.fingerprint !== claim.fingerprint) return 'other'
  return row.status === null || row.reply === null ? 'running' : { status: row.status, json: row.reply }
}

async function keepIdempotentReply(sql: Sql, key: IdempotencyKey, claimedAt: number, { status, json }: KeptReply) {
  const text = `UPDATE idempotency_keys SET state = 'answered', status = :status, reply = :json WHERE ${CLAIMED}`
  await sql.run(text, { status, json, ...key, claimedAt })
}

async function releaseIdempotencyKey(sql: Sql, key: IdempotencyKey, claimedAt: number): Promise<void> {
  await sql.run(`DELETE FROM idempotency_keys WHERE ${CLAIMED}`, { ...key, claimedAt })
}

function deleteOldIdempotencyKeys(sql: Sql, before: number, limit: number): Promise<number> {
  const text = `DELETE FROM idempotency_keys WHERE (actor_kind, actor_id, idempotency_key) IN (
    SELECT actor_kind, actor_id, idempotency_key FROM idempotency_keys
    WHERE created_at < :before ORDER BY created_at LIMIT :limit)`
  return sql.run(text, { before, limit })
}
