import { read, write } from './act.ts'
import type { AuditEntry, AuditFilter } from '../audit.ts'
import type { Page, PageById } from '../page.ts'
import { uuidv7At } from '../uuid.ts'
import { chunksOf, PLACES } from './rows/chunks.ts'
import { insertRows } from './rows/insert-rows.ts'
import { selectList, type Sql, type SqlValue } from './sql.ts'

export const auditActs = {
  appendAudit: write(appendAudit),
  listAudit: read(listAudit),
}

const NAMES = {
  id: 'id',
  workspaceId: 'workspace_id',
  environmentId: 'environment_id',
  at: 'at',
  actorKind: 'actor_kind',
  actorId: 'actor_id',
  actorName: 'actor_name',
  action: 'action',
  targetKind: 'target_kind',
  targetId: 'target_id',
  detail: 'detail',
  requestId: 'request_id',
} satisfies Record<keyof AuditEntry, string>
const COLUMNS = selectList(NAMES)

/** Most an entry's id may differ from its time, because ids wait when the clock goes back. */
const ID_LAG_MS = 60_000

export async function insertAudit(sql: Sql, entries: AuditEntry[]): Promise<void> {
  const names = Object.keys(NAMES) as (keyof AuditEntry)[]
  const rows = entries.map((entry) =>
    Object.fromEntries(names.map((name): [string, SqlValue] => [NAMES[name], entry[name]])),
  )
  await insertRows(sql, 'audit_log', rows)
}

/** Removes ids and texts of clients. Actor, action and target stay. */
export async function eraseDetails(sql: Sql, environmentId: string, kind: string, targets: string[]): Promise<void> {
  for (const chunk of chunksOf(targets)) {
    const text = `UPDATE audit_log SET detail = '{"erased":true}'
      WHERE target_id IN (${PLACES}) AND environment_id = ? AND target_kind = ?`
    await sql.run(text, [...chunk, environmentId, kind])
  }
}

/** The same for decisions on approvals of these runs, even if retention has removed the approvals. */
export async function eraseDecisionsOf(sql: Sql, environmentId: string, runIds: readonly string[]): Promise<void> {
  const runId = sql.dialect === 'postgres' ? "detail::jsonb ->> 'runId'" : "detail ->> 'runId'"
  const text = `UPDATE audit_log SET detail = '{"erased":true}'
    WHERE environment_id = ? AND target_kind = 'approval' AND ${runId} IN (${PLACES})`
  for (const chunk of chunksOf([...runIds])) await sql.run(text, [environmentId, ...chunk])
}

/** The same for decisions, scores of runs and changes of saved views that quote this text, whatever became of them. */
export async function eraseQuotes(sql: Sql, environmentId: string, quoted: string): Promise<void> {
  const quotes = sql.dialect === 'postgres' ? 'strpos(detail, ?) > 0' : 'instr(detail, ?) > 0'
  const text = `UPDATE audit_log SET detail = '{"erased":true}'
    WHERE environment_id = ? AND target_kind IN ('approval', 'run', 'run_view') AND ${quotes}`
  await sql.run(text, [environmentId, JSON.stringify(quoted)])
}

/** For attempts that change nothing. Acts that change something insert their own entries. */
async function appendAudit(sql: Sql, entries: AuditEntry[]): Promise<void> {
  await insertAudit(sql, entries)
}

/** Newest first. Null: entries of every workspace and of the installation. */
function listAudit(
  sql: Sql,
  workspaceId: string | null,
  { limit, after }: PageById,
  filter: AuditFilter = {},
): Promise<Page<AuditEntry>> {
  const given: [string, SqlValue | undefined][] = [
    ['workspace_id = ?', workspaceId],
    ['id < ?', after],
    ['action = ?', filter.action],
    ['actor_id = ?', filter.actorId],
    ['target_kind = ?', filter.targetKind],
    ['target_id = ?', filter.targetId],
    ['at >= ?', filter.from],
    ['at < ?', filter.to],
    // Ids follow the time, so the scan starts and ends near the range.
    ['id >= ?', filter.from === undefined ? undefined : uuidv7At(filter.from - ID_LAG_MS)],
    ['id < ?', filter.to === undefined ? undefined : uuidv7At(filter.to + ID_LAG_MS)],
  ]
  const conditions = given.flatMap(([text, value]) => (value === undefined || value === null ? [] : [{ text, value }]))
  const where = conditions.length > 0 ? `WHERE ${conditions.map(({ text }) => text).join(' AND ')}` : ''
  const params = conditions.map(({ value }) => value)
  return sql.page(`SELECT ${COLUMNS} FROM audit_log ${where} ORDER BY id DESC`, params, limit)
}
