import { look, read, type Acts } from './act.ts'
import type {
  EventFilter,
  EventPage,
  EventRowRead,
  EventRowsPage,
  EventRowsRead,
  EventsRead,
  FoundEvent,
  StoredEvent,
  Timeline,
  EventStore,
} from '../events.ts'
import { findByRunId, findByUuid, findRun, RUN_OF } from './runs.ts'
import type { Sql, SqlValue } from './sql.ts'

export const eventsActs = {
  findEvent: read(findEvent),
  readTimeline: read(readTimeline),
  listEvents: look(listEvents),
  listEventRows: read(listEventRows),
} satisfies Partial<Acts<EventStore>>

const COLUMNS = {
  seq: 'seq',
  eventId: 'event_id',
  sessionId: 'session_id',
  agentId: 'agent_id',
  agentName: 'agent_name',
  clientId: 'client_id',
  eventType: 'event_type',
  label: 'label',
  time: 'time',
  receivedAt: 'received_at',
  spanId: 'span_id',
  parentSpanId: 'parent_span_id',
  schemaVersion: 'schema_version',
  payloadBytes: 'octet_length(payload)',
} satisfies Record<keyof EventRowRead, string>
const ROW = Object.entries(COLUMNS)
  .map(([name, column]) => `${column} AS "${name}"`)
  .join(', ')
const NAMES = Object.keys(COLUMNS)
  .map((name) => `"${name}"`)
  .join(', ')

/** Columns of unbounded client texts. The rest of an event is small. */
const UNBOUNDED = ['session_id', 'agent_id', 'span_id', 'parent_span_id', 'schema_version']
const BYTES = `octet_length(payload) + octet_length(agent_name)
  + ${UNBOUNDED.map((column) => `COALESCE(octet_length(${column}), 0)`).join(' + ')} AS bytes`

const OF_RUN = 'environment_id = ? AND run_id = ?'
const AFTER = '(time, seq) > (?, ?)'
const BY_TIME = 'ORDER BY time, seq LIMIT ?'
const BEFORE = '(time, seq) < (?, ?)'
const LATEST_FIRST = 'time DESC, seq DESC'

type FirstPage = Omit<EventPage, 'after'>

interface Query {
  text: string
  params: SqlValue[]
}

/** The first page of a run's events, with the run. */
async function readTimeline(
  sql: Sql,
  environmentId: string,
  runIdOrUuid: string,
  page: FirstPage,
): Promise<Timeline | null> {
  const text = `FROM events WHERE environment_id = ? AND run_id = ${RUN_OF} ${BY_TIME}`
  // PostgreSQL gets both statements in one round trip. A lookup by UUID needs a second one.
  const byRunId = { text, params: [environmentId, environmentId, runIdOrUuid, runIdOrUuid] }
  const [found, events] = await Promise.all([
    findByRunId(sql, environmentId, runIdOrUuid),
    readPage(sql, byRunId, page),
  ])
  if (found !== null) return { run: found, ...events }
  const run = await findByUuid(sql, environmentId, runIdOrUuid)
  return run && { run, ...(await listEvents(sql, environmentId, run.id, { ...page, after: null })) }
}

export function listEvents(
  sql: Sql,
  environmentId: string,
  run: string,
  { after, ...page }: EventPage,
): Promise<EventsRead<StoredEvent>> {
  const text = `FROM events WHERE ${OF_RUN}${after ? ` AND ${AFTER}` : ''} ${BY_TIME}`
  return readPage(sql, { text, params: [environmentId, run, ...(after ? [after.time, after.seq] : [])] }, page)
}

function readPage(sql: Sql, query: Query, page: FirstPage): Promise<EventsRead<StoredEvent>> {
  // On PostgreSQL each statement is a round trip. On SQLite a window function copies rows, which takes longer than two
  // statements.
  return sql.dialect === 'postgres' ? pageAtOnce(sql, query, page) : pageBySizes(sql, query, page)
}

async function pageAtOnce(sql: Sql, { text, params }: Query, page: FirstPage): Promise<EventsRead<StoredEvent>> {
  const sizes = 'SUM(bytes) OVER (ORDER BY time, seq ROWS UNBOUNDED PRECEDING) AS total, COUNT(*) OVER () AS found'
  const rows = await sql.all<StoredEvent & { found: number }>(
    `SELECT ${NAMES}, payload, found
      FROM (SELECT *, ${sizes} FROM (SELECT ${ROW}, payload, ${BYTES} ${text}) AS found) AS page
      WHERE total <= ? OR total = bytes ORDER BY time, seq LIMIT ?`,
    [...params, page.limit + 1, page.pageBytes, page.limit],
  )
  const more = (rows[0]?.found ?? 0) > rows.length
  return { rows: rows.map(({ found: _, ...row }) => row), more }
}

async function pageBySizes(sql: Sql, { text, params }: Query, page: FirstPage): Promise<EventsRead<StoredEvent>> {
  // Sizes first, so that no large row is read that does not fit on the page.
  const sizes = await sql.all<{ bytes: number }>(`SELECT ${BYTES} ${text}`, [...params, page.limit + 1])
  const count = rowsWithin(
    sizes.map(({ bytes }) => bytes),
    page,
  )
  const rows = await sql.all<StoredEvent>(`SELECT ${ROW}, payload ${text}`, [...params, count])
  return { rows, more: sizes.length > count }
}

/** How many of the rows, by size, fit on a page. */
export function rowsWithin(sizes: number[], { limit, pageBytes }: FirstPage): number {
  let bytes = 0
  const past = sizes.findIndex((size, index) => (bytes += size) > pageBytes && index > 0)
  return Math.min(past === -1 ? sizes.length : past, limit)
}

