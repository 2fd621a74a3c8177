/**
 * Appends on PostgreSQL in two round trips. The first opens and locks the runs and finds stored events. The second
 * copies the new events, writes all resulting changes, and commits. A batch with events that are already stored takes a
 * third round trip, which compares them.
 *
 * Only the transaction that holds a run's row writes its events. So a run's smaller seq is never committed after a
 * larger one.
 */
import { LRUCache } from 'lru-cache'
import pg, { type PoolClient } from 'pg'
import type { AppendEngine } from '../sql/record/append.ts'
import { StaleCaches } from '../sql/record/append-state.ts'
import type { AppendTransaction, WantedRun } from '../sql/record/append-steps.ts'
import { entryBytes, ownText } from '../sql/record/known-rows.ts'
import { withEnvelope, type TakeNumbers } from '../sql/record/envelopes.ts'
import { removalLock } from '../sql/data/erased-keys.ts'
import { COMPARED, comparedValues, stateOf } from '../sql/record/stored-columns.ts'
import {
  arrayParameter,
  fieldOf,
  insertedJsonRows,
  insertJsonRows,
  rowsParameter,
  type Row,
} from '../sql/engine/rows.ts'
import { comparePacked, PACKED, unlessPacked, type Compared } from '../sql/record/payloads.ts'
import { addEvent, nameSession, noteGaps, openedRun, type RunState } from '../sql/record/run-state.ts'
import type { NewEvent } from '../record/events.ts'
import { StorageError } from '../engine/store.ts'
import type { AtCommit, Connections, Pipeline } from './connections.ts'
import { isDataError, isRace, isTaken, storageError } from './errors.ts'
import { encodeEvents, type EventCopy } from './event-copy.ts'
import {
  CHANGE_RUNS,
  countStatements,
  eventOf,
  FIND_EVENTS,
  FIND_EVENTS_BY_RUN,
  LOCK_DISTRIBUTED_RUNS,
  LOCK_RUNS,
  OPEN_RUNS,
  READ_RUNS,
  runRow,
  writtenRuns,
  type LockedRun,
  type ReadRun,
  type WrittenRuns,
} from './run-rows.ts'
import { postgresSql, statement } from './sql.ts'

/** An agent's unchanged name gets a new time only after this interval, because its row is hot. */
const AGENT_REFRESH_MS = 1_000
/** Each concurrent transaction has separate rollup rows. */
export const WRITERS_PER_NODE = 64
const CACHE_BYTES = 8 * 1_048_576

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

