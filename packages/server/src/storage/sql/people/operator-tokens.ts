import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { AuditEntry, MadeToken, OperatorTokenRotation, OperatorTokenRow } from '../../people/operators.ts'
import { mapPage, type PageById } from '../../engine/page.ts'
import { uuidv7 } from '../../engine/uuid.ts'
import { read, write, selectList, type Sql } from '../engine/sql.ts'
import { insertAudit } from './audit.ts'
import { auditControl, growRevision, lockControl } from '../engine/revision.ts'
import { inChunks, insertRows, withJson } from '../engine/rows.ts'
import { assertSum, damagedError, nameOf, takeSum, withSum } from '../engine/row-sums.ts'
import { rightToGive } from './invitations.ts'
import { DECIDING, INSTALLATION, scopeOf } from './operators.ts'

export const operatorTokensActs = {
  ...read({ listOperatorTokens, findOperatorToken, countDecidingTokens }),
  ...write({ createOperatorToken, rotateOperatorToken, revokeOperatorToken, revokeOtherOperatorTokens }),
}

const COLUMNS = `${withSum('operator_tokens')}, ${selectList(
  'name creator_kind creator_id creator_name created_at expires_at revoked_at replaced_by last_used_at',
)}`
const REMEDY = 'Revoke it and create another one, or restore a backup'
const parsed = withJson<OperatorTokenRow>('allowedAddresses')

/**
 * `forbidden`: the person who creates the token has lost the role meanwhile. The lock makes the act wait for one that
 * ends their access.
 */
async function createOperatorToken(
  sql: Sql,
  token: OperatorTokenRow,
  audit: AuditEntry[],
): Promise<'created' | 'forbidden'> {
  await lockControl(sql)
  if (!(await mayMake(sql, token))) return 'forbidden'
  await insertRows(sql, 'operator_tokens', [token])
  await auditControl(sql, audit)
  return 'created'
}

async function mayMake(sql: Sql, token: OperatorTokenRow): Promise<boolean> {
  const { creatorKind: kind, creatorId: id, role, createdAt, workspaceId } = token
  const target = { scope: scopeOf(workspaceId), role }
  return kind === null || id === null || (await rightToGive(sql, { kind, id }, target, createdAt)) !== null
}

/** The new token belongs to the person who requested it, the only one who has seen it. */
async function rotateOperatorToken(
  sql: Sql,
  workspaceId: string | null,
  id: string,
  { now, oldValidUntil, expiresAt, ...added }: OperatorTokenRotation,
  audit: AuditEntry[],
): Promise<OperatorTokenRow | 'forbidden' | 'ended' | null> {
  await lockControl(sql)
  const old = await readOperatorToken(sql, workspaceId, id)
  if (old === null) return null
  if (old.damaged) throw damagedError(nameOf('operator_tokens', old), REMEDY)
  if (old.revokedAt !== null || old.replacedBy !== null || (old.expiresAt ?? now + 1) <= now) return 'ended'
  const expires = expiresAt === undefined ? old.expiresAt : expiresAt
  const token = { ...old, ...added, createdAt: now, expiresAt: expires, lastUsedAt: null }
  if (!(await mayMake(sql, token))) return 'forbidden'
  await insertRows(sql, 'operator_tokens', [token])
  const until = Math.min(old.expiresAt ?? oldValidUntil, oldValidUntil)
  const text = 'UPDATE operator_tokens SET expires_at = :until, replaced_by = :newId WHERE id = :id'
  await sql.run(text, { until, newId: token.id, id })
  await auditControl(sql, audit)
  return token
}

/** Null: tokens for every workspace. */
async function listOperatorTokens(sql: Sql, workspaceId: string | null, { limit, after }: PageById) {
  const text = `SELECT ${COLUMNS} FROM operator_tokens WHERE ${inScope(workspaceId)} AND id > :after ORDER BY id`
  return mapPage(await sql.page<OperatorTokenRow>(text, { workspaceId, after: after ?? '' }, limit), (row) =>
    toRow(sql, row),
  )
}

/** A damaged token is listed, so that it can be revoked. */
function toRow(sql: Sql, row: OperatorTokenRow): OperatorTokenRow {
  const isIntact = takeSum(sql, 'operator_tokens', row, row.workspaceId ?? INSTALLATION)
  return isIntact ? parsed(row) : { ...row, allowedAddresses: [], damaged: true }
}

/**
 * `alsoMade`: also revokes tokens created with this one. By default they stay, because most belong to programs that should
 * continue.
 */
