/** An append marks the runs it changes. A job indexes them later, so recording pays for one small row a run. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { StoredEvent } from '../../record/events.ts'
import { type SearchSettingsRow, type UnindexedRun, hashOf, termsOf } from '../../runs/search.ts'
import { lookup, write, type Sql, selectList } from '../engine/sql.ts'
import { ROW, rowsByArrival, WITH_RUN } from '../record/events.ts'
import { insertJsonRows, type InsertedTable, chunksOf, insertRows } from '../engine/rows.ts'
import { PAYLOAD, withPayloads } from '../record/payloads.ts'
import type { RunState } from '../record/run-state.ts'
import { OF_UUID } from './runs.ts'
import { HOUR_MS } from '../../engine/times.ts'
import type { AuditEntry } from '../../people/operators.ts'
import { insertAudit } from '../people/audit.ts'
import { lockEnvironment } from '../tenants/workspaces.ts'
import { enqueueWork, removeWork } from '../engine/work.ts'

export const searchIndexActs = {
  ...lookup({ readUnindexed }),
  ...write({ markOlderRuns, indexEvents, removeIndexed }),
}

const MARKED: InsertedTable = {
  name: 'search_runs AS s',
  columns: { run: 'bigint', id: 'uuid', indexed_seq: 'bigint', marks: 'bigint', marked_at: 'bigint' },
  conflict: `ON CONFLICT (environment_id, run) DO UPDATE SET marks = s.marks + 1,
    marked_at = COALESCE(s.marked_at, excluded.marked_at)`,
}

type Marked = Pick<RunState, 'number' | 'id'>

/** Marks runs in the order in which the job writes them, so that the two cannot deadlock. */
export function markRuns(sql: Sql, environmentId: string, runs: Iterable<Marked>, now: number): Promise<void> {
  const rows = Array.from(runs, ({ number, id }) => [number, id, 0, 1, now] as const)
  const inOrder = rows.toSorted(([a], [b]) => a - b)
  return insertJsonRows(sql, MARKED, environmentId, inOrder)
}

const MARKED_RUNS = 100

/** Null: search is off. */
async function markOlderRuns(sql: Sql, environmentId: string): Promise<SearchSettingsRow | null> {
  const settings = await readSearchSettings(sql, environmentId)
  if (settings?.state !== 'ON') return settings
  const { olderBefore, olderId, waitingRuns, changedAt } = settings
  if (olderBefore === null || waitingRuns >= MARKED_RUNS) return settings
  const runs = await sql.all<Marked & { startedAt: number }>(
    `SELECT number, id, started_at AS "startedAt" FROM runs
      WHERE environment_id = :env AND (started_at, id) < (:olderBefore, :olderId) ORDER BY started_at DESC, id DESC LIMIT :limit`,
    { env: environmentId, olderBefore, olderId, limit: MARKED_RUNS },
  )
  if (runs.length > 0) await markRuns(sql, environmentId, runs, changedAt)
  const last = runs.length === MARKED_RUNS ? runs.at(-1) : undefined
  const place = { olderBefore: last?.startedAt ?? null, olderId: last?.id ?? null }
  const text = 'UPDATE search_settings SET older_before = :olderBefore, older_id = :olderId WHERE environment_id = :env'
  await sql.run(text, { ...place, env: environmentId })
  return { ...settings, ...place, waitingRuns: waitingRuns + runs.length }
}

// Limits of a portion, so that it occupies the writer for only a few milliseconds.
const PORTION_RUNS = 50
const PORTION_EVENTS = 250
const PORTION_CHARS = 262_144
/** Rows read at once, so that few large payloads are in memory. */
const PAGE_ROWS = 25

async function readUnindexed(sql: Sql, environmentId: string): Promise<UnindexedRun[]> {
  const marked = await sql.all<Omit<UnindexedRun, 'isComplete' | 'events'>>(
    `SELECT run, id, marks, indexed_seq AS "indexedSeq" FROM search_runs
      WHERE environment_id = :env AND marked_at IS NOT NULL ORDER BY marked_at DESC, run DESC LIMIT :limit`,
    { env: environmentId, limit: PORTION_RUNS },
  )
  const portion: UnindexedRun[] = []
  let [events, chars] = [0, 0]
  for (const { run, id, marks, indexedSeq } of marked) {
    const one: UnindexedRun = { run, id, marks, indexedSeq, isComplete: false, events: [] }
    portion.push(one)
    while (!one.isComplete && events < PORTION_EVENTS && chars < PORTION_CHARS) {
      const rows = await unindexedEvents(sql, environmentId, one)
      for (const event of rows) {
        one.events.push({ seq: event.seq, time: event.time, words: hashesOf(sql, environmentId, event) })
        one.indexedSeq = event.seq
        chars += event.payload.length
      }
      events += rows.length
      one.isComplete = rows.length < PAGE_ROWS
    }
    if (!one.isComplete) break
  }
  return portion
}

