/**
 * Moves the rows of an older store into the tables of 010_numbers.sql, in transactions of some thousand rows of one
 * environment. Each also stores its progress, so the next attempt continues there. Nodes are stopped during it: an
 * older one could not read the new tables.
 */
import { setTimeout as wait } from 'node:timers/promises'
import type { Client } from 'pg'
import { ENVELOPE, ENVELOPE_TEXT } from '../sql/append/envelopes.ts'
import type { MovedRows } from '../sql/migrations.ts'
import { StoreRefused } from '../storage.ts'
import { inTransaction, UNWANTED } from './connections.ts'

const ROWS_PER_TRANSACTION = 5_000
/** How long a dead node still counts as alive. */
const SILENCE_MS = 15_000
const POLL_MS = 500

const ALIVE = `SELECT count(*) AS alive FROM nodes
  WHERE heartbeat_at > (extract(epoch FROM clock_timestamp()) * 1000)::bigint - ${SILENCE_MS}`

export async function aliveNodes(client: Pick<Client, 'query'>): Promise<number> {
  const { rows } = await client.query<{ alive: string }>(ALIVE)
  return Number(rows[0]?.alive)
}

/** Waits until every node is stopped. A killed one counts until its heartbeat is old. */
export async function untilUnused(client: Client, waitMs = SILENCE_MS + POLL_MS): Promise<void> {
  const deadline = performance.now() + waitMs
  for (let alive = await aliveNodes(client); alive > 0; alive = await aliveNodes(client)) {
    if (performance.now() > deadline) {
      throw new StoreRefused(
        `This version moves all events into new tables, but ${alive} older processes of Tacho still serve. Stop them first.`,
      )
    }
    await wait(POLL_MS)
  }
}

const NEXT_ENVIRONMENT =
  'SELECT environment_id AS id FROM runs WHERE environment_id > $1 ORDER BY environment_id LIMIT 1'
const LARGEST = 'SELECT COALESCE(max(number), 0) AS number FROM '
const NUMBER_RUNS = `UPDATE runs AS r SET number = n.number
  FROM (SELECT id, $2::bigint + row_number() OVER (ORDER BY id) AS number FROM runs
    WHERE environment_id = $1 AND id > $3 ORDER BY id LIMIT $4) AS n
  WHERE r.environment_id = $1 AND r.id = n.id RETURNING r.id`

const TEXTS = Object.values(ENVELOPE)
const PART = `e.environment_id = $1 AND (e.run_id, e.time, e.seq) > ($2, $3, $4) AND (e.run_id, e.time, e.seq) <= ($5, $6, $7)`
const ENVELOPE_KEY = `encode(sha256(convert_to(${ENVELOPE_TEXT}, 'UTF8')), 'hex')`
const LAST_OF_PART = `SELECT run_id AS run, time, seq FROM old_events AS e
  WHERE e.environment_id = $1 AND (e.run_id, e.time, e.seq) > ($2, $3, $4)
  ORDER BY run_id, time, seq LIMIT 1 OFFSET $5`
const ADD_ENVELOPES = `INSERT INTO envelopes (environment_id, number, envelope_key, ${TEXTS.join(', ')})
  SELECT environment_id, $8::bigint + row_number() OVER (), ${ENVELOPE_KEY}, ${TEXTS.join(', ')}
  FROM (SELECT DISTINCT environment_id, ${TEXTS.join(', ')} FROM old_events AS e WHERE ${PART}) AS e
  ON CONFLICT (environment_id, envelope_key) DO NOTHING`
const ADD_EVENTS = `INSERT INTO events (environment_id, run, time, received_at, envelope, seq, event_id, event_type, label,
    own_session, span_id, parent_span_id, payload)
  SELECT e.environment_id, r.number, e.time, e.received_at, v.number, e.seq, e.event_id, e.event_type, e.label,
    CASE WHEN e.session_id IS NULL THEN '' WHEN e.session_id IS DISTINCT FROM r.session_id THEN '=' || e.session_id END,
    e.span_id, e.parent_span_id, e.payload
  FROM old_events AS e
  JOIN runs AS r ON r.environment_id = e.environment_id AND r.id = e.run_id
  JOIN envelopes AS v ON v.environment_id = e.environment_id AND v.envelope_key = ${ENVELOPE_KEY}
  WHERE ${PART} ORDER BY e.run_id, e.time, e.seq`
