import { look, read, write, type Acts } from './act.ts'
import type { Scope } from '@tacho/contract/route.ts'
import type { AuditEntry } from '../audit.ts'
import type { PageById } from '../page.ts'
import type { ApiKeyRow, ApiKeyStore } from '../api-keys.ts'
import { insertAudit } from './audit.ts'
import { findEnvironment } from './environments.ts'
import { growRevision } from './revision.ts'
import type { Sql } from './sql.ts'

export const apiKeysActs = {
  createApiKey: write(createApiKey),
  listApiKeys: read(listApiKeys),
  findApiKey: look(findApiKey),
  revokeApiKey: write(revokeApiKey),
} satisfies Partial<Acts<ApiKeyStore>>

const COLUMNS = `k.id, k.environment_id AS "environmentId", k.name, k.hash, k.scopes,
  k.requests_per_second AS "requestsPerSecond", k.created_at AS "createdAt", k.expires_at AS "expiresAt",
  k.revoked_at AS "revokedAt", k.last_used_at AS "lastUsedAt"`

/** Scopes are stored as a JSON array. */
type Kept<Row> = Omit<Row, 'scopes'> & { scopes: string }

const parsed = <Row>(row: Kept<Row>) => ({ ...row, scopes: JSON.parse(row.scopes) as Scope[] })

export async function insertApiKey(sql: Sql, key: ApiKeyRow): Promise<void> {
  const text = `INSERT INTO api_keys (id, environment_id, name, hash, scopes, requests_per_second, created_at,
    expires_at, revoked_at, last_used_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
  const { id, environmentId, name, hash, scopes, requestsPerSecond, createdAt, expiresAt, revokedAt, lastUsedAt } = key
  const times = [createdAt, expiresAt, revokedAt, lastUsedAt]
  await sql.run(text, [id, environmentId, name, hash, JSON.stringify(scopes), requestsPerSecond, ...times])
}

async function createApiKey(sql: Sql, key: ApiKeyRow, audit: AuditEntry[]): Promise<'created' | 'no_environment'> {
  if ((await findEnvironment(sql, key.environmentId)) === null) return 'no_environment'
  await insertApiKey(sql, key)
  await insertAudit(sql, audit)
  await growRevision(sql)
  return 'created'
}

async function listApiKeys(sql: Sql, environmentId: string, page: PageById): Promise<ApiKeyRow[]> {
  const text = `SELECT ${COLUMNS} FROM api_keys k WHERE k.environment_id = ? AND k.id > ? ORDER BY k.id LIMIT ?`
  const rows = await sql.all<Kept<ApiKeyRow>>(text, [environmentId, page.after ?? '', page.limit])
  return rows.map(parsed)
}

async function findApiKey(sql: Sql, id: string): Promise<(ApiKeyRow & { workspaceId: string }) | null> {
  const text = `SELECT ${COLUMNS}, e.workspace_id AS "workspaceId"
    FROM api_keys k JOIN environments e ON e.id = k.environment_id WHERE k.id = ?`
  const row = await sql.get<Kept<ApiKeyRow & { workspaceId: string }>>(text, [id])
  return row && parsed(row)
}

async function revokeApiKey(
  sql: Sql,
  environmentId: string,
  id: string,
  now: number,
  audit: AuditEntry[],
): Promise<ApiKeyRow | null> {
  const revoke = 'UPDATE api_keys SET revoked_at = ? WHERE environment_id = ? AND id = ? AND revoked_at IS NULL'
  if ((await sql.run(revoke, [now, environmentId, id])) === 1) {
    await insertAudit(sql, audit)
    await growRevision(sql)
  }
  const text = `SELECT ${COLUMNS} FROM api_keys k WHERE k.environment_id = ? AND k.id = ?`
  const row = await sql.get<Kept<ApiKeyRow>>(text, [environmentId, id])
  return row && parsed(row)
}
