import { look, read } from './act.ts'
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
} from '../events.ts'
import type { ArrivedPage } from '../exports.ts'
import { withEnvelope } from './append/envelopes.ts'
import { PAYLOAD, PAYLOAD_BYTES, withPayloads } from './payloads.ts'
import { findByRunId, findByUuid, findRun, OF_RUN_ID, OF_UUID } from './runs/runs.ts'
import { selectList, type Sql, type SqlValue } from './sql.ts'

export const eventsActs = {
  findEvent: read(findEvent),
  readTimeline: read(readTimeline),
  listEvents: look(listEvents),
  listEventRows: read(listEventRows),
}

export const eventSession = (run: string) =>
  `CASE WHEN e.own_session IS NULL THEN ${run} WHEN e.own_session <> '' THEN substr(e.own_session, 2) END`

/** Columns of the event `e`, its envelope `v` and its run. */
const COLUMNS = {
  seq: 'e.seq',
  eventId: 'e.event_id',
  sessionId: eventSession('(SELECT session_id FROM run)'),
  agentId: 'v.agent_id',
  agentName: 'v.agent_name',
  clientId: 'v.client_id',
  eventType: 'e.event_type',
  label: 'e.label',
  time: 'e.time',
  receivedAt: 'e.received_at',
  spanId: 'e.span_id',
  parentSpanId: 'e.parent_span_id',
  schemaVersion: 'v.schema_version',
  latencyMicros: 'e.latency_us',
  payloadBytes: PAYLOAD_BYTES,
} satisfies Record<keyof EventRowRead, string>
export const ROW = selectList(COLUMNS)
const NAMES = Object.keys(COLUMNS)
  .map((name) => `"${name}"`)
  .join(', ')

const UNBOUNDED = ['sessionId', 'agentId', 'spanId', 'parentSpanId', 'schemaVersion'] as const
const BYTES = `${PAYLOAD_BYTES} + octet_length(v.agent_name)
  + ${UNBOUNDED.map((name) => `COALESCE(octet_length(${COLUMNS[name]}), 0)`).join(' + ')} AS bytes`

/** SQL for the `environment_id` of an event's row, which is a number on SQLite. `of`: SQL for the environment's id; default: a parameter. */
export const eventEnvironment = ({ dialect }: Pick<Sql, 'dialect'>, of = '?') =>
  dialect === 'postgres' ? of : `(SELECT number FROM environment_numbers WHERE environment_id = ${of})`

const withRun = (condition: string) =>
  `WITH run AS (SELECT number, session_id FROM runs WHERE environment_id = ? AND ${condition})`
/** Starts a statement on the events of one run. Its parameters are the environment and, twice, the run's internal id. */
export const WITH_RUN = withRun(OF_UUID)
const WITH_RUN_OF_ID = withRun(OF_RUN_ID)
/** Events `e` of that run. Its parameter is the environment. */
export const ofRun = (sql: Sql) => `e.environment_id = ${eventEnvironment(sql)} AND e.run = (SELECT number FROM run)`

const AFTER = '(e.time, e.seq) > (?, ?)'
const BY_TIME = 'ORDER BY e.time, e.seq LIMIT ?'
const BEFORE = '(e.time, e.seq) < (?, ?)'
const LATEST_FIRST = 'ORDER BY e.time DESC, e.seq DESC LIMIT ?'

type FirstPage = Omit<EventPage, 'after'>

interface Query {
  environmentId: string
  run: string
  text: string
  params: SqlValue[]
}

/** The run with the first page of its events, by external id first, then by internal UUID. Null: no such run. */
async function readTimeline(
  sql: Sql,
  environmentId: string,
  runIdOrUuid: string,
  page: FirstPage,
): Promise<Timeline | null> {
  const text = `FROM events e ${withEnvelope(sql)} WHERE ${ofRun(sql)} ${BY_TIME}`
  // PostgreSQL gets both statements in one round trip. A lookup by UUID needs a second one.
  const params = [environmentId, runIdOrUuid, runIdOrUuid, environmentId, environmentId]
  const byRunId = { environmentId, run: WITH_RUN_OF_ID, text, params }
  const [found, events] = await Promise.all([
    findByRunId(sql, environmentId, runIdOrUuid),
    readPage(sql, byRunId, page),
  ])
  if (found !== null) return { run: found, ...events }
  const run = await findByUuid(sql, environmentId, runIdOrUuid)
  return run && { run, ...(await listEvents(sql, environmentId, run.id, { ...page, after: null })) }
}

/**
 * Timeline order: time, then arrival. Ends at `limit` rows or `pageBytes` of client data, with at least one row.
 * `run` is the internal id.
 */
