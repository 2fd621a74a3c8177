/**
 * The tables before migration 010, with texts instead of numbers. The first comparisons of the recording benchmarks are
 * with a driver that writes these, so that results of all versions can be compared.
 */
import type { NewEvent } from '@tacho/server/storage/events.ts'
import { CHANGE_RUNS, runRow } from '@tacho/server/storage/postgres/append.ts'
import { copyIn } from '@tacho/server/storage/postgres/event-copy.ts'
import { knownMigrations as postgresMigrations } from '@tacho/server/storage/postgres/migrate.ts'
import type { PlacedEvent } from '@tacho/server/storage/sql/event-columns.ts'
import type { InsertedTable, Row } from '@tacho/server/storage/sql/json-rows.ts'
import { textKey } from '@tacho/server/storage/sql/keys.ts'
import type { RunState } from '@tacho/server/storage/sql/run-state.ts'
import { SUM_COLUMNS } from '@tacho/server/storage/sql/sums.ts'
import type { Database } from '@tacho/server/storage/sqlite/database.ts'
import { knownMigrations as sqliteMigrations } from '@tacho/server/storage/sqlite/migrate.ts'
import type { ClientBase } from 'pg'

const MIGRATIONS = 9
const COUNTS = '013_results.sql'
/** The tables of events as they were, and those that are beside them now. */
const oldOf = <Known extends { name: string }>(known: readonly Known[]) =>
  known.filter(({ name }, index) => index < MIGRATIONS || name === COUNTS)
export const OLD_MIGRATIONS = {
  sqlite: () => oldOf(sqliteMigrations()),
  postgres: () => oldOf(postgresMigrations()),
}

const CONTENT = {
  time: 'bigint',
  client_id: 'text',
  session_id: 'text',
  agent_id: 'text',
  agent_name: 'text',
  event_type: 'text',
  label: 'text',
  span_id: 'text',
  parent_span_id: 'text',
  schema_version: 'text',
  payload: 'text',
} as const

function contentOf(event: NewEvent): (string | number | null)[] {
  const { time, clientId, sessionId, agentId, agentName, eventType, label, spanId, parentSpanId } = event
  const texts = [clientId, sessionId, agentId, agentName, eventType, label, spanId, parentSpanId]
  return [time, ...texts, event.schemaVersion, event.payload]
}

const SUMS = SUM_COLUMNS.map(([column]) => column)
const COUNTED = ['event_count', 'differing_retries', 'last_event_at', ...SUMS]

/** Like the rowWriter of the embedded engine. */
export function oldRowWriter(db: Database) {
  const columns = ['environment_id', 'run_id', 'event_id', 'received_at', ...Object.keys(CONTENT)]
  const insertEvent = db.prepare(
    `INSERT INTO events (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
      ON CONFLICT (environment_id, run_id, event_id) DO NOTHING`,
  )
  const ofRun = ['environment_id', 'id', 'run_id', 'agent_id', 'status', 'started_at', 'received_at', ...COUNTED]
  ofRun.push('ended_at', 'closing_seq', 'session_key', 'session_id')
  const insertRun = db.prepare(
    `INSERT INTO runs (${ofRun.join(', ')}) VALUES (${ofRun.map((column) => `@${column}`).join(', ')})`,
  )
  const which = 'WHERE environment_id = @environment_id AND id = @id'
  const countRun = db.prepare(
    `UPDATE runs SET ${COUNTED.map((column) => `${column} = @${column}`).join(', ')} ${which}`,
  )
  const moveRun = db.prepare(
    `UPDATE runs SET status = @status, started_at = @started_at, ended_at = @ended_at, closing_seq = @closing_seq,
      session_key = COALESCE(session_key, @session_key), session_id = COALESCE(session_id, @session_id) ${which}`,
  )
  return {
    insertEvent(environmentId: string, { run, event, receivedAt }: PlacedEvent): number | null {
      const row = insertEvent.run(environmentId, run.id, event.eventId, receivedAt, ...contentOf(event))
      return row.changes === 0 ? null : Number(row.lastInsertRowid)
    },
    writeRun(environmentId: string, run: RunState): void {
      const row = {
        environment_id: environmentId,
        id: run.id,
        run_id: run.runId,
        agent_id: run.agentId,
        status: run.status,
        started_at: run.startedAt,
        received_at: run.receivedAt,
        event_count: run.eventCount,
        differing_retries: run.differingRetries,
        last_event_at: run.lastEventAt,
        ...Object.fromEntries(SUM_COLUMNS.map(([column, name]) => [column, run[name]])),
        ended_at: run.endedAt,
        closing_seq: run.closingSeq,
        session_key: run.namedSession === null ? null : textKey(run.namedSession),
        session_id: run.namedSession,
      }
      if (run.isNew) insertRun.run(row)
      else {
        countRun.run(row)
        if (run.isMoved) moveRun.run(row)
      }
      Object.assign(run, { isNew: false, isMoved: false, namedSession: null })
    },
  }
}

const { number: _, ...runColumns } = CHANGE_RUNS.columns
const NUMBER_AT = Object.keys(CHANGE_RUNS.columns).indexOf('number')
export const OLD_RUNS: InsertedTable = { ...CHANGE_RUNS, columns: runColumns }
export const oldRunRow = (run: RunState): Row => runRow(run).toSpliced(NUMBER_AT, 1)

export const OLD_EVENTS: InsertedTable = {
  name: 'events',
  columns: { run_id: 'uuid', seq: 'bigint', received_at: 'bigint', event_id: 'text', ...CONTENT },
  conflict: '',
}

/** In the order of OLD_EVENTS. */
export function oldEventRow({ run, event, receivedAt }: PlacedEvent, seq: number): Row {
  return [run.id, seq, receivedAt, event.eventId, ...contentOf(event)]
}

const COLUMNS = ['environment_id', ...Object.keys(OLD_EVENTS.columns)]
const COPY = `COPY events (${COLUMNS.join(', ')}) FROM STDIN BINARY`
const ROW_BYTES = 200
const VALUE_BYTES = 12
const UTF8_BYTES = 3

/** Copies rows of OLD_EVENTS. */
export function copyOldEvents(client: ClientBase, environmentId: string, rows: readonly Row[]): Promise<void> {
  let bytes = 0
  for (const row of rows) {
    bytes += ROW_BYTES
    for (const value of row) bytes += VALUE_BYTES + (typeof value === 'string' ? value.length * UTF8_BYTES : 0)
  }
  const buffer = Buffer.allocUnsafe(bytes)
  let end = 0
  for (const [run, ...values] of rows) {
    end = buffer.writeInt16BE(COLUMNS.length, end)
    end = writeUuid(buffer, end, environmentId)
    end = writeUuid(buffer, end, String(run))
    for (const value of values) end = writeValue(buffer, end, value)
  }
  return copyIn(client, COPY, environmentId, [buffer.subarray(0, end)])
}

function writeUuid(buffer: Buffer, at: number, uuid: string): number {
  const from = buffer.writeInt32BE(16, at)
  return from + buffer.write(uuid.replaceAll('-', ''), from, 'hex')
}

function writeValue(buffer: Buffer, at: number, value: string | number | null): number {
  if (value === null) return buffer.writeInt32BE(-1, at)
  if (typeof value === 'number') return buffer.writeBigInt64BE(BigInt(value), buffer.writeInt32BE(8, at))
  const bytes = buffer.write(value, at + 4)
  buffer.writeInt32BE(bytes, at)
  return at + 4 + bytes
}
