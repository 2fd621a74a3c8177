import type { Sql } from '../sql.ts'

/** Any number. It keeps these locks apart from others in the same database. */
const LOCK_SPACE = 7_222

/**
 * Keeps others from counting failures of these runs until the transaction ends, on PostgreSQL. The embedded engine has one
 * writer. In one order everywhere, and before any row.
 */
export async function holdFailures(sql: Sql, environmentId: string, runIds: Iterable<string>): Promise<void> {
  if (sql.dialect === 'sqlite') return
  const text = `SELECT pg_advisory_xact_lock(hashtextextended(?, ${LOCK_SPACE})) AS held`
  for (const runId of [...new Set(runIds)].toSorted()) await sql.get(text, [`${environmentId} ${runId}`])
}
