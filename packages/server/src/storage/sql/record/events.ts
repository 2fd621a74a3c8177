import {
  lookup,
  read,
  containsFolded,
  folded,
  conditionsGiven,
  selectList,
  type SqlFragment,
  type Sql,
  eventEnvironment,
} from '../engine/sql.ts'
import type {
  EventPage,
  EventRowRead,
  EventRowsPage,
  FoundEvent,
  ProblemEvent,
  StoredEvent,
} from '../../record/events.ts'
import type { ArrivedPage } from '../../data/exports.ts'
import type { Page } from '../../engine/page.ts'
import { withEnvelope } from './envelopes.ts'
import { PAYLOAD, PAYLOAD_BYTES, withPayloads, readPayloadPage, rowsThatFit, type PayloadQuery } from './payloads.ts'
import { findByRunId, findByUuid, findRun, OF_RUN_ID, OF_UUID } from '../runs/runs.ts'

export const eventsActs = {
  ...lookup({ listEvents, listProblems, readArrived }),
  ...read({ findEvent, readTimeline, listEventRows }),
}

export const eventSession = (run: string) =>
  `CASE WHEN e.own_session IS NULL THEN ${run} WHEN e.own_session <> '' THEN substr(e.own_session, 2) END`

const SESSION = eventSession('(SELECT session_id FROM run)')
export const ROW = [
  selectList('seq event_id event_type label time received_at span_id parent_span_id tokens cost_nanos', 'e.'),
  selectList('agent_id agent_name client_id schema_version', 'v.'),
  `${SESSION} AS "sessionId", e.latency_us AS "latencyMicros", ${PAYLOAD_BYTES} AS "payloadBytes"`,
].join(', ')

const UNBOUNDED = [SESSION, 'v.agent_id', 'e.span_id', 'e.parent_span_id', 'v.schema_version']
const BYTES = `${PAYLOAD_BYTES} + octet_length(v.agent_name)
  + ${UNBOUNDED.map((column) => `COALESCE(octet_length(${column}), 0)`).join(' + ')}`

const withRun = (condition: string) =>
  `WITH run AS (SELECT number, session_id FROM runs WHERE environment_id = :env AND ${condition})`
export const WITH_RUN = withRun(OF_UUID)
const WITH_RUN_OF_ID = withRun(OF_RUN_ID)
export const ofRun = (sql: Sql) => `e.environment_id = ${eventEnvironment(sql)} AND e.run = (SELECT number FROM run)`

export const AFTER = '(e.time, e.seq) > (:time, :seq)'
const BY_TIME = 'ORDER BY e.time, e.seq LIMIT :limit'
const BEFORE = '(e.time, e.seq) < (:time, :seq)'
const LATEST_FIRST = 'ORDER BY e.time DESC, e.seq DESC LIMIT :limit'

type FirstPage = Omit<EventPage, 'after'>

async function readTimeline(sql: Sql, environmentId: string, runIdOrUuid: string, page: FirstPage) {
  const text = `FROM events e ${withEnvelope(sql)} WHERE ${ofRun(sql)} ${BY_TIME}`
  // PostgreSQL gets both statements in one round trip. A lookup by UUID needs a second one.
  const params = { env: environmentId, run: runIdOrUuid }
  const [found, events] = await Promise.all([
    findByRunId(sql, environmentId, runIdOrUuid),
    readEvents(sql, { start: WITH_RUN_OF_ID, columns: ROW, bytes: BYTES, from: text, params }, page),
  ])
  if (found !== null) return { run: found, ...events }
  const run = await findByUuid(sql, environmentId, runIdOrUuid)
  return run && { run, ...(await listEvents(sql, environmentId, run.id, { ...page, after: null })) }
}

export function listEvents(sql: Sql, environmentId: string, run: string, { after, ...page }: EventPage) {
  const from = `FROM events e ${withEnvelope(sql)} WHERE ${ofRun(sql)}${after ? ` AND ${AFTER}` : ''} ${BY_TIME}`
  const params = { env: environmentId, run, time: after?.time, seq: after?.seq }
  return readEvents(sql, { start: WITH_RUN, columns: ROW, bytes: BYTES, from, params }, page)
}

