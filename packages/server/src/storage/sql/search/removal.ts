import type { Sql } from '../sql.ts'

/**
 * Removes at most `most` events of a run from the index, and the run with its last one. A run has no more entries than
 * events, so removing its events in the same portions leaves none.
 */
export async function removeFromSearch(sql: Sql, environmentId: string, run: number, most: number): Promise<number> {
  const some = 'SELECT seq FROM search_entries WHERE environment_id = ? AND run = ? ORDER BY seq LIMIT ?'
  const text = `DELETE FROM search_entries WHERE environment_id = ? AND run = ? AND seq IN (${some})`
  const removed = await sql.run(text, [environmentId, run, environmentId, run, most])
  if (removed < most) {
    await sql.run('DELETE FROM search_runs WHERE environment_id = ? AND run = ?', [environmentId, run])
  }
  return removed
}
