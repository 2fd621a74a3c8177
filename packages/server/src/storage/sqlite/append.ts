/**
 * Appends on the embedded engine. It is the only writer, so recently read or written rows stay valid in its cache. Most
 * events cost one insert and no lookup. After a transaction that did not commit, it forgets all runs.
 */
import { LRUCache } from 'lru-cache'
import { entryBytes, ownText } from '../sql/cached-text.ts'
import { textKey } from '../sql/keys.ts'
import {
  contentOf,
  EVENT_CONTENT,
  type AppendEngine,
  type AppendTransaction,
  type PlacedEvent,
  type WantedRun,
} from '../sql/append.ts'
import { newRun, type RunState } from '../sql/run-state.ts'
import type { Sql } from '../sql/sql.ts'
import { SUM_COLUMNS } from '../sql/sums.ts'
import type { Database } from './database.ts'
import { isDataError, storageError } from './errors.ts'
import { transaction } from './transaction.ts'

const CACHE_BYTES = 24 * 1_048_576

/** Column of each value of a run, as read and first written. */
const RUN_COLUMNS = {
  id: 'id',
  runId: 'run_id',
  agentId: 'agent_id',
  status: 'status',
  startedAt: 'started_at',
  lastEventAt: 'last_event_at',
  receivedAt: 'received_at',
  eventCount: 'event_count',
  differingRetries: 'differing_retries',
  ...Object.fromEntries(SUM_COLUMNS.map(([column, name]) => [name, column])),
  endedAt: 'ended_at',
  closingSeq: 'closing_seq',
}
/** These change with every event and are not indexed. */
const COUNTED = ['eventCount', 'differingRetries', 'lastEventAt', ...SUM_COLUMNS.map(([, name]) => name)]
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
      WHERE environment_id = @environmentId AND id = @id`,
  )
  const moveRun = db.prepare(
    `UPDATE runs SET status = @status, started_at = @startedAt, ended_at = @endedAt, closing_seq = @closingSeq,
        session_key = COALESCE(session_key, @sessionKey), session_id = COALESCE(session_id, @namedSession)
      WHERE environment_id = @environmentId AND id = @id`,
  )
  const columns = ['environment_id', 'run_id', 'event_id', 'received_at', ...Object.values(EVENT_CONTENT)]
  const insertEvent = db.prepare(
    `INSERT INTO events (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
      ON CONFLICT (environment_id, run_id, event_id) DO NOTHING`,
  )
  return {
    /** Returns its seq; null if the run already has an event of that id. */
    insertEvent(environmentId: string, { run, event, receivedAt }: PlacedEvent): number | null {
      const row = insertEvent.run(environmentId, run.id, event.eventId, receivedAt, ...contentOf(event))
      return row.changes === 0 ? null : Number(row.lastInsertRowid)
    },
    writeRun(environmentId: string, run: RunState): void {
      const sessionKey = run.namedSession === null ? null : textKey(run.namedSession)
      const row = { ...run, environmentId, sessionKey, hasSession: null, isNew: null, isMoved: null }
      if (run.isNew) insertRun.run(row)
      else {
        countRun.run(row)
        if (run.isMoved) moveRun.run(row)
      }
      Object.assign(run, { isNew: false, isMoved: false, namedSession: null })
    },
  }
}

export function sqliteAppendEngine(db: Database, sql: Sql): AppendEngine {
  const runs = new LRUCache<string, RunState>({
    maxSize: CACHE_BYTES,
    sizeCalculation: ({ runId }, place) => entryBytes(place.length + runId.length),
  })
  const { insertEvent, writeRun } = rowWriter(db)
  const selectRun = db.prepare<[string, string], Omit<RunState, 'hasSession'> & { hasSession: 0 | 1 }>(
    `SELECT ${Object.entries(RUN_COLUMNS)
      .map(([name, column]) => `${column} AS ${name}`)
      .join(', ')},
        session_key IS NOT NULL AS hasSession
      FROM runs WHERE environment_id = ? AND run_id = ?`,
  )
  const selectSame = db
    .prepare<unknown[], 0 | 1>(
      `SELECT ${Object.values(EVENT_CONTENT)
        .map((column) => `${column} IS ?`)
        .join(' AND ')}
        FROM events WHERE environment_id = ? AND run_id = ? AND event_id = ?`,
    )
    .pluck()

  function openRun(environmentId: string, { runId, opening }: WantedRun): RunState | null {
    const place = `${environmentId} ${runId}`
    const known = runs.get(place)
    if (known !== undefined) return known
    const row = selectRun.get(environmentId, runId)
    let run: RunState
    if (row !== undefined) {
      run = { ...row, lastSeq: 0, hasSession: row.hasSession === 1, namedSession: null, isNew: false, isMoved: false }
    } else if (opening !== null) run = newRun(opening.id, ownText(runId), opening.agentId, opening.receivedAt)
    else return null
    runs.set(ownText(place), run)
    return run
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

  const compareEvents: AppendTransaction['compareEvents'] = async (environmentId, events) =>
    events.map(({ run, event }) => {
      const same = selectSame.get(...contentOf(event), environmentId, run.id, event.eventId)
      return same === undefined ? null : same === 1
    })

  const changeRuns: AppendTransaction['changeRuns'] = async (environmentId, changed) => {
    for (const run of changed) writeRun(environmentId, run)
  }

  return {
    agentRefreshMs: 0,
    isRace: () => false,
    isDataError,
    storageError,
    async transaction(_, end, work) {
      const statements: Promise<unknown>[] = []
      const atCommit = (statement: Promise<unknown>) => {
        statement.catch(() => undefined)
        statements.push(statement)
      }
      const complete = async () => {
        const result = await work({ sql, slot: 0, atCommit, openRuns, insertEvents, compareEvents, changeRuns })
        await Promise.all(statements)
        return result
      }
      try {
        return await transaction(db, 'write', complete, end)
      } catch (error) {
        runs.clear()
        throw error
      } finally {
        if (end === 'rollback') runs.clear()
      }
    },
  }
}
