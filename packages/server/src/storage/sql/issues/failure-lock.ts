import type { Sql } from '../sql.ts'

/** Any number. known-names.ts locks the same one, with other texts. */
const LOCK_SPACE = 7_222

/** Until the transaction ends. In one order everywhere, and before any row. The embedded engine has one writer. */
export async function holdFailures(sql: Sql, environmentId: string, runIds: Iterable<string>): Promise<void> {
  if (sql.dialect === 'sqlite') return
  const text = `SELECT pg_advisory_xact_lock(hashtextextended(:place, ${LOCK_SPACE})) AS held`
  for (const runId of [...new Set(runIds)].toSorted()) await sql.get(text, { place: `${environmentId} ${runId}` })
}