async function unindexedEvents(sql: Sql, environmentId: string, { id, indexedSeq }: UnindexedRun) {
  const after = { time: 0, seq: indexedSeq }
  const { text, params } = rowsByArrival(sql, environmentId, id, { after }, PAGE_ROWS, `${ROW}, ${PAYLOAD}`)
  return withPayloads(sql, environmentId, await sql.all<StoredEvent>(`${WITH_RUN} ${text}`, params))
}

function hashesOf(sql: Sql, environmentId: string, event: StoredEvent): number[] {
  const seed = seedOf(sql, environmentId, event.time)
  return [...new Set(Array.from(termsOf(event), (term) => hashOf(term, seed)))]
}

async function indexEvents(sql: Sql, environmentId: string, runs: UnindexedRun[]): Promise<void> {
  if ((await sql.get(SEARCHED, { env: environmentId })) === null) return
  const unindexedRuns: UnindexedRun[] = []
  for (const run of runs.toSorted((a, b) => a.run - b.run)) {
    if (await holdRun(sql, environmentId, run)) unindexedRuns.push(run)
    // The run is deleted: nothing else would remove it from the index, and its mark delays older runs.
    else await removeFromSearch(sql, environmentId, run.run, REMOVED_ENTRIES)
  }
  const entries = unindexedRuns.flatMap(({ run, events }) => events.map((event) => ({ run, ...event })))
  // Sorted, because FTS5 flushes its buffer whenever a place is smaller than the one before.
  entries.sort((a, b) => a.time - b.time || a.seq - b.seq)
  if (sql.dialect === 'sqlite') for (const entry of entries) await insertPlace(sql, environmentId, entry)
  else await insertWords(sql, environmentId, entries)
  for (const { run, indexedSeq, marks, isComplete } of unindexedRuns) {
    const done = isComplete ? ', marked_at = CASE WHEN marks = :marks THEN NULL ELSE marked_at END' : ''
    const text = `UPDATE search_runs SET indexed_seq = :indexedSeq${done} WHERE environment_id = :env AND run = :run`
    await sql.run(text, { indexedSeq, ...(isComplete && { marks }), env: environmentId, run })
  }
  const text = 'UPDATE search_settings SET indexed_events = indexed_events + :events WHERE environment_id = :env'
  await sql.run(text, { events: entries.length, env: environmentId })
}

/** False if the run was deleted since its events were read. It cannot be deleted before the transaction ends. */
async function holdRun(sql: Sql, environmentId: string, { run, id }: UnindexedRun): Promise<boolean> {
  const lock = sql.dialect === 'sqlite' ? '' : ' FOR KEY SHARE'
  const text = `SELECT number FROM runs WHERE environment_id = :env AND ${OF_UUID}${lock}`
  const runNumber = await sql.get<{ number: number }>(text, { env: environmentId, run: id })
  return runNumber?.number === run
}

type Entry = UnindexedRun['events'][number] & Pick<UnindexedRun, 'run'>

async function insertPlace(sql: Sql, environmentId: string, { run, seq, time, words }: Entry): Promise<void> {
  const text = `INSERT INTO search_entries (place, environment_id, run, seq) VALUES (${placeFrom('time', 'tie')}, :env, :run, :seq)
    ON CONFLICT (place) DO NOTHING`
  // Another event of that millisecond may have the same lowest bits: take the next free ones.
  let tie = seq
  while ((await sql.run(text, { time, tie, env: environmentId, run, seq })) === 0) tie++
  const add = `INSERT INTO search_words (rowid, words) VALUES (${placeFrom('time', 'tie')}, :words)`
  await sql.run(add, { time, tie, words: words.map(wordOf).join(' ') })
}

const ENTRIES: InsertedTable = {
  name: 'search_entries',
  columns: { run: 'bigint', seq: 'bigint', time: 'bigint', words: 'integer[]' },
  conflict: 'ON CONFLICT DO NOTHING',
}

async function insertWords(sql: Sql, environmentId: string, entries: Entry[]): Promise<void> {
  const rows = entries.map(({ run, seq, time, words }) => [run, seq, time, `{${words.join(',')}}`] as const)
  if (rows.length > 0) await insertJsonRows(sql, ENTRIES, environmentId, rows)
}

const REMOVED_RUNS = 50
const REMOVED_ENTRIES = 1_000

