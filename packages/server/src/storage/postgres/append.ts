/**
 * Appends on PostgreSQL in two round trips. The first opens and locks the runs and finds stored events. The second
 * copies the new events, writes all resulting changes, and commits. Retries take a third, to be compared.
 *
 * Only the transaction that holds a run's row writes its events. So a run's smaller seq is never committed after a
 * larger one.
 */
import { LRUCache } from 'lru-cache'
import pg, { type PoolClient } from 'pg'
import type { AppendEngine } from '../sql/record/append.ts'
import type { AppendTransaction } from '../sql/record/append-steps.ts'
import { entryBytes, ownText } from '../sql/record/known-rows.ts'
import { withEnvelope, type TakeNumbers } from '../sql/record/envelopes.ts'
import { removalLock } from '../sql/data/erased-keys.ts'
import {
  COMPARED,
  comparedValues,
  columnValues,
  RUN_COLUMNS,
  stateOf,
  STORED_RUN,
  type StoredRun,
} from '../sql/record/stored-columns.ts'
import {
  fieldOf,
  insertedJsonRows,
  insertJsonRows,
  rowsParameter,
  type Columns,
  type InsertedTable,
  type Row,
} from '../sql/engine/rows.ts'
import { comparePacked, PACKED, unlessPacked, type Compared } from '../sql/record/payloads.ts'
import { addEvent, nameSession, noteGaps, openedRun, type RunState } from '../sql/record/run-state.ts'
import type { NewEvent } from '../record/events.ts'
import { StorageError } from '../engine/store.ts'
import type { AtCommit, Connections, Pipeline } from './connections.ts'
import { isDataError, isRace, isTaken, storageError } from './errors.ts'
import { encodeEvents, type EventCopy } from './event-copy.ts'
import { postgresSql, statement } from './sql.ts'

/** An agent's unchanged name gets a new time only after this interval, because its row is hot. */
const AGENT_REFRESH_MS = 1_000
/** Each concurrent transaction has separate rollup rows. */
export const WRITERS_PER_NODE = 64
const CACHE_BYTES = 8 * 1_048_576

/** Runs count their seqs here: on SQLite, the store does. */
const COLUMNS: Columns = {
  ...Object.fromEntries(RUN_COLUMNS.map(([, column, type]) => [column, type])),
  last_seq: 'bigint',
  session_key: 'text',
  session_id: 'text',
}
const CHANGED = [...RUN_COLUMNS.flatMap(([, column, , change]) => (change === 'never' ? [] : [column])), 'last_seq']

/** UPDATE ... FROM would be a join, which the planner may run as a read of all runs of a tenant. */
export const CHANGE_RUNS: InsertedTable = {
  name: 'runs AS r',
  columns: COLUMNS,
  conflict: `ON CONFLICT (environment_id, run_id) DO UPDATE SET
    ${CHANGED.map((column) => `${column} = excluded.${column}`).join(', ')},
    session_key = COALESCE(r.session_key, excluded.session_key), session_id = COALESCE(r.session_id, excluded.session_id)`,
}
const OPEN_RUNS: InsertedTable = {
  name: 'runs',
  columns: COLUMNS,
  conflict: 'ON CONFLICT (environment_id, run_id) DO NOTHING RETURNING number',
}

/** Only this key's index has this order. With equality, the planner may scan another index of the tenant. */
const oneOf = (key: string, value: string) => `${key} >= ${value} AND ${key} <= ${value} ORDER BY ${key} LIMIT 1`
const runOf = (selected: string, runId: string) =>
  `(SELECT ${selected} FROM runs WHERE environment_id = $1 AND ${oneOf('run_id', runId)}`
const eventOf = (selected: string, run: string, eventId: string) =>
  `(SELECT ${selected} FROM events AS e WHERE e.environment_id = $1 AND e.run = ${run} AND ${oneOf('e.event_id', eventId)})`

/**
 * `$2`: runs, the number each gets if this transaction opens it, and event ids. Runs are locked in that order. Each
 * comes with those of its ids that are stored, as of the statement's start: if another transaction stored some while
 * this one waited for a lock, the copy violates the primary key, and the transaction starts again.
 */