const COUNT = `SELECT count(*) AS count FROM old_events AS e WHERE ${PART}`
const KEEP = `INSERT INTO events_moved (environment, run, time, seq, events) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (environment) DO UPDATE SET run = excluded.run, time = excluded.time, seq = excluded.seq,
    events = events_moved.events + excluded.events`

interface Place {
  run: string
  time: string
  seq: string
}

const FIRST_UUID = '00000000-0000-0000-0000-000000000000'
const START: Place = { run: FIRST_UUID, time: '-1', seq: '-1' }
const END: Place = {
  run: 'ffffffff-ffff-ffff-ffff-ffffffffffff',
  time: '9223372036854775807',
  seq: '9223372036854775807',
}

/** Uses the connection of a migration. Calls `onMoved` after each transaction. */
export async function moveEvents(
  client: Client,
  onMoved: (moved: MovedRows) => void,
  rowsPerTransaction = ROWS_PER_TRANSACTION,
): Promise<void> {
  const total = await numberOf(client, 'SELECT count(*) AS number FROM old_events')
  let rows = await numberOf(client, 'SELECT COALESCE(sum(events), 0) AS number FROM events_moved')
  let largest = Math.max(await numberOf(client, `${LARGEST} runs`), await numberOf(client, `${LARGEST} envelopes`))
  // Every statement here reads ranges and keys of indexes.
  for (const plan of UNWANTED) await client.query(`SET enable_${plan} = off`)
  for (let environment = await next(FIRST_UUID); environment !== null; environment = await next(environment)) {
    largest = await numberRuns(client, environment, largest, rowsPerTransaction)
    for (let place = await placeIn(environment); place !== END;) {
      const part = await movePart(client, environment, place, largest, rowsPerTransaction)
      largest = part.largest
      place = part.end
      rows += part.rows
      onMoved({ rows, total })
    }
  }
  await client.query("SELECT setval('numbers', $1, false)", [largest + 1])

  async function next(after: string): Promise<string | null> {
    return (await client.query<{ id: string }>(NEXT_ENVIRONMENT, [after])).rows[0]?.id ?? null
  }
  async function placeIn(environment: string): Promise<Place> {
    const { rows } = await client.query<Place>('SELECT run, time, seq FROM events_moved WHERE environment = $1', [
      environment,
    ])
    const [place = START] = rows
    return place.run === END.run ? END : place
  }
}

async function numberOf(client: Client, text: string): Promise<number> {
  return Number((await client.query<{ number: string }>(text)).rows[0]?.number)
}

/** Numbers the runs of an environment, in order of their ids. Returns the largest number. */
async function numberRuns(client: Client, environment: string, largest: number, count: number): Promise<number> {
  const numbered = 'SELECT id FROM runs WHERE environment_id = $1 AND number IS NOT NULL ORDER BY id DESC LIMIT 1'
  let after = (await client.query<{ id: string }>(numbered, [environment])).rows[0]?.id ?? FIRST_UUID
  for (;;) {
    const { rows } = await client.query<{ id: string }>(NUMBER_RUNS, [environment, largest, after, count])
    if (rows.length === 0) return largest
    largest += rows.length
    after = rows.reduce((last, { id }) => (id > last ? id : last), after)
  }
}

async function movePart(client: Client, environment: string, from: Place, largest: number, rowsPerTransaction: number) {
  const after = [environment, from.run, from.time, from.seq]
  const [end = END] = (await client.query<Place>(LAST_OF_PART, [...after, rowsPerTransaction - 1])).rows
  const part = [...after, end.run, end.time, end.seq]
  return inTransaction(client, async () => {
    const count = Number((await client.query<{ count: string }>(COUNT, part)).rows[0]?.count)
    await client.query(ADD_ENVELOPES, [...part, largest])
    const added = await client.query(ADD_EVENTS, part)
    if (added.rowCount !== count) throw new Error('Events of the old table would be lost')
    await client.query(KEEP, [environment, end.run, end.time, end.seq, count])
    const { rows } = await client.query<{ number: string }>(
      'SELECT number FROM envelopes WHERE environment_id = $1 ORDER BY number DESC LIMIT 1',
      [environment],
    )
    return { end, rows: count, largest: Math.max(largest, Number(rows[0]?.number ?? 0)) }
  })
}
