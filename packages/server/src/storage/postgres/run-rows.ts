/**
 * Rows of runs in PostgreSQL, and the copies that a node remembers.
 *
 *   locked --its xmin is that of the last write here--> known: nothing more is read
 *      `----any other--------------------------------> read, with all of its columns
 *
 * A row's `xmin` is the transaction that wrote it, and only a holder of the row's lock writes it. So a remembered run
 * equals its row as long as the row's xmin is the transaction of this node's last write. After a rollback, the xmin is
 * an older one. A reconnect forgets all runs, because another server may assign the same transaction numbers again. On
 * Citus, the numbers are those of other machines, so nothing is remembered.
 */
import { LRUCache } from 'lru-cache'
import { columnValues, RUN_COLUMNS, STORED_RUN, type StoredRun } from '../sql/record/stored-columns.ts'
import { arrayParameter, type Columns, type InsertedTable, type Row } from '../sql/engine/rows.ts'
import { ownText } from '../sql/record/known-rows.ts'
import { cachedRunBytes, UNCHANGED, type RunState } from '../sql/record/run-state.ts'
import { statement } from './sql.ts'

/** On PostgreSQL, runs count their own seqs; on SQLite, the store does. */
const COLUMNS: Columns = {
  ...Object.fromEntries(RUN_COLUMNS.map(([, column, type]) => [column, type])),
  last_seq: 'bigint',
  session_key: 'text',
  session_id: 'text',
}
const CHANGED = [...RUN_COLUMNS.flatMap(([, column, , change]) => (change === 'never' ? [] : [column])), 'last_seq']

/** An upsert, because UPDATE ... FROM is a join: the planner may run it by reading all runs of a tenant. */
export const CHANGE_RUNS: InsertedTable = {
  name: 'runs AS r',
  columns: COLUMNS,
  conflict: `ON CONFLICT (environment_id, run_id) DO UPDATE SET
    ${CHANGED.map((column) => `${column} = excluded.${column}`).join(', ')},
    session_key = COALESCE(r.session_key, excluded.session_key), session_id = COALESCE(r.session_id, excluded.session_id)`,
}
export const OPEN_RUNS: InsertedTable = {
  name: 'runs',
  columns: COLUMNS,
  conflict: 'ON CONFLICT (environment_id, run_id) DO NOTHING RETURNING number',
}

/**
 * Finds one key by a range with an order. For an equality, the planner might scan another index of the tenant; only this
 * key's index has this order.
 */
const oneOf = (key: string, value: string) => `${key} >= ${value} AND ${key} <= ${value} ORDER BY ${key} LIMIT 1`
const runOf = (selected: string, runId: string) =>
  `(SELECT ${selected} FROM runs WHERE environment_id = $1 AND ${oneOf('run_id', runId)}`
/**
 * Finds one event by a range of both columns. For an equality on the run, the planner may read and sort all events of the
 * run while the statistics do not include them.
 */
export const eventOf = (selected: string, run: string, eventId: string) => {
  const [key, sought] = ['(e.run, e.event_id)', `(${run}, ${eventId})`]
  return `(SELECT ${selected} FROM events AS e WHERE e.environment_id = $1 AND ${key} >= ${sought} AND ${key} <= ${sought}
    ORDER BY e.run, e.event_id LIMIT 1)`
}

const COUNTED = [
  ...RUN_COLUMNS.filter(([, , , change]) => change === 'counted'),
  ['lastSeq', 'last_seq', 'bigint'],
] as const
const NUMBERS = COUNTED.filter(([, , type]) => type === 'bigint')
const TEXTS = COUNTED.filter(([, , type]) => type === 'text')

/**
 * Updates locked runs if no indexed column changes. It costs a third less than the upsert, and a seventh less again if only
 * numeric columns change. The planner can reach the rows in one way only: it finds the ctid by run number, and the row by its
 * ctid. Parameters: `$2` has the run numbers; the next ones have an array for each column.
 */
function countRuns(counted: readonly (typeof COUNTED)[number][]) {
  const columns = counted.map(([, column]) => column)
  const arrays = counted.map(([, , type], index) => `$${index + 3}::${type}[]`)
  return statement(`UPDATE runs AS r SET ${columns.map((column) => `${column} = x.${column}`).join(', ')}
    FROM unnest($2::bigint[], ${arrays.join(', ')}) AS x (number, ${columns.join(', ')}),
    LATERAL (SELECT ctid AS place FROM runs WHERE environment_id = $1 AND ${oneOf('number', 'x.number')}) AS found
    WHERE r.environment_id = $1 AND r.ctid = found.place`)
}
const COUNT_RUNS = countRuns(COUNTED)
const COUNT_NUMBERS = countRuns(NUMBERS)

type CountedValues = ReturnType<typeof columnValues>