/** An index serves problems, however long the run is. */
function listProblems(sql: Sql, environmentId: string, run: string, { after, ...page }: EventPage) {
  const problems = `FROM events e ${withEnvelope(sql)} WHERE ${ofRun(sql)} AND e.problem IS NOT NULL`
  const from = `${problems}${after ? ` AND ${AFTER}` : ''} ${BY_TIME}`
  const params = { env: environmentId, run, time: after?.time, seq: after?.seq }
  const query = { start: WITH_RUN, columns: `${ROW}, e.problem`, bytes: BYTES, from, params }
  return readPayloadPage<ProblemEvent>(sql, query, page)
}

/** In one round trip on PostgreSQL. On SQLite, its window function copies rows and takes longer than two statements. */
async function readEvents(sql: Sql, query: PayloadQuery, page: FirstPage): Promise<Page<StoredEvent>> {
  if (sql.dialect === 'sqlite') return readPayloadPage<StoredEvent>(sql, query, page)
  const { start, from, params } = query
  const sizes = 'SUM(bytes) OVER (ORDER BY time, seq ROWS UNBOUNDED PRECEDING) AS total, COUNT(*) OVER () AS found'
  const timelineRows = await sql.all<StoredEvent & { bytes: number; total: number; found: number }>(
    `${start} SELECT * FROM (SELECT *, ${sizes} FROM (SELECT ${ROW}, ${PAYLOAD}, ${BYTES} AS bytes ${from}) AS found) AS page
      WHERE total <= :bytes OR total = bytes ORDER BY time, seq LIMIT :most`,
    { ...params, limit: page.limit + 1, bytes: page.pageBytes, most: page.limit },
  )
  const more = (timelineRows[0]?.found ?? 0) > timelineRows.length
  const rows = timelineRows.map(({ bytes: _, total: __, found: ___, ...row }) => row)
  return { rows: await withPayloads(sql, params.env, rows), more }
}

export async function listEventRows(sql: Sql, environmentId: string, run: string, page: EventRowsPage) {
  const { filter, limit, order } = page
  const rowsOf = order === 'arrival' ? rowsByArrival : rowsByTime
  if (filter === undefined) {
    const { text, params } = rowsOf(sql, environmentId, run, page, limit + 1)
    const rows = await sql.all<EventRowRead>(`${WITH_RUN} ${text}`, params)
    return { rows: rows.slice(0, limit), more: rows.length > limit }
  }
  const looked = rowsOf(sql, environmentId, run, page, filter.rowsLookedAt)
  const values = { eventType: filter.eventType, label: filter.label === undefined ? null : folded(filter.label) }
  const conditions = conditionsGiven(['"eventType" = :eventType', containsFolded(sql, 'label', ':label')], values)
  const byOrder = { time: 'time, seq', latest: 'time DESC, seq DESC', arrival: 'seq' }[order]
  const rows = await sql.all<EventRowRead>(
    `${WITH_RUN} SELECT * FROM (${looked.text}) page WHERE ${conditions} ORDER BY ${byOrder} LIMIT :most`,
    { ...looked.params, ...values, most: limit + 1 },
  )
  if (rows.length > limit) return { rows: rows.slice(0, limit), more: true }
  // Rows that do not match were scanned too; continue after them.
  const last = await sql.get<{ time: number; seq: number }>(
    `${WITH_RUN} SELECT time, seq FROM (${looked.text}) page ORDER BY ${byOrder} LIMIT 1 OFFSET :past`,
    { ...looked.params, past: filter.rowsLookedAt - 1 },
  )
  return last === null ? { rows, more: false } : { rows, more: true, lookedTo: last }
}

