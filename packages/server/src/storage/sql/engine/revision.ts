import type { AuditEntry } from '../../people/operators.ts'
import { lookup, type Sql } from './sql.ts'
import { insertAudit } from '../people/audit.ts'

export const revisionActs = lookup({ controlRevision })

async function controlRevision(sql: Sql): Promise<number> {
  const row = await sql.get<{ revision: number }>('SELECT revision FROM control WHERE id = 1')
  return row?.revision ?? 0
}

/** Part of every change to a tenant, key or token: caches follow this revision. */
export async function growRevision(sql: Sql): Promise<void> {
  await sql.run('UPDATE control SET revision = revision + 1 WHERE id = 1')
}

export async function auditControl(sql: Sql, audit: AuditEntry[]): Promise<void> {
  await insertAudit(sql, audit)
  await growRevision(sql)
}

/** For control writes that must not overlap, also across processes. */
export async function lockControl(sql: Sql): Promise<void> {
  await sql.run('UPDATE control SET revision = revision WHERE id = 1')
}

/** Any number. It keeps these locks apart from those of removals (erased-keys.ts). */
const LOCK_SPACE = 7_222

/** Until the transaction ends. The embedded engine has one writer. */
export async function holdName(sql: Sql, name: string): Promise<void> {
  if (sql.dialect === 'sqlite') return
  await sql.get(`SELECT pg_advisory_xact_lock(hashtextextended(:name, ${LOCK_SPACE})) AS held`, { name })
}

/** In one order everywhere, and before any row. */
export async function holdFailures(sql: Sql, environmentId: string, runIds: Iterable<string>): Promise<void> {
  for (const runId of [...new Set(runIds)].toSorted()) await holdName(sql, `${environmentId} ${runId}`)
}
