/** The cache of the only writer. Its rows stay valid, so most events cost one insert. A rollback clears it. */
import { LRUCache } from 'lru-cache'
import { ownText } from '../sql/record/known-rows.ts'
import { withEnvelope } from '../sql/record/envelopes.ts'
import type { AppendEngine } from '../sql/record/append.ts'
import type { AppendTransaction, WantedRun } from '../sql/record/append-steps.ts'
import {
  COMPARED,
  comparedValues,
  ROW_COLUMNS,
  rowValues,
  type PlacedEvent,
  columnValues,
  RUN_COLUMNS,
  stateOf,
  STORED_RUN,
  type StoredRun,
} from '../sql/record/stored-columns.ts'
import { comparePacked, PACKED, payloadSum, unlessPacked, type Compared } from '../sql/record/payloads.ts'
import {
  cachedRunBytes,
  nameSession,
  openedRun,
  ownSession,
  UNCHANGED,
  type RunState,
} from '../sql/record/run-state.ts'
import type { Sql } from '../sql/engine/sql.ts'
import { type Changes, counted, transaction } from './transaction.ts'
import type { Database, Statement } from './database.ts'
import { isDataError, storageError } from './errors.ts'

const CACHE_BYTES = 24 * 1_048_576

export function rowWriter(db: Database) {
  const set = (change: string) =>
    RUN_COLUMNS.filter((described) => described[3] === change).map(([name, column]) => `${column} = @${name}`)
  const insertRun = db.prepare(
    `INSERT INTO runs (environment_id, ${RUN_COLUMNS.map(([, column]) => column).join(', ')}, session_key, session_id)
      VALUES (@environmentId, ${RUN_COLUMNS.map(([name]) => `@${name}`).join(', ')}, @sessionKey, @namedSession)`,
  )
  // Two statements, because SQLite updates every index on a column named in SET, even if its value is unchanged.
  const ofRun = 'WHERE environment_id = @environmentId AND number = @number'
  const countRun = db.prepare(`UPDATE runs SET ${set('counted').join(', ')} ${ofRun}`)
  const moveRun = db.prepare(
    `UPDATE runs SET ${set('moved').join(', ')}, session_key = COALESCE(session_key, @sessionKey),
      session_id = COALESCE(session_id, @namedSession) ${ofRun}`,
  )
  const insertEvent = eventInserts(db)
  const environments = environmentNumbers(db)
  return {
    insertEvent(environmentId: string, { run, event, receivedAt, envelope }: PlacedEvent): number | null {
      const environment = environments.numberOf(environmentId)
      const row = insertEvent(
        [environment, run.number, envelope, event.eventId, receivedAt],
        [payloadSum(event.payload), ownSession(run, event), ...rowValues(event)],
      )
      return row.changes === 0 ? null : Number(row.lastInsertRowid)
    },
    writeRun(environmentId: string, run: RunState): void {
      const row = { ...columnValues(run), environmentId }
      if (run.isNew) insertRun.run(row)
      else {
        countRun.run(row)
        if (run.isMoved) moveRun.run(row)
      }
      Object.assign(run, UNCHANGED)
    },
    /** Call this after a transaction that did not commit. */
    forget: environments.forget,
  }
}

const PLACE = ['environment_id', 'run', 'envelope', 'event_id', 'received_at']
const VALUES = ['payload_sum', 'own_session', ...ROW_COLUMNS]

/** A statement for each set of non-null columns: binding a value takes a fifth of a microsecond, even a null. */
function eventInserts(db: Database) {
  const inserts = new Map<number, Statement<unknown[]>>()
  const prepare = (present: number) => {
    const columns = [...PLACE, ...VALUES.filter((_, index) => (present & (1 << index)) !== 0)]
    const values = columns.map((column) => (column === 'payload' ? 'CAST(? AS TEXT)' : '?'))
    const insert = db.prepare<unknown[]>(
      `INSERT INTO events (${columns.join(', ')}) VALUES (${values.join(', ')})
        ON CONFLICT (environment_id, run, event_id) DO NOTHING`,
    )
    inserts.set(present, insert)
    return insert
  }
  return (row: unknown[], values: readonly unknown[]) => {
    let present = 0
    for (let index = 0; index < values.length; index++) {
      if (values[index] === null) continue
      present |= 1 << index
      row.push(values[index])
    }
    return (inserts.get(present) ?? prepare(present)).run(...row)
  }
}

const ENVIRONMENTS_KEPT = 10_000

function environmentNumbers(db: Database) {
  const numbers = new Map<string, number>()
  const add = db.prepare('INSERT INTO environment_numbers (environment_id) VALUES (?) ON CONFLICT DO NOTHING')
  const select = db.prepare<[string], number>('SELECT number FROM environment_numbers WHERE environment_id = ?').pluck()
  return {
    numberOf(environmentId: string): number {
      const known = numbers.get(environmentId)
      if (known !== undefined) return known
      add.run(environmentId)
      const number = select.get(environmentId) ?? 0
      if (numbers.size > ENVIRONMENTS_KEPT) numbers.clear()
      numbers.set(environmentId, number)
      return number
    },
    forget: () => numbers.clear(),
  }
}