function rowsByTime(sql: Sql, environmentId: string, run: string, page: EventRowsPage, count: number): SqlFragment {
  const { after, order } = page
  const [past, inOrder] = order === 'latest' ? [BEFORE, LATEST_FIRST] : [AFTER, BY_TIME]
  const events = `events e ${withEnvelope(sql)} WHERE ${ofRun(sql)}`
  const text = `SELECT ${ROW} FROM ${events}${after ? ` AND ${past}` : ''} ${inOrder}`
  return { text, params: { env: environmentId, run, time: after?.time, seq: after?.seq, limit: count } }
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
): SqlFragment {
  const params = { env: environmentId, run, seq: after?.seq ?? 0, limit: count }
  // The last limit keeps the planner from moving a filter into the join.
  const end = 'ORDER BY place LIMIT :limit'
  if (sql.dialect === 'sqlite') {
    const page = `SELECT e.seq AS place FROM events e WHERE ${ofRun(sql)} AND e.seq > :seq ORDER BY e.seq LIMIT :limit`
    const text = `SELECT ${columns} FROM (${page}) page JOIN events e ON e.seq = place
      ${withEnvelope(sql)} WHERE ${ofRun(sql)} ${end}`
    return { text, params }
  }
  // The index of times includes the seqs, and finds each row of the page. The condition that times are above zero stops
  // PostgreSQL 18 from looking for the seq under each time of the run.
  const inIndex = `SELECT e.time AS moment, e.seq AS place FROM events e
    WHERE ${ofRun(sql)} AND (e.time, e.seq) > (0, 0) AND e.seq > :seq ORDER BY e.time, e.seq OFFSET 0`
  const page = `SELECT * FROM (${inIndex}) AS of_run ORDER BY place LIMIT :limit`
  const row = `SELECT * FROM events e WHERE ${ofRun(sql)} AND (e.time, e.seq) >= (moment, place)
    ORDER BY e.time, e.seq LIMIT 1`
  const text = `SELECT ${columns} FROM (${page}) AS page, LATERAL (${row}) AS e ${withEnvelope(sql)} ${end}`
  return { text, params }
}

async function readArrived(sql: Sql, environmentId: string, run: string, page: ArrivedPage) {
  const after = { after: { time: 0, seq: page.after } }
  const arrivalRows = rowsByArrival(sql, environmentId, run, after, page.limit + 1)
  const timelineRows = await sql.all<EventRowRead>(`${WITH_RUN} ${arrivalRows.text}`, arrivalRows.params)
  const sizes = timelineRows.map(({ payloadBytes }) => ({ bytes: payloadBytes }))
  const count = rowsThatFit(sizes, page)
  const { text, params } = rowsByArrival(sql, environmentId, run, after, count, `${ROW}, ${PAYLOAD}`)
  const rows = await withPayloads(sql, environmentId, await sql.all<StoredEvent>(`${WITH_RUN} ${text}`, params))
  return { rows, more: timelineRows.length > count }
}

async function findEvent(sql: Sql, environmentId: string, runId: string, eventId: string): Promise<FoundEvent | null> {
  const run = await findRun(sql, environmentId, runId)
  if (run === null) return null
  const params = { env: environmentId, run: run.id }
  const rows = await sql.all<StoredEvent>(
    `${WITH_RUN} SELECT ${ROW}, ${PAYLOAD} FROM events e ${withEnvelope(sql)}
      WHERE ${ofRun(sql)} AND e.event_id = :eventId`,
    { ...params, eventId },
  )
  const [event] = await withPayloads(sql, environmentId, rows)
  if (event === undefined) return null
  const place = await sql.get<{ before: number }>(
    `${WITH_RUN} SELECT COUNT(*) AS before FROM events e WHERE ${ofRun(sql)} AND ${BEFORE}`,
    { ...params, time: event.time, seq: event.seq },
  )
  const closingText = 'SELECT closing_seq AS seq FROM runs WHERE environment_id = :env AND id = :run'
  const closing = await sql.get<{ seq: number | null }>(closingText, params)
  return { run, event, position: (place?.before ?? 0) + 1, closedRun: closing?.seq === event.seq }
}
