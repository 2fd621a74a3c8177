/**
 * The limit of PostgreSQL: several connections write the same rows to the same tables and indexes through `pg`. All
 * statements of a transaction are sent together, so a transaction costs one round trip. Rows are sent as one JSON
 * parameter. Events can also use COPY, which is faster but cannot detect stored events. Nothing is locked, looked up or
 * compared.
 */
import { clientConfig, SCHEMA, UNWANTED } from '@tacho/server/storage/postgres/connections.ts'
import { encodeEvents } from '@tacho/server/storage/postgres/event-copy.ts'
import { migrate } from '@tacho/server/storage/postgres/migrate.ts'
import { CHANGE_RUNS, countStatements, runRow } from '@tacho/server/storage/postgres/run-rows.ts'
import { postgresSql } from '@tacho/server/storage/postgres/sql.ts'
import { payloadText } from '@tacho/server/storage/record/events.ts'
import { EVENT_COLUMNS, rowValues, type PlacedEvent } from '@tacho/server/storage/sql/record/stored-columns.ts'
import { insertJsonRows, type InsertedTable, type Row } from '@tacho/server/storage/sql/engine/rows.ts'
import { ownSession, UNCHANGED, type RunState } from '@tacho/server/storage/sql/record/run-state.ts'
import { writeCounts } from '@tacho/server/storage/sql/runs/usage-counts.ts'
import pg from 'pg'
import type { Plot } from '../load/shapes.ts'
import { count, ENVIRONMENT, newChanges, rowMaker, type Lane } from './recording.ts'

/** How events are sent. */
export type Way = 'insert' | 'copy'

const LANES = 4
const NUMBERS_PER_LANE = 2 ** 40
/** Long, because a benchmark may read a whole store of ten million events. */
const TIMEOUTS = { connectMs: 5_000, statementMs: 600_000, lockMs: 60_000, idleInTransactionMs: 60_000 }

/** The events table, as INSERT uses it. */
const EVENTS: InsertedTable = {
  name: 'events',
  columns: {
    run: 'bigint',
    envelope: 'bigint',
    seq: 'integer',
    received_at: 'bigint',
    event_id: 'text',
    own_session: 'text',
    ...Object.fromEntries(EVENT_COLUMNS.map((column) => [column, column === 'time' ? 'bigint' : 'text'] as const)),
    latency_us: 'bigint',
    problem: 'text',
    tokens: 'bigint',
    cost_nanos: 'bigint',
  },
  conflict: '',
}

/** A connection with the server's settings. */
export async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ ...clientConfig({ connectionString: url }, TIMEOUTS), pipeline: true })
  await client.connect()
  await client.query(`SET search_path = ${SCHEMA}; SET jit = off`)
  for (const plan of UNWANTED) await client.query(`SET enable_${plan} = off`)
  return client
}

/** Lanes that insert events into an empty database, one for each way. */
export async function openPostgresLanes(url: string, plot: Plot): Promise<Record<Way, Lane[]>> {
  const unhurried = await connect(url)
  await migrate(unhurried)
  await unhurried.end()
  const opened = Array.from({ length: LANES }, async (_, slot) => {
    // Each lane has its own runs, so that no connection waits for another one's rows.
    return openLane(await connect(url), { ...plot, salt: `${slot}${plot.salt.slice(1)}` }, slot)
  })
  const lanes = await Promise.all(opened)
  return { insert: lanes.map((lane) => lane('insert')), copy: lanes.map((lane) => lane('copy')) }
}

/** A JSON parameter needs payloads as texts. They are made before the measurement, like the other values of a row. */
const withText = ({ event, ...placed }: PlacedEvent): PlacedEvent => {
  return { ...placed, event: { ...event, payload: payloadText(event.payload) } }
}

function openLane(client: pg.Client, plot: Plot, slot: number): (way: Way) => Lane {
  const sql = postgresSql(client)
  const rowsOf = rowMaker(plot, 1 + slot * NUMBERS_PER_LANE)
  let requests = 0

  function store(rows: readonly PlacedEvent[], seqs: readonly number[], way: Way): Promise<void> {
    if (way === 'insert') {
      const values = rows.map(({ run, envelope, event, receivedAt }, index): Row => {
        const named = [run.number, envelope, seqs[index] ?? 0, receivedAt, event.eventId, ownSession(run, event)]
        return [...named, ...(rowValues(event) as Row)]
      })
      return insertJsonRows(sql, EVENTS, ENVIRONMENT, values)
    }
    const events = rows.map(({ event }) => event)
    const copy = encodeEvents(ENVIRONMENT, [
      { environmentId: ENVIRONMENT, receivedAt: Date.now(), events, rejections: [] },
    ])
    rows.forEach((row, index) => copy.add(row, seqs[index] ?? 0))
    return copy.send(client)
  }

  function changeRuns(runs: readonly RunState[]): Promise<unknown>[] {
    const { counted = [], moved = [] } = Object.groupBy(runs, ({ isNew, isMoved }) =>
      isNew || isMoved ? 'moved' : 'counted',
    )
    const sent: Promise<unknown>[] = countStatements(counted).map(({ values, ...text }) =>
      client.query({ ...text, values: [ENVIRONMENT, ...values] }),
    )
    if (moved.length > 0) sent.push(insertJsonRows(sql, CHANGE_RUNS, ENVIRONMENT, moved.map(runRow)))
    for (const run of runs) Object.assign(run, UNCHANGED)
    return sent
  }

  return (way) => ({
    nextRows: () => (way === 'insert' ? rowsOf(requests++).map(withText) : rowsOf(requests++)),
    async commit(rows) {
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
        ...changeRuns([...changes.runs]),
        ...writeCounts(sql, ENVIRONMENT, changes.counts, changes.buckets, slot),
        client.query('COMMIT'),
      ])
    },
  })
}