/** Numbers continue from the largest in the store, because there is only one writer. */
function numberTaker(db: Database): (count: number) => number[] {
  const largest = db.prepare<[], number>(
    `SELECT max(${['runs', 'removed_runs', 'envelopes'].map((table) => `(SELECT COALESCE(max(number), 0) FROM ${table})`).join(', ')})`,
  )
  let next = (largest.pluck().get() ?? 0) + 1
  return (count) => Array.from({ length: count }, () => next++)
}

const placeOf = (environmentId: string, runId: string): string => `${environmentId} ${runId}`

const NOT_COUNTED: Changes = { add: () => undefined, committed: () => undefined, close: () => undefined }

export interface SqliteAppendEngine extends AppendEngine {
  forgetRuns(environmentId: string, runIds: readonly string[]): void
}

export function sqliteAppendEngine(db: Database, sql: Sql, changes: Changes = NOT_COUNTED): SqliteAppendEngine {
  const runs = new LRUCache<string, RunState>({
    maxSize: CACHE_BYTES,
    sizeCalculation: (run, place) => cachedRunBytes(place, run),
  })
  const { insertEvent, writeRun, forget } = rowWriter(db)
  const takeNumbers = numberTaker(db)
  const selectRun = db.prepare<[string, string], StoredRun>(
    `SELECT ${STORED_RUN} FROM runs WHERE environment_id = ? AND run_id = ?`,
  )
  const selectSame = db.prepare<unknown[], Omit<Compared, 'isSame'> & { isSame: 0 | 1 }>(
    `SELECT ${COMPARED.map((column) => unlessPacked(column, `${column} IS ?`)).join(' AND ')} AS "isSame", ${PACKED} FROM events e ${withEnvelope(sql, '?')}
        WHERE e.environment_id = (SELECT number FROM environment_numbers WHERE environment_id = ?)
          AND e.run = ? AND e.event_id = ?`,
  )

  function openRun(environmentId: string, { runId, opening }: WantedRun): RunState | null {
    const place = placeOf(environmentId, runId)
    const known = runs.get(place)
    if (known !== undefined) return known
    const row = selectRun.get(environmentId, runId)
    let run: RunState
    if (row !== undefined) run = stateOf(row, 0)
    else if (opening !== null) {
      const [number = 0] = takeNumbers(1)
      run = openedRun(number, ownText(runId), opening)
    } else return null
    runs.set(ownText(place), run)
    return run
  }

  /** Adds the entry anew, because the cache measures an entry only when it is added. */
  function resize(environmentId: string, run: RunState): void {
    const place = placeOf(environmentId, run.runId)
    if (runs.delete(place)) runs.set(place, run)
  }

  const openRuns: AppendTransaction['openRuns'] = async (environmentId, wanted) =>
    new Map(
      wanted.flatMap((each): [string, RunState][] => {
        const run = openRun(environmentId, each)
        return run === null ? [] : [[each.runId, run]]
      }),
    )

  const insertEvents: AppendTransaction['insertEvents'] = async (environmentId, events) =>
    events.map((placed) => {
      const seq = insertEvent(environmentId, placed)
      if (seq !== null) nameSession(placed.run, placed.event)
      return seq
    })

  const compareEvents: AppendTransaction['compareEvents'] = async (environmentId, events) => {
    const compared = events.map((sought) => {
      const { run, event } = sought
      const place = [environmentId, environmentId, run.number, event.eventId]
      const sameRow = selectSame.get(...comparedValues(sought), ...place)
      return sameRow === undefined ? null : { ...sameRow, isSame: sameRow.isSame === 1 }
    })
    const payloads = events.map(({ event }) => event.payload)
    return comparePacked(sql, environmentId, compared, payloads)
  }

  const changeRuns: AppendTransaction['changeRuns'] = async (environmentId, changed) => {
    for (const run of changed) {
      if (run.hasGrown) resize(environmentId, run)
      writeRun(environmentId, run)
    }
  }

  const operations = {
    sql,
    slot: 0,
    forgetRuns: () => runs.clear(),
    takeNumbers: async (count: number) => takeNumbers(count),
    openRuns,
    insertEvents,
    compareEvents,
    changeRuns,
  }

  return {
    forgetRuns(environmentId, runIds) {
      for (const runId of runIds) runs.delete(placeOf(environmentId, runId))
    },
    agentRefreshMs: 0,
    isRace: () => false,
    isDataError,
    storageError,
    async transaction(batches, end, work) {
      const forgetAll = () => {
        runs.clear()
        forget()
      }
      const statements: Promise<unknown>[] = []
      const atCommit = (statement: Promise<unknown>) => {
        statement.catch(() => undefined)
        statements.push(statement)
      }
      const complete = async () => {
        const result = await work({ ...operations, atCommit })
        await Promise.all(statements)
        return result
      }
      try {
        if (end === 'rollback') return await transaction(db, 'write', complete, end)
        const events = batches.reduce((sum, batch) => sum + batch.events.length, 0)
        return await counted(db, changes, events, complete)
      } catch (error) {
        forgetAll()
        throw error
      } finally {
        if (end === 'rollback') forgetAll()
      }
    },
  }
}
