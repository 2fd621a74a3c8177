/**
 * Appends on the embedded engine. It is the only writer, so recently read or written rows stay valid in its cache. Most
 * events cost one insert and no lookup. After a transaction that did not commit, it forgets all runs.
 */
import { LRUCache } from 'lru-cache'
import { entryBytes, ownText } from '../sql/append/cached-text.ts'
import { withEnvelope } from '../sql/append/envelopes.ts'
import { SHORT_CHARS, shortText, textKey } from '../sql/keys.ts'
import type { AppendEngine, AppendTransaction, WantedRun } from '../sql/append/append.ts'
import { COMPARED, comparedValues, ROW_COLUMNS, rowValues, type PlacedEvent } from '../sql/append/event-columns.ts'
import { comparePacked, PACKED, payloadSum, unlessPacked, type Compared } from '../sql/payloads.ts'
import { nameSession, openedRun, ownSession, type RunState } from '../sql/append/run-state.ts'
import type { Sql } from '../sql/sql.ts'
import { SUM_COLUMNS } from '../sql/usage/sums.ts'
import { failureChars, failureText, readFailure } from '../failure.ts'
import { readRecorders, recordersText } from '../completeness.ts'
import { readUncosted, uncostedText } from '../uncosted.ts'
import type { Changes } from './acknowledged.ts'
import type { Database } from './database.ts'
import { isDataError, storageError } from './errors.ts'
import { counted, transaction } from './transaction.ts'

const CACHE_BYTES = 24 * 1_048_576
/** About what one model and prompt version of a run takes in the cache. */
const UNCOSTED_BYTES = 330
/** About what one recorder of a run takes there. */
const RECORDER_BYTES = 400

/** Column of each value of a run, as read and first written. */
const RUN_COLUMNS = {
  id: 'id',
  number: 'number',
  runId: 'run_id',
  agentId: 'agent_id',
  status: 'status',
  startedAt: 'started_at',
  lastEventAt: 'last_event_at',
  receivedAt: 'received_at',
  eventCount: 'event_count',
  differingRetries: 'differing_retries',
  errorCount: 'error_count',
  traits: 'traits',
  recorders: 'recorders',
  hasGaps: 'has_gaps',
  uncosted: 'uncosted',
  failure: 'failure',
  failureMessage: 'failure_message',
  packed: 'packed',
  ...Object.fromEntries(SUM_COLUMNS.map(([column, name]) => [name, column])),
  endedAt: 'ended_at',
  closingSeq: 'closing_seq',
  ruleClosedAt: 'rule_closed_at',
}
/** These change with every event and are not indexed. */
const COUNTED = [
  'eventCount',
  'differingRetries',
  'errorCount',
  'traits',
  'recorders',
  'uncosted',
  'failure',
  'failureMessage',
  'lastEventAt',
  ...SUM_COLUMNS.map(([, name]) => name),
]
const columnOf = (name: string) => RUN_COLUMNS[name as keyof typeof RUN_COLUMNS]

/** Writes rows of an append one by one. */
export function rowWriter(db: Database) {
  const names = Object.keys(RUN_COLUMNS)
  const insertRun = db.prepare(
    `INSERT INTO runs (environment_id, ${names.map(columnOf).join(', ')}, session_key, session_id)
      VALUES (@environmentId, ${names.map((name) => `@${name}`).join(', ')}, @sessionKey, @namedSession)`,
  )
  // Two statements, because SQLite rewrites every index with a column named in SET, changed or not.
  const countRun = db.prepare(
    `UPDATE runs SET ${COUNTED.map((name) => `${columnOf(name)} = @${name}`).join(', ')}
      WHERE environment_id = @environmentId AND number = @number`,
  )
  const moveRun = db.prepare(
    `UPDATE runs SET status = @status, started_at = @startedAt, ended_at = @endedAt, closing_seq = @closingSeq,
        has_gaps = @hasGaps, packed = @packed, rule_closed_at = @ruleClosedAt,
        session_key = COALESCE(session_key, @sessionKey), session_id = COALESCE(session_id, @namedSession)
      WHERE environment_id = @environmentId AND number = @number`,
  )
  const columns = ['environment_id', 'run', 'envelope', 'event_id', 'received_at', 'own_session', 'payload_sum']
  columns.push(...ROW_COLUMNS)
  const insertEvent = db.prepare(
    `INSERT INTO events (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
      ON CONFLICT (environment_id, run, event_id) DO NOTHING`,
  )
  const environments = environmentNumbers(db)
  return {
    /** Returns its seq; null if the run already has an event of that id. */
    insertEvent(environmentId: string, { run, event, receivedAt, envelope }: PlacedEvent): number | null {
      const environment = environments.numberOf(environmentId)
      const named = [environment, run.number, envelope, event.eventId, receivedAt, ownSession(run, event)]
      const row = insertEvent.run(...named, payloadSum(event.payload), ...rowValues(event))
      if (row.changes === 0) return null
      nameSession(run, event)
      return Number(row.lastInsertRowid)
    },
    writeRun(environmentId: string, run: RunState): void {
      const sessionKey = run.namedSession === null ? null : textKey(run.namedSession)
      const row = {
        ...run,
        environmentId,
        sessionKey,
        recorders: recordersText(run.recorders),
        uncosted: uncostedText(run.uncosted),
        failure: failureText(run.failure),
        failureMessage: run.failure?.message ?? null,
        isNew: null,
        isMoved: null,
        hasGrown: null,
        hasNewGaps: null,
      }
      if (run.isNew) insertRun.run(row)
      else {
        countRun.run(row)
        if (run.isMoved) moveRun.run(row)
      }
      Object.assign(run, { isNew: false, isMoved: false, hasGrown: false, hasNewGaps: false, namedSession: null })
    },
    /** Call this after a transaction that did not commit. */
    forget: environments.forget,
  }
}

