/**
 * The statements of the hot path. Rows travel as one jsonb array of arrays in one parameter: of the ways there are, the
 * one that costs the database and this process together the least. Measured on PostgreSQL 18, 100 events of 1 kB a
 * statement, CPU of client + server per event: arrays in jsonb 4 + 17 µs, objects in jsonb 5 + 20, objects in json
 * 5 + 20, VALUES with 1,500 parameters 6 + 15, unnest of 15 arrays 8 + 15. Everything is a JSON string inside, numbers
 * too: PostgreSQL would read them as numerics on the way (a fifth of the cost), and a payload's own text must come back.
 */
import type { ClientBase } from 'pg'
import type { NewEvent } from '../events.ts'
import { statement, type Statement } from './statement.ts'

/** What is no number of the database makes the statement fail, as it should. */
export type Row = (string | number | null)[]

/** Columns with their types, in the order of the values of a row. */
type Columns = Record<string, 'uuid' | 'bigint' | 'integer' | 'text'>

const fieldOf = (type: string, index: number) => (type === 'text' ? `x->>${index}` : `(x->>${index})::${type}`)
const ROWS = 'jsonb_array_elements($2::jsonb)'

/** `$1` is the environment. */
function insert(table: string, columns: Columns, rest: string): Statement {
  const names = Object.keys(columns).join(', ')
  const fields = Object.values(columns).map(fieldOf).join(', ')
  return statement(`INSERT INTO ${table} (environment_id, ${names}) SELECT $1, ${fields} FROM ${ROWS} AS x ${rest}`)
}

const EVENT_PLACE = { run_id: 'uuid', event_id: 'text', seq: 'bigint' } as const satisfies Columns
const EVENT_CONTENT = {
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
} as const satisfies Columns
export const EVENT_COLUMNS = { ...EVENT_PLACE, ...EVENT_CONTENT, received_at: 'bigint' } as const satisfies Columns

/** In the order of EVENT_COLUMNS. */
export function eventRow(run: string, seq: number, receivedAt: number, event: NewEvent): Row {
  const { eventId, time, clientId, sessionId, agentId, agentName, eventType, label, payload } = event
  const { spanId, parentSpanId, schemaVersion } = event
  const names = [clientId, sessionId, agentId, agentName, eventType, label, spanId, parentSpanId, schemaVersion]
  return [run, eventId, String(seq), String(time), ...names, payload, String(receivedAt)]
}

const MAX_SUM = Number.MAX_SAFE_INTEGER
const SUMS: Columns = {
  prompt_tokens: 'bigint',
  completion_tokens: 'bigint',
  total_tokens: 'bigint',
  cost_nanos: 'bigint',
}
const saturating = (row: string) => (sum: string) =>
  `${sum} = CASE WHEN ${row}.${sum} > ${MAX_SUM} - excluded.${sum} THEN ${MAX_SUM} ELSE ${row}.${sum} + excluded.${sum} END`
const sumsOf = (row: string) => Object.keys(SUMS).map(saturating(row)).join(', ')

/** Values are what is added; `last_seq` the seqs that are taken, `closing_seq` which of them is the outcome's. */
export const RUN_COLUMNS = {
  run_id: 'text',
  id: 'uuid',
  agent_id: 'uuid',
  received_at: 'bigint',
  started_at: 'bigint',
  last_event_at: 'bigint',
  event_count: 'bigint',
  differing_retries: 'bigint',
  last_seq: 'bigint',
  ...SUMS,
  status: 'text',
  ended_at: 'bigint',
  closing_seq: 'bigint',
  session_key: 'text',
  session_id: 'text',
} as const satisfies Columns

const whileRunning = (column: string, value: string) =>
  `${column} = CASE WHEN r.status = 'RUNNING' THEN ${value} ELSE r.${column} END`
const CHANGE_RUN = [
  'started_at = CASE WHEN excluded.started_at < r.started_at THEN excluded.started_at ELSE r.started_at END',
  'last_event_at = CASE WHEN excluded.last_event_at > r.last_event_at THEN excluded.last_event_at ELSE r.last_event_at END',
  'event_count = r.event_count + excluded.event_count',
  'differing_retries = r.differing_retries + excluded.differing_retries',
  'last_seq = r.last_seq + excluded.last_seq',
  sumsOf('r'),
  whileRunning('status', 'excluded.status'),
  whileRunning('ended_at', 'excluded.ended_at'),
  whileRunning('closing_seq', 'r.last_seq + excluded.closing_seq'),
  'session_key = COALESCE(r.session_key, excluded.session_key)',
  'session_id = CASE WHEN r.session_key IS NULL THEN excluded.session_id ELSE r.session_id END',
].join(', ')