async function revokeOperatorToken(
  sql: Sql,
  workspaceId: string | null,
  id: string,
  { now, alsoMade }: { now: number; alsoMade: boolean },
  audit: AuditEntry[],
): Promise<{ token: OperatorTokenRow; made: MadeToken[] } | null> {
  // With the lock, a token that is being created either waits or is found.
  await lockControl(sql)
  const revoke = `UPDATE operator_tokens SET revoked_at = :now
    WHERE ${inScope(workspaceId)} AND id = :id AND revoked_at IS NULL`
  if ((await sql.run(revoke, { now, workspaceId, id })) === 1) await auditControl(sql, audit)
  const token = await readOperatorToken(sql, workspaceId, id)
  if (token === null) return null
  const text = `${MADE} SELECT ${selectList('id workspace_id name role revoked_at')} FROM operator_tokens
    WHERE id IN (SELECT id FROM made) AND revoked_at IS NULL AND COALESCE(expires_at > :now, 1 = 1)
    ORDER BY id LIMIT ${LIMITS.operatorPageMax}`
  const made = await sql.all<MadeToken>(text, { creatorKind: 'token', creatorId: id, now })
  if (!alsoMade || made.length === 0) return { token, made }
  const ids = made.map((one) => one.id)
  await inChunks(ids, async (chunk) => {
    await sql.run('UPDATE operator_tokens SET revoked_at = :now WHERE id IN (:chunk)', { now, chunk })
    return []
  })
  const entries = made.flatMap(({ id: targetId, workspaceId: home }) =>
    audit.map((entry) => ({
      ...entry,
      id: uuidv7(now),
      workspaceId: home,
      targetId,
      detail: JSON.stringify({ madeBy: id }),
    })),
  )
  await insertAudit(sql, entries)
  await growRevision(sql)
  return { token, made: made.map((one) => ({ ...one, revokedAt: now })) }
}

/** Tokens that a person or token made, directly or through other tokens: whoever held one has seen those it made. */
const MADE = `WITH RECURSIVE made (id) AS (
    SELECT id FROM operator_tokens WHERE creator_id = :creatorId AND creator_kind = :creatorKind
    UNION SELECT t.id FROM made JOIN operator_tokens t ON t.creator_id = made.id AND t.creator_kind = 'token')`

/** Revokes the tokens of a person whose access ends. Returns their number. */
export async function revokeTokensOf(sql: Sql, operatorId: string, now: number): Promise<number> {
  const text = `${MADE} UPDATE operator_tokens SET revoked_at = :now
    WHERE id IN (SELECT id FROM made) AND revoked_at IS NULL`
  return sql.run(text, { creatorKind: 'operator', creatorId: operatorId, now })
}

async function readOperatorToken(sql: Sql, workspaceId: string | null, id: string): Promise<OperatorTokenRow | null> {
  const text = `SELECT ${COLUMNS} FROM operator_tokens WHERE ${inScope(workspaceId)} AND id = :id`
  const row = await sql.get<OperatorTokenRow>(text, { workspaceId, id })
  return row && toRow(sql, row)
}

function inScope(workspaceId: string | null): string {
  return workspaceId === null ? 'workspace_id IS NULL' : 'workspace_id = :workspaceId'
}

async function revokeOtherOperatorTokens(sql: Sql, keptId: string, now: number): Promise<number> {
  const text = 'UPDATE operator_tokens SET revoked_at = :now WHERE id <> :keptId AND revoked_at IS NULL'
  const revoked = await sql.run(text, { now, keptId })
  if (revoked > 0) await growRevision(sql)
  return revoked
}

/** Tokens that can decide approvals of the workspace now. */
async function countDecidingTokens(sql: Sql, workspaceId: string, now: number): Promise<number> {
  const text = `SELECT count(*) AS tokens FROM operator_tokens WHERE (${inScope(null)} OR ${inScope(workspaceId)})
    AND role IN (${DECIDING}) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now)`
  return (await sql.get<{ tokens: number }>(text, { workspaceId, now }))?.tokens ?? 0
}

async function findOperatorToken(sql: Sql, id: string): Promise<OperatorTokenRow | null> {
  const row = await sql.get<OperatorTokenRow>(`SELECT ${COLUMNS} FROM operator_tokens WHERE id = :id`, { id })
  if (row === null) return null
  assertSum(sql, 'operator_tokens', row, row.workspaceId ?? INSTALLATION, REMEDY)
  return parsed(row)
}