export function listEvents(
  sql: Sql,
  environmentId: string,
  run: string,
  { after, ...page }: EventPage,
): Promise<EventsRead<StoredEvent>> {
  const text = `FROM events e ${withEnvelope(sql)} WHERE ${ofRun(sql)}${after ? ` AND ${AFTER}` : ''} ${BY_TIME}`
  const params = [environmentId, run, run, environmentId, environmentId, ...(after ? [after.time, after.seq] : [])]
  return readPage(sql, { environmentId, run: WITH_RUN, text, params }, page)
}

async function readPage(sql: Sql, query: Query, page: FirstPage): Promise<EventsRead<StoredEvent>> {
  // On PostgreSQL each statement is a round trip. On SQLite a window function copies rows, which takes longer than two
  // statements.
  const { rows, more } = await (sql.dialect === 'postgres' ? pageAtOnce : pageBySizes)(sql, query, page)
  return { rows: await withPayloads(sql, query.environmentId, rows), more }
}

async function pageAtOnce(sql: Sql, { run, text, params }: Query, page: FirstPage): Promise<EventsRead<StoredEvent>> {
  const sizes = 'SUM(bytes) OVER (ORDER BY time, seq ROWS UNBOUNDED PRECEDING) AS total, COUNT(*) OVER () AS found'
  const rows = await sql.all<StoredEvent & { found: number }>(
    `${run} SELECT ${NAMES}, payload, "payloadSum", found
      FROM (SELECT *, ${sizes} FROM (SELECT ${ROW}, ${PAYLOAD}, ${BYTES} ${text}) AS found) AS page
      WHERE total <= ? OR total = bytes ORDER BY time, seq LIMIT ?`,
    [...params, page.limit + 1, page.pageBytes, page.limit],
  )
  const more = (rows[0]?.found ?? 0) > rows.length
  return { rows: rows.map(({ found: _, ...row }) => row), more }
}

async function pageBySizes(sql: Sql, { run, text, params }: Query, page: FirstPage): Promise<EventsRead<StoredEvent>> {
  // Sizes first, so that no large row is read that does not fit on the page.
  const sizes = await sql.all<{ bytes: number }>(`${run} SELECT ${BYTES} ${text}`, [...params, page.limit + 1])
  const count = rowsWithin(
    sizes.map(({ bytes }) => bytes),
    page,
  )
  const rows = await sql.all<StoredEvent>(`${run} SELECT ${ROW}, ${PAYLOAD} ${text}`, [...params, count])
  return { rows, more: sizes.length > count }
}

/** How many of the rows, by size, fit on a page. */
export function rowsWithin(sizes: number[], { limit, pageBytes }: Pick<FirstPage, 'limit' | 'pageBytes'>): number {
  let bytes = 0
  const past = sizes.findIndex((size, index) => (bytes += size) > pageBytes && index > 0)
  return Math.min(past === -1 ? sizes.length : past, limit)
}

/** The same without payloads, in one of three orders, optionally filtered. */
export async function listEventRows(
  sql: Sql,
  environmentId: string,
  run: string,
  page: EventRowsPage,
): Promise<EventRowsRead> {
  const { filter, limit, order } = page
  const rowsOf = order === 'arrival' ? rowsByArrival : rowsByTime
  if (filter === undefined) {
    const { text, params } = rowsOf(sql, environmentId, run, page, limit + 1)
    const rows = await sql.all<EventRowRead>(`${WITH_RUN} ${text}`, params)
    return { rows: rows.slice(0, limit), more: rows.length > limit }
  }
  const looked = rowsOf(sql, environmentId, run, page, filter.rowsLookedAt)
  const { conditions, values } = matching(sql, filter)
  const byOrder = { time: 'time, seq', latest: 'time DESC, seq DESC', arrival: 'seq' }[order]
  const rows = await sql.all<EventRowRead>(
    `${WITH_RUN} SELECT * FROM (${looked.text}) page WHERE ${conditions} ORDER BY ${byOrder} LIMIT ?`,
    [...looked.params, ...values, limit + 1],
  )
  if (rows.length > limit) return { rows: rows.slice(0, limit), more: true }
  // Rows that do not match were scanned too; continue after them.
  const last = await sql.get<{ time: number; seq: number }>(
    `${WITH_RUN} SELECT time, seq FROM (${looked.text}) page ORDER BY ${byOrder} LIMIT 1 OFFSET ?`,
    [...looked.params, filter.rowsLookedAt - 1],
  )
  return last === null ? { rows, more: false } : { rows, more: true, lookedTo: last }
}

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

type Rows = Pick<Query, 'text' | 'params'>