const LOCK_RUNS = statement(`SELECT r.*, s.stored FROM jsonb_array_elements($2::jsonb) AS x,
  LATERAL ${runOf(`${STORED_RUN}, last_seq AS "lastSeq"`, 'x->>0')} FOR NO KEY UPDATE) AS r,
  LATERAL (SELECT array_agg(e.event_id) AS stored
    FROM jsonb_array_elements_text(CASE WHEN r.number = (x->>1)::bigint THEN '[]' ELSE x->2 END) AS wanted (event_id),
    LATERAL ${eventOf('e.event_id', 'r.number', 'wanted.event_id')} AS e) AS s`)

const SAME = COMPARED.map((column, index) => {
  const field = fieldOf(column === 'e.time' ? 'bigint' : 'text', index + 2)
  return unlessPacked(column, `${column} IS NOT DISTINCT FROM ${field}`)
})
const COMPARE = statement(`SELECT n - 1 AS index, ${SAME.join(' AND ')} AS "isSame", ${PACKED}
  FROM jsonb_array_elements($2::jsonb) WITH ORDINALITY AS rows (x, n),
  LATERAL ${eventOf('*', '(x->>0)::bigint', 'x->>1')} AS e
  ${withEnvelope({ dialect: 'postgres' }, '$1')}`)

/** The step of the sequence: a node takes this many numbers at once. */
const NUMBERS_TAKEN = 1_000
const TAKE_NUMBERS = statement("SELECT nextval('numbers') AS first")

export interface BatchConnection {
  pipeline: Pipeline
  onSent(): void
}

export function postgresAppendEngine(connections: Connections, nodeSlot: () => number): AppendEngine<BatchConnection> {
  const writers = new Set<number>()
  /** They need no insert, which saves work when runs send many small batches. */
  const knownRuns: KnownRuns = new LRUCache({
    maxSize: CACHE_BYTES,
    sizeCalculation: (_, place) => entryBytes(place.length),
  })
  const takeNumbers = numberTaker()

  return {
    agentRefreshMs: AGENT_REFRESH_MS,
    isRace: (error) => isTaken(error) || isRace(error instanceof StorageError ? error.cause : error),
    isDataError,
    storageError,
    async transaction(batches, end, work, on = { pipeline: connections.pipeline(), onSent: () => undefined }) {
      const copies = new Map<string, EventCopy>()
      for (const [environmentId, some] of Map.groupBy(batches, (batch) => batch.environmentId)) {
        copies.set(environmentId, encodeEvents(environmentId, some))
      }
      let writer = 0
      while (writers.has(writer)) writer++
      writers.add(writer)
      const slot = nodeSlot() * WRITERS_PER_NODE + writer
      try {
        return await on.pipeline.transaction(
          (client, atCommit) => {
            const taking: TakeNumbers = (count) => takeNumbers(client, count)
            return work({ ...operations(client, copies, knownRuns, taking, atCommit), slot, atCommit })
          },
          end,
          on.onSent,
          beginning([...copies.keys()]),
        )
      } finally {
        writers.delete(writer)
      }
    },
  }
}

/** One message, because each costs both sides more than the lock. */
function beginning(environmentIds: string[]): string {
  return ['BEGIN', ...environmentIds.map((id) => removalLock(pg.escapeLiteral(id)))].join('; ')
}

function numberTaker() {
  let [next, end] = [0, 0]
  return async (client: PoolClient, count: number): Promise<number[]> => {
    const taken: number[] = []
    while (taken.length < count) {
      if (next === end) {
        const { rows } = await client.query<{ first: number }>(TAKE_NUMBERS)
        next = rows[0]?.first ?? 0
        end = next + NUMBERS_TAKEN
      }
      taken.push(next++)
    }
    return taken
  }
}

