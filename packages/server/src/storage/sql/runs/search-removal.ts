import { chunksOf } from '../engine/chunks.ts'
import type { Sql } from '../engine/sql.ts'

/** Removes up to `most` entries. A run has at most one for each event, so it has none left when its events are gone. */
export async function removeFromSearch(sql: Sql, environmentId: string, run: number, most: number): Promise<number> {
  // In the order of the index that finds them: IN has a plan that reads the list again for each entry of the run.
  const key = sql.dialect === 'sqlite' ? 'place' : 'seq'
  const ofRun = 'search_entries WHERE environment_id = :env AND run = :run'
  const first = `SELECT ${key} FROM ${ofRun} ORDER BY ${key} LIMIT 1 OFFSET :most`
  const text = `DELETE FROM ${ofRun} AND ${key} < COALESCE((${first}), ${LARGEST})`
  const of = { env: environmentId, run }
  const removed = await sql.run(text, { ...of, most })
  if (removed < most) await sql.run('DELETE FROM search_runs WHERE environment_id = :env AND run = :run', of)
  return removed
}

const LARGEST = '9223372036854775807'

export async function removeRunsFromSearch(sql: Sql, environmentId: string, runs: readonly number[]): Promise<void> {
  for (const chunk of chunksOf(runs)) {
    const params = { env: environmentId, runs: chunk }
    await sql.run('DELETE FROM search_entries WHERE environment_id = :env AND run IN (:runs)', params)
    await sql.run('DELETE FROM search_runs WHERE environment_id = :env AND run IN (:runs)', params)
  }
}
