/**
 * The limit of PostgreSQL: some connections that write the same rows into the same tables and indexes through `pg`, with as
 * many events in a transaction as the server has. The statements of a transaction travel together, so that each costs one
 * round trip; rows travel as one JSON parameter, or events by COPY, which is quicker and cannot tell that one is stored
 * already. Nothing is locked, looked up or compared.
 */
import { CHANGE_RUNS, runRow } from '@tacho/server/storage/postgres/append.ts'
import { clientConfig } from '@tacho/server/storage/postgres/connections.ts'
import { encodeEvents } from '@tacho/server/storage/postgres/event-copy.ts'
import { migrate } from '@tacho/server/storage/postgres/migrate.ts'
import { postgresSql } from '@tacho/server/storage/postgres/sql.ts'
import { EVENT_COLUMNS, eventValues, type PlacedEvent } from '@tacho/server/storage/sql/append/event-columns.ts'
import { insertJsonRows, type InsertedTable, type Row } from '@tacho/server/storage/sql/rows/json-rows.ts'
import { ownSession } from '@tacho/server/storage/sql/append/run-state.ts'
import { writeCounts } from '@tacho/server/storage/sql/usage/counts.ts'
import pg from 'pg'
import { answer } from '../child.ts'
import { BATCH_EVENTS } from '../load/events.ts'
import type { Plot } from '../load/shapes.ts'
import { count, ENVIRONMENT, newChanges, rowMaker, type Recorded } from './rows.ts'

export interface BarePostgresWrites {
  url: string
  plot: Plot
  connections: number
  seconds: number
  eventsPerCommit: number
  /** How events travel. */
  way: 'insert' | 'copy'
}

/** Rows are made in portions, outside of the time that counts. */
const PORTION_EVENTS_PER_SECOND = 13_000
const NUMBERS_PER_LANE = 2 ** 40
const TIMEOUTS = { connectMs: 5_000, statementMs: 60_000, lockMs: 60_000, idleInTransactionMs: 60_000 }

/** Events as an INSERT takes them. */
const EVENTS: InsertedTable = {
  name: 'events',
  columns: {
    run: 'bigint',
    envelope: 'bigint',
    seq: 'integer',
    received_at: 'bigint',
    event_id: 'text',
    own_session: 'text',
    ...Object.fromEntries(
      Object.values(EVENT_COLUMNS).map((column) => [column, column === 'time' ? 'bigint' : 'text'] as const),
    ),
  },
  conflict: '',
}

const opened = new Map<string, Promise<Lane[]>>()

answer<BarePostgresWrites, Recorded>(async ({ url, plot, connections, seconds, eventsPerCommit, way }) => {
  const known = opened.get(url) ?? openLanes(url, plot, connections)
  opened.set(url, known)
  const lanes = await known
  const portionEvents = PORTION_EVENTS_PER_SECOND * seconds
  let [events, busyMs, cpuUs] = [0, 0, 0]
  while (busyMs < seconds * 1000) {
    const portion = lanes.map((lane) => lane.take(portionEvents / connections, eventsPerCommit))
    const [from, cpuFrom] = [performance.now(), process.cpuUsage()]
    await Promise.all(lanes.map((lane, index) => lane.commitAll(portion[index] ?? [], way)))
    busyMs += performance.now() - from
    const { user, system } = process.cpuUsage(cpuFrom)
    cpuUs += user + system
    events += portion.flat(2).length
  }
  return { eventsPerSecond: (events * 1000) / busyMs, cpuUsPerEvent: cpuUs / events }
})

type Lane = Awaited<ReturnType<typeof openLane>>

async function openLanes(url: string, plot: Plot, connections: number): Promise<Lane[]> {
  const unhurried = new pg.Client(clientConfig({ connectionString: url }, TIMEOUTS))
  await unhurried.connect()
  await migrate(unhurried)
  await unhurried.end()
  // Runs of their own, so that no connection waits for another's rows.
  return Promise.all(
    Array.from({ length: connections }, (_, slot) =>
      openLane(url, { ...plot, salt: `${slot}${plot.salt.slice(1)}` }, slot),
    ),
  )
}

async function openLane(url: string, plot: Plot, slot: number) {
  const client = new pg.Client({ ...clientConfig({ connectionString: url }, TIMEOUTS), pipeline: true })
  await client.connect()
  await client.query('SET search_path = tacho; SET jit = off')
  const sql = postgresSql(client)
  const rowsOf = rowMaker(plot, 1 + slot * NUMBERS_PER_LANE)
  let requests = 0

  function store(rows: readonly PlacedEvent[], seqs: readonly number[], way: BarePostgresWrites['way']) {
    const values = rows.map(({ run, envelope, event, receivedAt }, index): Row => {
      const named = [run.number, envelope, seqs[index] ?? 0, receivedAt, event.eventId, ownSession(run, event)]
      return [...named, ...eventValues(event)]
    })
    if (way === 'insert') return insertJsonRows(sql, EVENTS, ENVIRONMENT, values)
    const batch = {
      environmentId: ENVIRONMENT,
      receivedAt: Date.now(),
      events: rows.map(({ event }) => event),
      rejections: [],
    }
    const copy = encodeEvents(ENVIRONMENT, [batch])
    rows.forEach((row, index) => copy.add(row, seqs[index] ?? 0))
    return copy.send(client)
  }

  async function commit(rows: readonly PlacedEvent[], way: BarePostgresWrites['way']): Promise<void> {
    const changes = newChanges()
    const begun = client.query('BEGIN')
    const seqs = rows.map((row) => {
      const seq = row.run.lastSeq + 1
      count(changes, row, seq)
      return seq
    })
    await Promise.all([
      begun,
      store(rows, seqs, way),
      insertJsonRows(sql, CHANGE_RUNS, ENVIRONMENT, Array.from(changes.runs, runRow)),
      ...writeCounts(sql, ENVIRONMENT, changes.counts, changes.buckets, slot),
      client.query('COMMIT'),
    ])
  }

  return {
    /** The rows of so many events, divided into transactions. */
    take(count: number, eventsPerCommit: number): PlacedEvent[][] {
      const commits: PlacedEvent[][] = []
      for (let [taken, due] = [0, eventsPerCommit]; taken < count; due += eventsPerCommit) {
        const rows: PlacedEvent[] = []
        // Whole requests, so that the mean is as asked for; but at least one.
        while (rows.length === 0 || taken + rows.length + BATCH_EVENTS / 2 < due) rows.push(...rowsOf(requests++))
        commits.push(rows)
        taken += rows.length
      }
      return commits
    },
    async commitAll(commits: PlacedEvent[][], way: BarePostgresWrites['way']): Promise<void> {
      for (const rows of commits) await commit(rows, way)
    },
  }
}
