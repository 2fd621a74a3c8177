/**
 * Removes runs for erasures, retention and the deletion of environments.
 *
 *   stored --removeRuns--> removed: no reader finds it --deleteEvents, in slices--> (none)
 *
 * Readers find events only by their run, so a removed run of any size is invisible at once.
 */
import type { SimulationResult } from '@tacho/contract/policies/simulation.ts'
import type { CountedEvents } from '../../data/erasures.ts'
import type { RunState } from '../record/run-state.ts'
import { eraseDetails } from '../people/audit.ts'
import { chunksOf, insertRows } from '../engine/rows.ts'
import { addErasedKeys, erasedKey, FOR_EVER, HELD, holdEnvironment } from './erased-keys.ts'
import { removeRecords, type RemovedRecords } from './erased-records.ts'
import {
  countForAgent,
  countRun,
  countVersionCall,
  noCounts,
  slotOf,
  usedNames,
  writeCounts,
  takeFormer,
} from '../runs/usage-counts.ts'
import { knownNames } from '../runs/known-names.ts'
import { deleteBlocks } from '../record/payloads.ts'
import { runsByNumber } from '../engine/revision.ts'
import { removeScores } from '../runs/scores.ts'
import { removeFromSearch, removeRunsFromSearch } from '../runs/search-index.ts'
import { selectList, type Sql, eventEnvironment } from '../engine/sql.ts'

export interface Removal {
  environmentId: string
  /**
   * Null: not an erasure, so later events of the runs are accepted, and issue records stay. The caller has locked the
   * runs.
   */
  erasureId: string | null
  /** The removed runs accept no more events, even if their agents continue. */
  isForEver?: boolean
  now: number
  /** Counts to subtract from usage, by the number of the run. Runs that are missing here keep their usage. */
  counted: ReadonlyMap<number, CountedEvents>
}

export interface RunRemoval extends RemovedRecords {
  runs: RemovedRun[]
  events: number
}

type Kept = 'id' | 'number' | 'runId' | 'agentId' | 'status' | 'startedAt' | 'lastEventAt'
type RemovedRun = Pick<RunState, Kept> & { events: number }

const RUN = `${selectList('id number run_id agent_id status started_at last_event_at')}, event_count AS events`

/**
 * A run that got events after it was counted is not removed yet. An erasure then refuses further events of it:
 * otherwise an agent that keeps sending would prevent its removal forever.
 */
export async function removeRuns(
  sql: Sql,
  { environmentId, erasureId, isForEver = false, now, counted }: Removal,
  numbers: readonly number[],
): Promise<RunRemoval> {
  if (erasureId !== null) await holdEnvironment(sql, environmentId)
  const removedRuns = await runsByNumber<RemovedRun>(sql, environmentId, numbers, RUN)
  const complete = removedRuns.filter(({ number, events }) => (counted.get(number)?.runEvents ?? events) === events)
  // In a damaged store, these counts may differ from those in the run's row.
  const runs = complete.map((run) => ({ ...run, events: counted.get(run.number)?.events ?? run.events }))
  const rows = runs.map(({ id, number, events }) => ({ environmentId, number, id, erasureId, events, removedAt: now }))
  await insertRows(sql, 'removed_runs', rows)
  // Process runs one by one: for a list, PostgreSQL may read all rows of the environment.
  for (const text of [
    'DELETE FROM runs WHERE environment_id = :env AND id = :id',
    'DELETE FROM version_runs WHERE environment_id = :env AND run = :id',
  ]) {
    await Promise.all(runs.map(({ id }) => sql.run(text, { env: environmentId, id })))
  }
  await Promise.all(runs.map(({ id }) => removeScores(sql, environmentId, id)))
  // '0' is the character after '/', so this range has all subjects that begin with `id/`.
  const work = `DELETE FROM work
    WHERE environment_id = :env AND kind = :kind AND subject_id > :first AND subject_id < :last`
  for (const kind of ['find_failures', 'derive_decisions'])
    for (const { id } of runs) await sql.run(work, { env: environmentId, kind, first: `${id}/`, last: `${id}0` })
  await takeOut(sql, environmentId, runs, counted)
  await removeSimulations(sql, environmentId, runs)
  if (erasureId !== null) {
    const keys = runs.map(({ runId, lastEventAt }) => {
      return { key: erasedKey('run', runId), until: isForEver ? FOR_EVER : Math.max(now, lastEventAt) }
    })
    const grown = removedRuns.filter((run) => !complete.includes(run))
    const held = grown.map(({ runId }) => ({ key: erasedKey('run', runId), until: HELD }))
    await addErasedKeys(sql, environmentId, [...keys, ...held])
    const ids = runs.map(({ id }) => id)
    await eraseDetails(sql, environmentId, 'run', ids)
  }
  const names = erasureId === null ? [] : runs.map(({ runId }) => runId)
  const records = await removeRecords(sql, environmentId, 'run', names)
  return { ...records, runs, events: runs.reduce((sum, { events }) => sum + events, 0) }
}