function operations(
  client: PoolClient,
  copies: ReadonlyMap<string, EventCopy>,
  knownRuns: KnownRuns,
  takeNumbers: TakeNumbers,
  atCommit: AtCommit,
) {
  const sql = postgresSql(client)
  let stored = new Set<string>()
  const opened = new Map<string, RunState>()

  const openRuns: AppendTransaction['openRuns'] = async (environmentId, wanted) => {
    const placeOf = (runId: string) => `${environmentId} ${runId}`
    const unknown = wanted.flatMap(({ runId, opening, events }) =>
      opening === null || opened.has(placeOf(runId)) || knownRuns.get(placeOf(runId)) ? [] : { runId, opening, events },
    )
    const numbers = await takeNumbers(unknown.length)
    const added = unknown.map(({ runId, opening, events }, index) => {
      const run = openedRun(numbers[index] ?? 0, runId, opening)
      opened.set(placeOf(runId), run)
      return { run, row: rowWith(run, events) }
    })
    if (added.length > 0) {
      const rows = added.map(({ row }) => row)
      const adding = insertedJsonRows(sql, OPEN_RUNS, environmentId, rows)
      // The insert locks new runs, and they have no events.
      if (added.length === wanted.length && (await adding).length === added.length) {
        return new Map(added.map(({ run }) => [run.runId, run]))
      }
      atCommit(adding)
    }
    const looked = wanted.map(({ runId, events }) => {
      return [runId, opened.get(placeOf(runId))?.number ?? null, events.map(({ eventId }) => eventId)]
    })
    const values = [environmentId, JSON.stringify(looked)]
    const { rows } = await client.query<LockedRun>({ ...LOCK_RUNS, values })
    const storedRuns = new Set(rows.map(({ runId }) => runId))
    const missing = wanted.filter(({ runId, opening }) => opening !== null && !storedRuns.has(runId))
    if (missing.length > 0) {
      if (missing.some(({ runId }) => opened.has(placeOf(runId)))) throw new Error('An opened run is missing')
      knownRuns.clear()
      return openRuns(environmentId, wanted)
    }
    stored = new Set(rows.flatMap(({ runId, stored: ids }) => (ids ?? []).map((eventId) => keyOf({ runId, eventId }))))
    return new Map(
      rows.map(({ stored: _, ...row }) => {
        const run = opened.get(placeOf(row.runId))
        if (run?.number === row.number) return [row.runId, run]
        knownRuns.set(ownText(placeOf(row.runId)), true)
        return [row.runId, stateOf(row, row.lastSeq)]
      }),
    )
  }

  const insertEvents: AppendTransaction['insertEvents'] = async (environmentId, events) => {
    const copy = copies.get(environmentId)
    const last = new Map<RunState, number>()
    const seqs = events.map((placed) => {
      const { run, event } = placed
      if (stored.size > 0 && stored.has(keyOf(event))) return null
      const seq = (last.get(run) ?? run.lastSeq - run.openedEvents) + 1
      last.set(run, seq)
      copy?.add(placed, seq)
      nameSession(run, event)
      return seq
    })
    if (copy && last.size > 0) atCommit(copy.send(client))
    return seqs
  }

  const compareEvents: AppendTransaction['compareEvents'] = async (environmentId, events) => {
    const rows = events.map((sought) => [sought.run.number, sought.event.eventId, ...comparedValues(sought)])
    const values = [environmentId, rowsParameter(sql, rows)]
    const { rows: comparedRows } = await client.query<Compared & { index: number }>({ ...COMPARE, values })
    const byIndex = new Map(comparedRows.map((row) => [row.index, row]))
    const compared = events.map((_, index) => byIndex.get(index) ?? null)
    const payloads = events.map(({ event }) => event.payload)
    return comparePacked(sql, environmentId, compared, payloads)
  }

  const changeRuns: AppendTransaction['changeRuns'] = async (environmentId, runs) => {
    // A new run was opened with the totals of all its events. Differing retries and rejections are added later.
    const isLater = ({ isNew, differingRetries, recorders }: RunState) =>
      !isNew || differingRetries > 0 || recorders.some(({ rejected }) => rejected > 0)
    const rows = runs.filter(isLater).map(runRow)
    if (rows.length > 0) await insertJsonRows(sql, CHANGE_RUNS, environmentId, rows)
  }

  return { sql, takeNumbers, forgetRuns: () => knownRuns.clear(), openRuns, insertEvents, compareEvents, changeRuns }
}

type KnownRuns = LRUCache<string, true>
type LockedRun = StoredRun & { lastSeq: number; stored: string[] | null }

/** Ids never contain NUL, so it can separate two. */
const keyOf = ({ runId, eventId }: Pick<NewEvent, 'runId' | 'eventId'>): string => `${runId}\0${eventId}`

/** All events of a new run are new too, so they are counted here. */
function rowWith(run: RunState, events: readonly NewEvent[]): Row {
  events.forEach((event, index) => addEvent(run, index + 1, event))
  run.openedEvents = events.length
  noteGaps(run)
  return runRow(run)
}

export function runRow(run: RunState): Row {
  const values = columnValues(run)
  return [...RUN_COLUMNS.map(([name]) => values[name]), run.lastSeq, values.sessionKey, run.namedSession]
}
