import { read, write, contains, conditionsGiven, selectList, type Sql } from '../engine/sql.ts'
import type { AuditEntry, AuditFilter } from '../../people/operators.ts'
import type { PageById } from '../../engine/page.ts'
import { uuidv7At } from '../../engine/uuid.ts'
import { chunksOf, insertRows } from '../engine/rows.ts'

export const auditActs = {
  ...read({ listAudit }),
  /** Logs attempts that change nothing. Acts that change something insert their own entries. */
  ...write({ appendAudit: insertAudit }),
}

const COLUMNS =
  selectList(`id workspace_id environment_id at actor_kind actor_id actor_name action target_kind target_id
  detail request_id address`)

/** How much an entry's id may differ from its time: ids stay ahead after the clock was set back. */
const ID_LAG_MS = 60_000

export async function insertAudit(sql: Sql, entries: AuditEntry[]): Promise<void> {
  await insertRows(sql, 'audit_log', entries)
}

/** Details are erased because they have ids and texts of clients. */
const ERASE = `UPDATE audit_log SET detail = '{"erased":true}' WHERE environment_id = :env AND target_kind`

export async function eraseDetails(sql: Sql, environmentId: string, kind: string, targets: string[]): Promise<void> {
  const text = `${ERASE} = :kind AND target_id IN (:targets)`
  for (const chunk of chunksOf(targets)) await sql.run(text, { targets: chunk, env: environmentId, kind })
}

/** Erases decisions from the audit log for approvals of these runs, even if retention has removed the approvals. */
export async function eraseDecisionsOf(sql: Sql, environmentId: string, runIds: readonly string[]): Promise<void> {
  const runId = sql.dialect === 'postgres' ? "detail::jsonb ->> 'runId'" : "detail ->> 'runId'"
  const text = `${ERASE} = 'approval' AND ${runId} IN (:runIds)`
  for (const chunk of chunksOf(runIds)) await sql.run(text, { env: environmentId, runIds: chunk })
}

export async function eraseQuotes(sql: Sql, environmentId: string, quoted: string): Promise<void> {
  const text = `${ERASE} IN ('approval', 'run', 'run_view') AND ${contains(sql, 'detail', ':quoted')}`
  await sql.run(text, { env: environmentId, quoted: JSON.stringify(quoted) })
}

const CONDITIONS: Record<keyof AuditFilter, string> = {
  action: 'action = :action',
  actorId: 'actor_id = :actorId',
  targetKind: 'target_kind = :targetKind',
  targetId: 'target_id = :targetId',
  from: 'at >= :from',
  to: 'at < :to',
}

const ALL_CONDITIONS = [
  'workspace_id = :workspaceId',
  'id < :after',
  ...Object.values(CONDITIONS),
  'id >= :firstId',
  'id < :lastId',
]

/** Null: entries of every workspace and of the installation. */
function listAudit(sql: Sql, workspaceId: string | null, { limit, after }: PageById, filter: AuditFilter = {}) {
  const { from, to } = filter
  // Ids are ordered by time, so the scan starts and ends near the range.
  const firstId = from === undefined ? null : uuidv7At(from - ID_LAG_MS)
  const lastId = to === undefined ? null : uuidv7At(to + ID_LAG_MS)
  const params = { ...filter, workspaceId, after, firstId, lastId }
  const text = `SELECT ${COLUMNS} FROM audit_log WHERE ${conditionsGiven(ALL_CONDITIONS, params)} ORDER BY id DESC`
  return sql.page<AuditEntry>(text, params, limit)
}
