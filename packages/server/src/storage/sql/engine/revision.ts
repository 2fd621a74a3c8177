import type { AuditEntry } from '../../people/audit.ts'
import { look } from './act.ts'
import { insertAudit } from '../people/audit.ts'
import type { Sql } from './sql.ts'

export const revisionActs = look({ controlRevision })

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
