import type { AuditEntry, AuditFilter } from '../audit.ts'
import type { PageById } from '../storage.ts'
import type { Sql, SqlValue } from './sql.ts'

const COLUMNS = `id, workspace_id AS "workspaceId", environment_id AS "environmentId", at, actor_kind AS "actorKind",
  actor_id AS "actorId", actor_name AS "actorName", action, target_kind AS "targetKind", target_id AS "targetId",
  detail, request_id AS "requestId"`

/** Part of every act that an operator causes. */
export async function insertAudit(sql: Sql, entries: AuditEntry[]): Promise<void> {
  const text = `INSERT INTO audit_log (id, workspace_id, environment_id, at, actor_kind, actor_id, actor_name, action,
      target_kind, target_id, detail, request_id)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
  for (const entry of entries) {
    const { id, workspaceId, environmentId, at, actorKind, actorId, actorName } = entry
    const { action, targetKind, targetId, detail, requestId } = entry
    const who: SqlValue[] = [id, workspaceId, environmentId, at, actorKind, actorId, actorName]
    await sql.run(text, [...who, action, targetKind, targetId, detail, requestId])
  }
}

export async function appendAudit(sql: Sql, entries: AuditEntry[]): Promise<void> {
  await insertAudit(sql, entries)
}

export function listAudit(
  sql: Sql,
  workspaceId: string | null,
  { limit, after }: PageById,
  filter: AuditFilter = {},
): Promise<AuditEntry[]> {
  const given: [string, SqlValue | undefined][] = [
    ['workspace_id = ?', workspaceId],
    ['id < ?', after],
    ['action = ?', filter.action],
    ['actor_id = ?', filter.actorId],
    ['target_kind = ?', filter.targetKind],
    ['target_id = ?', filter.targetId],
    ['at >= ?', filter.from],
    ['at < ?', filter.to],
  ]
  const conditions = given.flatMap(([text, value]) => (value === undefined || value === null ? [] : [{ text, value }]))
  const where = conditions.length > 0 ? `WHERE ${conditions.map(({ text }) => text).join(' AND ')}` : ''
  const params = conditions.map(({ value }) => value)
  return sql.all(`SELECT ${COLUMNS} FROM audit_log ${where} ORDER BY id DESC LIMIT ?`, [...params, limit])
}