async function takeOut(
  sql: Sql,
  environmentId: string,
  runs: readonly RemovedRun[],
  counted: ReadonlyMap<number, CountedEvents>,
): Promise<void> {
  const counts = noCounts()
  for (const run of runs) {
    const countedRun = counted.get(run.number)
    if (countedRun === undefined) continue
    const isOfAgent = (time: number) => countedRun.agentFrom === null || time >= countedRun.agentFrom
    if (isOfAgent(run.startedAt)) countRun(counts, run, -1)
    for (const { times, ...event } of countedRun.usage) {
      if (isOfAgent(event.time)) countForAgent(counts, run.agentId, event, -times)
      countVersionCall(counts, event, -times)
    }
  }
  const keys = await knownNames().bucketsOf(sql, environmentId, usedNames(counts))
  await takeFormer(sql, environmentId, counts, keys)
  await Promise.all(writeCounts(sql, environmentId, counts, keys, slotOf(sql, 'removal')))
}

/** Deletes up to about `limit` events. `erasureId` null: of runs that no erasure removed. */
export async function deleteEvents(
  sql: Sql,
  environmentId: string,
  which: { erasureId: string | null } | 'all',
  limit: number,
): Promise<{ events: number; runsLeft: boolean }> {
  const erasureId = which === 'all' ? null : which.erasureId
  const of = which === 'all' ? '' : erasureId === null ? ' AND erasure_id IS NULL' : ' AND erasure_id = :erasureId'
  const text = `SELECT number, events FROM removed_runs WHERE environment_id = :env${of} ORDER BY number LIMIT :limit`
  const params = { env: environmentId, erasureId, limit: RUNS_AT_ONCE + 1 }
  const eventCounts = await sql.all<{ number: number; events: number }>(text, params)
  let left = limit
  const whole: number[] = []
  for (const { number, events } of eventCounts.slice(0, RUNS_AT_ONCE)) {
    if (events > left) break
    left -= events
    whole.push(number)
  }
  const [first] = eventCounts
  if (whole.length === 0 && first) {
    await removeFromSearch(sql, environmentId, first.number, limit)
    const events = await deleteSome(sql, environmentId, first.number, limit)
    const isWhole = events < limit && (await deleteBlocks(sql, environmentId, first.number))
    if (isWhole) await forget(sql, environmentId, [first.number])
    else {
      const fewer = 'UPDATE removed_runs SET events = events - :events WHERE environment_id = :env AND number = :number'
      await sql.run(fewer, { events, env: environmentId, number: first.number })
    }
    return { events, runsLeft: !isWhole || eventCounts.length > 1 }
  }
  await removeRunsFromSearch(sql, environmentId, whole)
  let events = 0
  const remove = `DELETE FROM events WHERE environment_id = ${eventEnvironment(sql)} AND run IN (:runs)`
  for (const chunk of chunksOf(whole)) events += await sql.run(remove, { env: environmentId, runs: chunk })
  await forget(sql, environmentId, whole)
  return { events, runsLeft: eventCounts.length > whole.length }
}

const RUNS_AT_ONCE = 500

async function removeSimulations(sql: Sql, environmentId: string, runs: readonly RemovedRun[]): Promise<void> {
  const text = 'SELECT id, result FROM simulations WHERE environment_id = :env AND result IS NOT NULL'
  const removed = new Set(runs.map(({ id }) => id))
  for (const { id, result } of await sql.all<{ id: string; result: string }>(text, { env: environmentId })) {
    const { hitRuns } = JSON.parse(result) as Pick<SimulationResult, 'hitRuns'>
    if (!hitRuns.some((run) => removed.has(run.id))) continue
    await sql.run('DELETE FROM simulations WHERE environment_id = :env AND id = :id', { env: environmentId, id })
  }
}

async function forget(sql: Sql, environmentId: string, numbers: readonly number[]): Promise<void> {
  for (const chunk of chunksOf(numbers)) {
    const params = { env: environmentId, numbers: chunk }
    await sql.run('DELETE FROM payload_blocks WHERE environment_id = :env AND run IN (:numbers)', params)
    await sql.run('DELETE FROM removed_runs WHERE environment_id = :env AND number IN (:numbers)', params)
  }
}

async function deleteSome(sql: Sql, environmentId: string, number: number, limit: number): Promise<number> {
  const ofRun = `environment_id = ${eventEnvironment(sql)} AND run = :number`
  const of = { env: environmentId, number }
  const last = await sql.get<{ eventId: string }>(
    `SELECT event_id AS "eventId" FROM events WHERE ${ofRun} ORDER BY event_id LIMIT 1 OFFSET :past`,
    { ...of, past: limit - 1 },
  )
  const text = `DELETE FROM events WHERE ${ofRun}`
  if (last === null) return sql.run(text, of)
  return sql.run(`${text} AND event_id <= :eventId`, { ...of, ...last })
}