const HOUR_COLUMNS: Columns = {
  hour: 'bigint',
  agent_id: 'uuid',
  model_key: 'text',
  slot: 'integer',
  events: 'bigint',
  ...SUMS,
}
const REJECTION_COLUMNS: Columns = { rejection_key: 'text', code: 'text', rejected_at: 'bigint' }

/**
 * Rows are found by the key that ON CONFLICT names, whatever the statistics say; UPDATE ... FROM would be a join, and may
 * be planned as one that reads all runs of a tenant.
 */
export const WRITES = {
  events: insert('events', EVENT_COLUMNS, 'ON CONFLICT (environment_id, run_id, event_id) DO NOTHING'),
  runs: insert(
    'runs AS r',
    RUN_COLUMNS,
    `ON CONFLICT (environment_id, run_id) DO UPDATE SET ${CHANGE_RUN}
      RETURNING run_id AS "runId", id, agent_id AS "agentId", last_seq AS "lastSeq"`,
  ),
  models: insert('models', { model_key: 'text', model: 'text' }, 'ON CONFLICT (environment_id, model_key) DO NOTHING'),
  hours: insert(
    'usage_hours AS h',
    HOUR_COLUMNS,
    `ON CONFLICT (environment_id, hour, agent_id, model_key, slot)
      DO UPDATE SET ${saturating('h')('events')}, ${sumsOf('h')}`,
  ),
  rejections: insert(
    'rejections',
    REJECTION_COLUMNS,
    `ON CONFLICT (environment_id, rejection_key)
      DO UPDATE SET code = excluded.code, rejected_at = excluded.rejected_at`,
  ),
} as const

export type Table = keyof typeof WRITES

export function write(client: ClientBase, table: Table, environmentId: string, rows: readonly Row[]) {
  return client.query<Record<string, unknown>>({ ...WRITES[table], values: [environmentId, JSON.stringify(rows)] })
}

const SAME = Object.entries(EVENT_CONTENT).map(
  ([column, type], index) => `e.${column} IS NOT DISTINCT FROM ${fieldOf(type, index + 3)}`,
)
/**
 * The row of one key. Only the index of that key has this order, so it is the one that is walked, whatever the statistics
 * say; by equality, the planner may take another index of the tenant's while a table is new, and look through all of it.
 */
const oneOf = (table: string, key: string, value: string) =>
  `${key} >= ${value} AND ${key} <= ${value} ORDER BY ${key} LIMIT 1) AS ${table}`
const storedEvent = (selected: string, run: string, id: string) =>
  `(SELECT ${selected} FROM events AS e WHERE e.environment_id = $1 AND e.run_id = ${run} AND ${oneOf('e', 'e.event_id', id)}`

const COMPARE = statement(`SELECT n - 1 AS index, e.is_mine AS "isMine", e.is_same AS "isSame"
  FROM ${ROWS} WITH ORDINALITY AS rows (x, n),
  LATERAL ${storedEvent(`e.seq = (x->>2)::bigint AS is_mine, ${SAME.join(' AND ')} AS is_same`, '(x->>0)::uuid', 'x->>1')}`)

const ANY_STORED = statement(`SELECT 1 AS stored FROM ${ROWS} AS x,
  LATERAL ${storedEvent('1', '(x->>0)::uuid', 'x->>1')} LIMIT 1`)

export interface Compared {
  /** Place in the rows that were given. */
  index: number
  /** Whether the stored event is the very row, not an earlier one of that id. */
  isMine: boolean
  isSame: boolean
}

/** What is stored under the ids of these rows, which are as for `events`. */
export async function compare(client: ClientBase, environmentId: string, rows: readonly Row[]): Promise<Compared[]> {
  return (await client.query<Compared>({ ...COMPARE, values: [environmentId, JSON.stringify(rows)] })).rows
}

/** Whether one of these events is stored: internal ids of runs with ids of events. */
export async function isAnyStored(
  client: ClientBase,
  environmentId: string,
  events: readonly [run: string, eventId: string][],
): Promise<boolean> {
  const { rows } = await client.query({ ...ANY_STORED, values: [environmentId, JSON.stringify(events)] })
  return rows.length > 0
}
