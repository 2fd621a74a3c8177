/**
 *   (free) --claim--> running --keep--> answered --a day--> (free)
 *                     |    ^
 *             release |    | claimed again by the same request, after a minute
 *                     v    |
 *                  (free)--'
 */
import { write } from './act.ts'
import type { IdempotencyClaim, IdempotencyKey, IdempotencyOutcome, KeptReply } from '../../engine/idempotency.ts'
import type { Sql } from './sql.ts'

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
  // Another node may have released it between the two.
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
