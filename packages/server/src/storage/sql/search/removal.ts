import { chunksOf, PLACES } from '../chunks.ts'
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

/** Removes all that the index has of runs. */
export async function removeRunsFromSearch(sql: Sql, environmentId: string, runs: readonly number[]): Promise<void> {
  for (const chunk of chunksOf(runs.map(String))) {
    const params = [environmentId, ...chunk.map(Number)]
    await sql.run(`DELETE FROM search_entries WHERE environment_id = ? AND run IN (${PLACES})`, params)
    await sql.run(`DELETE FROM search_runs WHERE environment_id = ? AND run IN (${PLACES})`, params)
  }
}
