import type { OperatorTokenRow } from '../storage.ts'
import { growRevision } from './revision.ts'
import type { Sql } from './sql.ts'

const COLUMNS = `id, name, hash, workspace_id AS "workspaceId", role, created_at AS "createdAt", expires_at AS "expiresAt", revoked_at AS "revokedAt",
  last_used_at AS "lastUsedAt"`

export async function insertOperatorToken(sql: Sql, token: OperatorTokenRow): Promise<void> {
  const text = `INSERT INTO operator_tokens (id, name, hash, workspace_id, role, created_at, expires_at, revoked_at,
      last_used_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
  const { id, name, hash, workspaceId, role, createdAt, expiresAt, revokedAt, lastUsedAt } = token
  await sql.run(text, [id, name, hash, workspaceId, role, createdAt, expiresAt, revokedAt, lastUsedAt])
}

export async function createOperatorToken(sql: Sql, token: OperatorTokenRow): Promise<void> {
  await insertOperatorToken(sql, token)
  await growRevision(sql)
}

export async function revokeOtherOperatorTokens(sql: Sql, keptId: string, now: number): Promise<number> {
  const text = 'UPDATE operator_tokens SET revoked_at = ? WHERE id <> ? AND revoked_at IS NULL'
  const revoked = await sql.run(text, [now, keptId])
  if (revoked > 0) await growRevision(sql)
  return revoked
}

export function findOperatorToken(sql: Sql, id: string): Promise<OperatorTokenRow | null> {
  return sql.get(`SELECT ${COLUMNS} FROM operator_tokens WHERE id = ?`, [id])
}
