import type { RunState } from '../record/run-state.ts'
import { eventEnvironment } from '../record/events.ts'
import { deleteBlocks, REMOVE_PAYLOAD, SAYS_SOMETHING } from '../record/payloads.ts'
import { dropComments } from '../runs/scores.ts'
import { removeFromSearch } from '../runs/search-removal.ts'
import { markRuns } from '../runs/search-index.ts'
import { SEARCHED } from '../runs/search-settings.ts'
import type { Sql } from '../engine/sql.ts'

type Target = Pick<RunState, 'id' | 'number'>

/** Takes a run out of the search and marks it. False: not all of it is out. */
export async function indexAgain(sql: Sql, environmentId: string, run: Target, most: number, now: number) {
  if ((await removeFromSearch(sql, environmentId, run.number, most)) === most) return false
  await markIfSearched(sql, environmentId, run, now)
  return true
}

async function markIfSearched(sql: Sql, environmentId: string, run: Target, now: number): Promise<void> {
  if ((await sql.get(SEARCHED, { env: environmentId })) !== null) await markRuns(sql, environmentId, [run], now)
}

/** Drops payloads of at most `most` events. The words of their labels are indexed again afterwards. */
export async function dropPayloads(sql: Sql, environmentId: string, { id, number }: Target, most: number, now: number) {
  const entries = await removeFromSearch(sql, environmentId, number, most)
  const key = sql.dialect === 'sqlite' ? 'seq' : 'event_id'
  const due = `SELECT ${key} FROM events e WHERE environment_id = ${eventEnvironment(sql)} AND run = :number
    AND ${SAYS_SOMETHING} ORDER BY time, seq LIMIT :most`
  const text = `UPDATE events SET ${REMOVE_PAYLOAD[sql.dialect]}
    WHERE environment_id = ${eventEnvironment(sql)} AND run = :number AND ${key} IN (${due})`
  const events = await sql.run(text, { env: environmentId, number, most })
  const isWhole = events < most && entries < most && (await deleteBlocks(sql, environmentId, number))
  // The number of blocks stops a process that packs the removed payloads.
  const removed = isWhole ? ', payloads_removed = event_count' : ''
  const changed = `UPDATE runs SET blocks = blocks + 1, failure_message = NULL, said = NULL${removed}
    WHERE environment_id = :env AND id = :id`
  await sql.run(changed, { env: environmentId, id })
  if (isWhole) await dropComments(sql, environmentId, id)
  if (isWhole) await markIfSearched(sql, environmentId, { id, number }, now)
  return { events, isWhole }
}