const ENVIRONMENTS_KEPT = 10_000

/** The numbers that events name their environments by. */
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

/** The only writer counts from the largest number of the store. */
function numberTaker(db: Database): (count: number) => number[] {
  const largest = db.prepare<[], number>(
    `SELECT max(${['runs', 'removed_runs', 'envelopes'].map((table) => `(SELECT COALESCE(max(number), 0) FROM ${table})`).join(', ')})`,
  )
  let next = (largest.pluck().get() ?? 0) + 1
  return (count) => Array.from({ length: count }, () => next++)
}

type StoredRun = Omit<RunState, 'uncosted' | 'recorders' | 'failure'> & {
  uncosted: string | null
  recorders: string | null
  failure: string | null
  failureMessage: string | null
}

const placeOf = (environmentId: string, runId: string): string => `${environmentId} ${runId}`

const NOT_COUNTED: Changes = { add: () => undefined, committed: () => undefined, close: () => undefined }

export interface SqliteAppendEngine extends AppendEngine {
  /** To be called when runs were removed or changed by another act. */
  forgetRuns(environmentId: string, runIds: readonly string[]): void
}

export function sqliteAppendEngine(db: Database, sql: Sql, changes: Changes = NOT_COUNTED): SqliteAppendEngine {
  const runs = new LRUCache<string, RunState>({
    maxSize: CACHE_BYTES,
    // The first event that names a session adds it to its run later.
    sizeCalculation: ({ runId, traits, uncosted, recorders, failure }, place) => {
      const chars = place.length + runId.length + SHORT_CHARS + traits.length
      const lists = uncosted.length * UNCOSTED_BYTES + recorders.length * RECORDER_BYTES
      return entryBytes(chars + lists + (failure === null ? 0 : failureChars(failure)))
    },
  })
  const { insertEvent, writeRun, forget } = rowWriter(db)
  const takeNumbers = numberTaker(db)
  const selectRun = db.prepare<[string, string], StoredRun>(
    `SELECT ${Object.entries(RUN_COLUMNS)
      .map(([name, column]) => `${column} AS ${name}`)
      .join(', ')},
        session_id AS session
      FROM runs WHERE environment_id = ? AND run_id = ?`,
  )
  const selectSame = db.prepare<unknown[], Omit<Compared, 'isSame'> & { isSame: 0 | 1 }>(
    `SELECT ${COMPARED.map((column) => unlessPacked(column, `${column} IS ?`)).join(' AND ')} AS "isSame", ${PACKED} FROM events e ${withEnvelope(sql)}
        WHERE e.environment_id = (SELECT number FROM environment_numbers WHERE environment_id = ?)
          AND e.run = ? AND e.event_id = ?`,
  )

  function openRun(environmentId: string, { runId, opening }: WantedRun): RunState | null {
    const place = placeOf(environmentId, runId)
    const known = runs.get(place)
    if (known !== undefined) return known
    const row = selectRun.get(environmentId, runId)
    let run: RunState
    if (row !== undefined) {
      const session = row.session === null ? null : shortText(row.session)
      const { failureMessage, ...stored } = row
      run = {
        ...stored,
        recorders: readRecorders(row.recorders),
        uncosted: readUncosted(row.uncosted),
        failure: readFailure(row.failure, failureMessage),
        session,
        lastSeq: 0,
        namedSession: null,
        isNew: false,
        isMoved: false,
        hasGrown: false,
        hasNewGaps: false,
      }
    } else if (opening !== null) {
      const [number = 0] = takeNumbers(1)
      run = openedRun(number, ownText(runId), opening)
    } else return null
    runs.set(ownText(place), run)
    return run
  }

  /** The cache takes the size of an entry only when it is added. */
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
    events.map((event) => insertEvent(environmentId, event))

  const compareEvents: AppendTransaction['compareEvents'] = async (environmentId, events) => {
    const compared = events.map((sought) => {
      const { run, event } = sought
      const place = [environmentId, environmentId, run.number, event.eventId]
      const found = selectSame.get(...comparedValues(sought), ...place)
      return found === undefined ? null : { ...found, isSame: found.isSame === 1 }
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