/** Removes a bounded part. False: nothing is left, and the settings are deleted too. */
async function removeIndexed(sql: Sql, environmentId: string): Promise<boolean> {
  const runs = await sql.all<{ run: number }>(
    'SELECT run FROM search_runs WHERE environment_id = :env ORDER BY run LIMIT :limit',
    { env: environmentId, limit: REMOVED_RUNS },
  )
  let left = REMOVED_ENTRIES
  for (const { run } of runs) {
    left -= await removeFromSearch(sql, environmentId, run, left)
    if (left === 0) return true
  }
  if (runs.length === REMOVED_RUNS) return true
  await sql.run('DELETE FROM search_settings WHERE environment_id = :env', { env: environmentId })
  await endWork(sql, environmentId)
  return false
}

/**
 * On PostgreSQL, words hash differently each hour, because it finds and sorts all matches of an hour. SQLite finds
 * matches in order of time.
 */
export function seedOf({ dialect }: Pick<Sql, 'dialect'>, environmentId: string, time: number): number {
  return hashOf(dialect === 'sqlite' ? environmentId : `${environmentId} ${Math.floor(time / HOUR_MS)}`)
}

export const wordOf = (hash: number): string => (hash >>> 0).toString(36)

/** In SQLite, the place of an event is its time, and in the lowest bits a part of its seq. */
export const TIES = 2_097_152
/** Takes names of parameters. The result exceeds the exact integers of JavaScript. */
export const placeFrom = (time: string, seq: string): string =>
  `CAST(:${time} AS INTEGER) * ${TIES} + CAST(:${seq} AS INTEGER) % ${TIES}`

/** Removes up to `most` entries. A run has at most one for each event, so none remain when its events are deleted. */
export async function removeFromSearch(sql: Sql, environmentId: string, run: number, most: number): Promise<number> {
  // A range in index order: with IN, a plan may read the list again for each entry of the run.
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

/**
 *   (no row) --switched on--> ON --switched off--> REMOVING --index deleted--> (no row)
 */

export const searchSettingsActs = {
  ...lookup({ readSearchSettings }),
  ...write({ switchSearch, failIndexing }),
}

/**
 * On PostgreSQL, older runs are marked only after this time. A transaction that began before the switch does not mark
 * its runs, and has ended by then.
 */
const SETTLE_MS = { sqlite: 0, postgres: 10_000 }

export const SEARCHED = "SELECT 1 AS found FROM search_settings WHERE environment_id = :env AND state = 'ON'"

/** Clocks of clients may be ahead, but by less than this. */
const AHEAD_MS = 3_600_000
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

const COLUMNS = selectList('state changed_at older_before older_id indexed_events error')

async function readSearchSettings(sql: Sql, environmentId: string): Promise<SearchSettingsRow | null> {
  const row = await sql.get<Omit<SearchSettingsRow, 'waitingRuns' | 'waitingSince'>>(
    `SELECT ${COLUMNS} FROM search_settings WHERE environment_id = :env`,
    { env: environmentId },
  )
  if (row === null) return null
  const waiting = await sql.get<{ runs: number; since: number | null }>(
    `SELECT COUNT(*) AS runs, MIN(marked_at) AS since FROM (SELECT marked_at FROM search_runs
      WHERE environment_id = :env AND marked_at IS NOT NULL ORDER BY marked_at LIMIT :limit) AS marked`,
    { env: environmentId, limit: LIMITS.searchRunsCounted },
  )
  return { ...row, waitingRuns: waiting?.runs ?? 0, waitingSince: waiting?.since ?? null }
}

/** `removing`: its old index is not deleted yet. */
async function switchSearch(
  sql: Sql,
  environmentId: string,
  enabled: boolean,
  now: number,
  audit: AuditEntry[],
): Promise<'switched' | 'unchanged' | 'removing'> {
  await lockEnvironment(sql, environmentId)
  const row = await readSearchSettings(sql, environmentId)
  const isOn = row?.state === 'ON'
  if (isOn === enabled) return 'unchanged'
  if (enabled && row !== null) return 'removing'
  if (enabled) {
    const older = { olderBefore: now + AHEAD_MS, olderId: LAST_ID }
    await insertRows(sql, 'search_settings', [
      { environmentId, state: 'ON', changedAt: now, ...older, indexedEvents: 0 },
    ])
  } else {
    const text = `UPDATE search_settings SET state = 'REMOVING', changed_at = :now, error = NULL
      WHERE environment_id = :env`
    await sql.run(text, { now, env: environmentId })
  }
  await insertAudit(sql, audit)
  const dueAt = enabled ? now + SETTLE_MS[sql.dialect] : now
  await enqueueWork(sql, [{ kind: 'index_search', environmentId, subjectId: environmentId, dueAt }])
  return 'switched'
}

async function failIndexing(sql: Sql, environmentId: string, error: string): Promise<void> {
  await sql.run('UPDATE search_settings SET error = :error WHERE environment_id = :env', { error, env: environmentId })
  await endWork(sql, environmentId)
}

function endWork(sql: Sql, environmentId: string): Promise<void> {
  return removeWork(sql, { kind: 'index_search', environmentId, subjectId: environmentId })
}