/** A run's texts as COUNT_RUNS last wrote them. After a failed commit, the run is read into a new state without them. */
const writtenTexts = new WeakMap<RunState, readonly unknown[]>()

const TEXTS_BYTES = 200

/** Upper bound for the bytes that a run's `writtenTexts` take in memory. */
const writtenBytes = (run: RunState): number =>
  (writtenTexts.get(run) ?? []).reduce<number>(
    (sum, text) => sum + (typeof text === 'string' ? 2 * text.length : 0),
    TEXTS_BYTES,
  )

export function runRow(run: RunState): Row {
  writtenTexts.delete(run)
  const values = columnValues(run)
  return [...RUN_COLUMNS.map(([name]) => values[name]), run.lastSeq, values.sessionKey, run.namedSession]
}

/** Statements without the value of their first parameter, the environment. */
export function countStatements(runs: readonly RunState[]): { name: string; text: string; values: string[] }[] {
  const { numbers = [], all = [] } = Object.groupBy(runs.map(columnValues), (run, index) => {
    const [texts, before] = [TEXTS.map(([name]) => run[name]), writtenTexts.get(runs[index]!)]
    writtenTexts.set(runs[index]!, texts)
    return before?.every((text, place) => text === texts[place]) === true ? 'numbers' : 'all'
  })
  const valuesOf = (counted: readonly (typeof COUNTED)[number][], of: readonly CountedValues[]) => [
    arrayParameter(of.map(({ number }) => number)),
    ...counted.map(([name]) => arrayParameter(of.map((run) => run[name]))),
  ]
  return [
    ...(numbers.length > 0 ? [{ ...COUNT_NUMBERS, values: valuesOf(NUMBERS, numbers) }] : []),
    ...(all.length > 0 ? [{ ...COUNT_RUNS, values: valuesOf(COUNTED, all) }] : []),
  ]
}

export interface LockedRun {
  index: number
  number: number
  /** `version`: the transaction that wrote the row. `transaction`: the one that locks it. */
  version: string | null
  transaction: string | null
}

const lockRuns = (versions: string) =>
  statement(`SELECT x.n - 1 AS index, r.* FROM unnest($2::text[]) WITH ORDINALITY AS x (run_id, n),
    LATERAL ${runOf(`number, ${versions}`, 'x.run_id')} FOR NO KEY UPDATE) AS r`)
/** `$2`: runs, in the order in which they are locked. */
export const LOCK_RUNS = lockRuns('xmin AS version, pg_current_xact_id()::xid AS transaction')
export const LOCK_DISTRIBUTED_RUNS = lockRuns('NULL AS version, NULL AS transaction')

/** Reads runs that are already locked. `$2`: their ids. */
export const READ_RUNS = statement(`SELECT r.* FROM unnest($2::text[]) AS x (run_id),
  LATERAL ${runOf(`${STORED_RUN}, last_seq AS "lastSeq"`, 'x.run_id')}) AS r`)

/** Finds the events that are already stored. `$2`: event ids, and `$3`: for each, the number of its run. */
export const FIND_EVENTS = statement(`SELECT x.n - 1 AS index
  FROM unnest($2::text[], $3::bigint[]) WITH ORDINALITY AS x (event_id, run, n), LATERAL ${eventOf('1', 'x.run', 'x.event_id')} AS e`)
/** As FIND_EVENTS, but by ids of runs. `$4`: the numbers of runs without events. */
export const FIND_EVENTS_BY_RUN = statement(`SELECT x.n - 1 AS index
  FROM unnest($2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY AS x (event_id, run_id, empty, n),
  LATERAL ${runOf('number', 'x.run_id')}) AS r, LATERAL ${eventOf('1', 'NULLIF(r.number, x.empty)', 'x.event_id')} AS e`)

export type ReadRun = StoredRun & { lastSeq: number }

const CACHE_BYTES = 16 * 1_048_576
export type WrittenRuns = ReturnType<typeof writtenRuns>

export function writtenRuns() {
  const written = new LRUCache<string, { run: RunState; version: string }>({
    maxSize: CACHE_BYTES,
    sizeCalculation: ({ run }, place) => cachedRunBytes(place, run) + writtenBytes(run),
  })
  return {
    numberOf: (place: string): number | undefined => written.peek(place)?.run.number,
    /**
     * Removes the run from the cache, so only one transaction has it. Null: the row is not what this node last wrote.
     */
    take(place: string, { number, version }: LockedRun): RunState | null {
      const known = written.get(place)
      if (known === undefined || known.version !== version || known.run.number !== number) return null
      written.delete(place)
      return known.run
    },
    /**
     * Call this when the run's row is written. Resets what its transaction noted, which would keep a batch in memory.
     */
    keep(place: string, run: RunState, version: string): void {
      written.set(ownText(place), { run: Object.assign(run, UNCHANGED), version })
    },
    forget: () => written.clear(),
  }
}