/** `isDistributed`: on Citus, where each machine numbers its own transactions. */
export function postgresAppendEngine(
  connections: Connections,
  nodeSlot: () => number,
  isDistributed = false,
): AppendEngine<BatchConnection> {
  const writers = new Set<number>()
  /** Known runs need no insert, which saves work when runs send many small batches. */
  const knownRuns: KnownRuns = new LRUCache({
    maxSize: CACHE_BYTES,
    sizeCalculation: (_, place) => entryBytes(place.length),
  })
  const takeNumbers = numberTaker()
  const written = writtenRuns()
  let connectionsSeen = 0
  /** After a reconnect, forget transaction numbers: another server may use the same ones again. */
  const ofConnections = (): number => {
    if (connections.opened() !== connectionsSeen) written.forget()
    return (connectionsSeen = connections.opened())
  }
  const remembered: Remembered = { knownRuns, written, isDistributed, ofConnections }

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
            return work({ ...operations(client, copies, remembered, taking, atCommit), slot, atCommit })
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

/** Sends BEGIN and the locks in one message, because each message costs both sides more than a lock. */
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

/** Caches of runs on this node. */
interface Remembered {
  knownRuns: KnownRuns
  written: WrittenRuns
  isDistributed: boolean
  /** Number of connections opened so far. */
  ofConnections(): number
}

function operations(
  client: PoolClient,
  copies: ReadonlyMap<string, EventCopy>,
  { knownRuns, written, isDistributed, ofConnections }: Remembered,
  takeNumbers: TakeNumbers,
  atCommit: AtCommit,
) {
  const sql = postgresSql(client)
  let stored = new Set<string>()
  const opened = new Map<string, RunState>()
  const begun = { connections: 0, transaction: null as string | null }
  const forgetRuns = () => {
    knownRuns.clear()
    written.forget()
  }

  const openRuns: AppendTransaction['openRuns'] = async (environmentId, wanted) => {
    const placeOf = (runId: string) => `${environmentId} ${runId}`
    begun.connections = ofConnections()
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
      // The insert has locked all these runs. They are new, so they have no events.
      if (added.length === wanted.length && (await adding).length === added.length) {
        return new Map(added.map(({ run }) => [run.runId, run]))
      }
      atCommit(adding)
    }
    const looked = wanted.map((one) => {
      const run = opened.get(placeOf(one.runId))
      return { ...one, opened: run?.number ?? 0, written: run ? null : (written.numberOf(placeOf(one.runId)) ?? null) }
    })
    const [locked, read, ids] = await Promise.all([
      lock(environmentId, wanted),
      readRuns(
        environmentId,
        looked.flatMap((run) => (run.written === null ? run.runId : [])),
      ),
      findStored(environmentId, looked),
    ])
    const rows = new Map(locked.map((row) => [wanted[row.index]?.runId ?? '', row]))
    const missing = wanted.filter(({ runId, opening }) => opening !== null && !rows.has(runId))
    const isOther = looked.some((run) => run.written !== null && rows.get(run.runId)?.number !== run.written)
    if (missing.length > 0 || isOther) {
      if (missing.some(({ runId }) => opened.has(placeOf(runId)))) {
        throw new StaleCaches('A run was removed after its insert found it')
      }
      forgetRuns()
      return openRuns(environmentId, wanted)
    }
    stored = ids
    begun.transaction = locked[0]?.transaction ?? null
    const runs = new Map<string, RunState>()
    for (const [runId, row] of rows) {
      const run = opened.get(placeOf(runId))
      if (run?.number === row.number) runs.set(runId, run)
      else {
        knownRuns.set(ownText(placeOf(runId)), true)
        const known = written.take(placeOf(runId), row)
        if (known !== null) runs.set(runId, known)
        else if (!read.has(runId)) read.set(runId, null)
      }
    }
    const unread = [...read].flatMap(([runId, row]) => (row === null ? runId : []))
    for (const [runId, row] of await readRuns(environmentId, unread)) read.set(runId, row)
    for (const [runId, row] of read) {
      if (row !== null && rows.has(runId) && !runs.has(runId)) runs.set(runId, stateOf(row, row.lastSeq))
    }
    return runs
  }

  async function lock(environmentId: string, wanted: readonly WantedRun[]): Promise<LockedRun[]> {
    const values = [environmentId, arrayParameter(wanted.map(({ runId }) => runId))]
    return (await client.query<LockedRun>({ ...(isDistributed ? LOCK_DISTRIBUTED_RUNS : LOCK_RUNS), values })).rows
  }

  async function readRuns(environmentId: string, runIds: readonly string[]): Promise<Map<string, ReadRun | null>> {
    if (runIds.length === 0) return new Map()
    const { rows } = await client.query<ReadRun>({ ...READ_RUNS, values: [environmentId, arrayParameter(runIds)] })
    return new Map(rows.map((row) => [row.runId, row]))
  }

  /** First looks up the numbers of runs that are not known. A run that this transaction opened has no events. */
  async function findStored(environmentId: string, looked: readonly LookedRun[]): Promise<Set<string>> {
    const [ofWritten, ofOthers]: [SoughtId[], SoughtId[]] = [[], []]
    for (const run of looked) {
      const sought = run.written === null ? ofOthers : ofWritten
      for (const { eventId } of run.events) sought.push({ run, eventId })
    }
    const find = async (text: typeof FIND_EVENTS, sought: SoughtId[], arrays: string[]) => {
      if (sought.length === 0) return []
      const ids = arrayParameter(sought.map(({ eventId }) => eventId))
      const values = [environmentId, ids, ...arrays]
      const { rows } = await client.query<{ index: number }>({ ...text, values })
      return rows.flatMap(({ index }) => sought[index] ?? [])
    }
    const storedIds = await Promise.all([
      find(FIND_EVENTS, ofWritten, [arrayParameter(ofWritten.map(({ run }) => run.written))]),
      find(FIND_EVENTS_BY_RUN, ofOthers, [
        arrayParameter(ofOthers.map(({ run }) => run.runId)),
        arrayParameter(ofOthers.map(({ run }) => run.opened)),
      ]),
    ])
    return new Set(storedIds.flat().map(({ run: { runId }, eventId }) => keyOf({ runId, eventId })))
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
    // A new run's row was inserted with the totals of all its events, so it needs no update.
    const isLater = ({ isNew, isRecounted }: RunState) => !isNew || isRecounted
    const { counted = [], moved = [] } = Object.groupBy(runs.filter(isLater), ({ isNew, isMoved }) =>
      isNew || isMoved || isDistributed ? 'moved' : 'counted',
    )
    const changes: Promise<unknown>[] = []
    if (moved.length > 0) changes.push(insertJsonRows(sql, CHANGE_RUNS, environmentId, moved.map(runRow)))
    for (const { values, ...text } of countStatements(counted)) {
      changes.push(client.query({ ...text, values: [environmentId, ...values] }))
    }
    const { transaction } = begun
    if (transaction !== null && begun.connections === ofConnections()) {
      for (const run of runs) written.keep(`${environmentId} ${run.runId}`, run, transaction)
    }
    await Promise.all(changes)
  }

  return { sql, takeNumbers, forgetRuns, openRuns, insertEvents, compareEvents, changeRuns }
}

interface LookedRun extends WantedRun {
  /** Number of the run if this transaction creates it, else 0. */
  opened: number
  /** Number of the run if a transaction of this node wrote it. */
  written: number | null
}

interface SoughtId {
  run: LookedRun
  eventId: string
}

type KnownRuns = LRUCache<string, true>

/** Ids never contain NUL, so it can separate them. */
const keyOf = ({ runId, eventId }: Pick<NewEvent, 'runId' | 'eventId'>): string => `${runId}\0${eventId}`

/** All events of a new run are new too, so they are counted here. */
function rowWith(run: RunState, events: readonly NewEvent[]): Row {
  events.forEach((event, index) => addEvent(run, index + 1, event))
  run.openedEvents = events.length
  noteGaps(run)
  return runRow(run)
}