function rowsByTime(sql: Sql, environmentId: string, run: string, page: EventRowsPage, count: number): Rows {
  const { after, order } = page
  const [past, inOrder] = order === 'latest' ? [BEFORE, LATEST_FIRST] : [AFTER, BY_TIME]
  const events = `events e ${withEnvelope(sql)} WHERE ${ofRun(sql)}`
  const text = `SELECT ${ROW} FROM ${events}${after ? ` AND ${past}` : ''} ${inOrder}`
  const place = after ? [after.time, after.seq] : []
  return { text, params: [environmentId, run, run, environmentId, environmentId, ...place, count] }
}

/**
 * No index has this order, because it would add 5 % to every event's insert. The run's seqs come from an index, a few
 * milliseconds for 30,000, and only the rows of the page are read.
 */
export function rowsByArrival(
  sql: Sql,
  environmentId: string,
  run: string,
  { after }: Pick<EventRowsPage, 'after'>,
  count: number,
  columns = ROW,
): Rows {
  const places = [environmentId, run, run, environmentId, after?.seq ?? 0, count]
  // The last limit keeps the planner from moving a filter into the join.
  const end = 'ORDER BY place LIMIT ?'
  if (sql.dialect === 'sqlite') {
    const page = `SELECT e.seq AS place FROM events e WHERE ${ofRun(sql)} AND e.seq > ? ORDER BY e.seq LIMIT ?`
    const text = `SELECT ${columns} FROM (${page}) page JOIN events e ON e.seq = place ${withEnvelope(sql)} WHERE ${ofRun(sql)} ${end}`
    return { text, params: [...places, environmentId, environmentId, count] }
  }
  // Each order matches an index. The index of times includes the seqs, and finds each row of the page. The condition
  // that times are above zero stops PostgreSQL 18 from looking for the seq under each time of the run.
  const inIndex = `SELECT e.time AS moment, e.seq AS place FROM events e
    WHERE ${ofRun(sql)} AND (e.time, e.seq) > (0, 0) AND e.seq > ? ORDER BY e.time, e.seq OFFSET 0`
  const page = `SELECT * FROM (${inIndex}) AS of_run ORDER BY place LIMIT ?`
  const row = `SELECT * FROM events e WHERE ${ofRun(sql)} AND (e.time, e.seq) >= (moment, place) ${BY_TIME}`
  const text = `SELECT ${columns} FROM (${page}) AS page, LATERAL (${row}) AS e ${withEnvelope(sql)} ${end}`
  return { text, params: [...places, environmentId, 1, environmentId, count] }
}

/** A page of events with payloads, for an export. Sizes first, so that no large row is read that does not fit. */
export async function arrivedEvents(
  sql: Sql,
  environmentId: string,
  run: string,
  page: ArrivedPage,
): Promise<EventsRead<StoredEvent>> {
  const after = { after: { time: 0, seq: page.after } }
  const look = rowsByArrival(sql, environmentId, run, after, page.limit + 1)
  const found = await sql.all<EventRowRead>(`${WITH_RUN} ${look.text}`, look.params)
  const count = rowsWithin(
    found.map(({ payloadBytes }) => payloadBytes),
    page,
  )
  const { text, params } = rowsByArrival(sql, environmentId, run, after, count, `${ROW}, ${PAYLOAD}`)
  const rows = await withPayloads(sql, environmentId, await sql.all<StoredEvent>(`${WITH_RUN} ${text}`, params))
  return { rows, more: found.length > count }
}

async function findEvent(sql: Sql, environmentId: string, runId: string, eventId: string): Promise<FoundEvent | null> {
  const run = await findRun(sql, environmentId, runId)
  if (run === null) return null
  const params = [environmentId, run.id, run.id, environmentId]
  const rows = await sql.all<StoredEvent>(
    `${WITH_RUN} SELECT ${ROW}, ${PAYLOAD} FROM events e ${withEnvelope(sql)} WHERE ${ofRun(sql)} AND e.event_id = ?`,
    [...params, environmentId, eventId],
  )
  const [event] = await withPayloads(sql, environmentId, rows)
  if (event === undefined) return null
  const place = await sql.get<{ before: number }>(
    `${WITH_RUN} SELECT COUNT(*) AS before FROM events e WHERE ${ofRun(sql)} AND (e.time, e.seq) < (?, ?)`,
    [...params, event.time, event.seq],
  )
  const closing = await sql.get<{ seq: number | null }>(
    'SELECT closing_seq AS seq FROM runs WHERE environment_id = ? AND id = ?',
    [environmentId, run.id],
  )
  return { run, event, position: (place?.before ?? 0) + 1, closedRun: closing?.seq === event.seq }
}
