import type { Sql } from './sql.ts'

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