async function listEventRows(
  sql: Sql,
  environmentId: string,
  run: string,
  page: EventRowsPage,
): Promise<EventRowsRead> {
  const { filter, limit, order } = page
  const rowsOf = order === 'arrival' ? rowsByArrival : rowsByTime
  if (filter === undefined) {
    const { text, params } = rowsOf(sql, environmentId, run, page, limit + 1)
    const rows = await sql.all<EventRowRead>(text, params)
    return { rows: rows.slice(0, limit), more: rows.length > limit }
  }
  const looked = rowsOf(sql, environmentId, run, page, filter.rowsLookedAt)
  const { conditions, values } = matching(sql, filter)
  const byOrder = { time: 'time, seq', latest: LATEST_FIRST, arrival: 'seq' }[order]
  const rows = await sql.all<EventRowRead>(
    `SELECT * FROM (${looked.text}) page WHERE ${conditions} ORDER BY ${byOrder} LIMIT ?`,
    [...looked.params, ...values, limit + 1],
  )
  if (rows.length > limit) return { rows: rows.slice(0, limit), more: true }
  // Rows that do not match were scanned too; continue after them.
  const last = await sql.get<{ time: number; seq: number }>(
    `SELECT time, seq FROM (${looked.text}) page ORDER BY ${byOrder} LIMIT 1 OFFSET ?`,
    [...looked.params, filter.rowsLookedAt - 1],
  )
  return last === null ? { rows, more: false } : { rows, more: true, lookedTo: last }
}

/** Conditions on columns, by their names in ROW. */
function matching(sql: Sql, { eventType, label }: EventFilter): { conditions: string; values: SqlValue[] } {
  const conditions: string[] = []
  const values: SqlValue[] = []
  if (eventType !== undefined) {
    conditions.push('"eventType" = ?')
    values.push(eventType)
  }
  if (label !== undefined) {
    // Both engines fold only the letters A to Z.
    conditions.push(
      sql.dialect === 'postgres' ? 'strpos(lower(label COLLATE "C"), ?) > 0' : 'instr(lower(label), ?) > 0',
    )
    values.push(label.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase()))
  }
  return { conditions: conditions.join(' AND '), values }
}

function rowsByTime(_: Sql, environmentId: string, run: string, { after, order }: EventRowsPage, count: number): Query {
  const [past, inOrder] = order === 'latest' ? [BEFORE, `ORDER BY ${LATEST_FIRST} LIMIT ?`] : [AFTER, BY_TIME]
  const text = `SELECT ${ROW} FROM events WHERE ${OF_RUN}${after ? ` AND ${past}` : ''} ${inOrder}`
  const place = after ? [after.time, after.seq] : []
  return { text, params: [environmentId, run, ...place, count] }
}

/**
 * No index has this order, because it would add 5 % to every event's insert. The run's seqs come from an index, a few
 * milliseconds for 30,000, and only the rows of the page are read.
 */
function rowsByArrival(sql: Sql, environmentId: string, run: string, { after }: EventRowsPage, count: number): Query {
  const ofRun = [environmentId, run]
  const places = [...ofRun, after?.seq ?? 0, count]
  // The last limit keeps the planner from moving a filter into the join.
  const end = 'ORDER BY place LIMIT ?'
  if (sql.dialect === 'sqlite') {
    const page = `SELECT seq AS place FROM events WHERE ${OF_RUN} AND seq > ? ORDER BY seq LIMIT ?`
    const text = `SELECT ${ROW} FROM (${page}) page JOIN events ON seq = place WHERE ${OF_RUN} ${end}`
    return { text, params: [...places, ...ofRun, count] }
  }
  // Each order matches an index. The index of times includes the seqs, and finds each row of the page. The condition
  // that times are above zero stops PostgreSQL 18 from looking for the seq under each time of the run.
  const inIndex = `SELECT time AS moment, seq AS place FROM events
    WHERE ${OF_RUN} AND (time, seq) > (0, 0) AND seq > ? ORDER BY time, seq OFFSET 0`
  const page = `SELECT * FROM (${inIndex}) AS of_run ORDER BY place LIMIT ?`
  const row = `SELECT * FROM events WHERE ${OF_RUN} AND (time, seq) >= (moment, place) ${BY_TIME}`
  const text = `SELECT ${ROW} FROM (${page}) AS page, LATERAL (${row}) AS events ${end}`
  return { text, params: [...places, ...ofRun, 1, count] }
}

async function findEvent(sql: Sql, environmentId: string, runId: string, eventId: string): Promise<FoundEvent | null> {
  const run = await findRun(sql, environmentId, runId)
  if (run === null) return null
  const ofRun = [environmentId, run.id]
  const event = await sql.get<StoredEvent>(`SELECT ${ROW}, payload FROM events WHERE ${OF_RUN} AND event_id = ?`, [
    ...ofRun,
    eventId,
  ])
  if (event === null) return null
  const place = await sql.get<{ before: number }>(
    `SELECT COUNT(*) AS before FROM events WHERE ${OF_RUN} AND (time, seq) < (?, ?)`,
    [...ofRun, event.time, event.seq],
  )
  const closing = await sql.get<{ seq: number | null }>(
    'SELECT closing_seq AS seq FROM runs WHERE environment_id = ? AND id = ?',
    ofRun,
  )
  return { run, event, position: (place?.before ?? 0) + 1, closedRun: closing?.seq === event.seq }
}
