/**
 * The statements of the hot path. Rows travel as one jsonb array of arrays in one parameter: of the ways there are, the
 * one that costs the database and this process together the least. Measured on PostgreSQL 18, 100 events of 1 kB a
 * statement, CPU of client + server per event: arrays in jsonb 4 + 17 µs, objects in jsonb 5 + 20, objects in json
 * 5 + 20, VALUES with 1,500 parameters 6 + 15, unnest of 15 arrays 8 + 15. The payload is a JSON string inside, for its
 * own text must come back.
 */
import type { ClientBase } from 'pg'
import type { NewEvent } from '../storage.ts'
import { statement, type Statement } from './statement.ts'

/** A value of a row: NaN and what is no number of the database make the statement fail as they should. */
type Value = string | number | null
export type Row = Value[]

/** Columns with their types, in the order of the values of a row. */
type Columns = Record<string, 'uuid' | 'bigint' | 'integer' | 'text'>

const fieldOf = (type: string, index: number) => (type === 'text' ? `x->>${index}` : `(x->>${index})::${type}`)
const fieldsOf = (columns: Columns) => Object.values(columns).map(fieldOf).join(', ')
const ROWS = 'jsonb_array_elements($2::jsonb) AS x'

function insert(table: string, columns: Columns, rest = ''): Statement {
  const names = Object.keys(columns).join(', ')
  return statement(
    `INSERT INTO ${table} (environment_id, ${names}) SELECT $1, ${fieldsOf(columns)} FROM ${ROWS} ${rest}`,
  )
}

const EVENT_PLACE: Columns = { run_id: 'uuid', event_id: 'text', seq: 'bigint' }
const EVENT_CONTENT: Columns = {
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
}
const EVENT_COLUMNS: Columns = { ...EVENT_PLACE, ...EVENT_CONTENT, received_at: 'bigint' }

export function eventRow(run: string, seq: number, receivedAt: number, event: NewEvent): Row {
  const { eventId, time, clientId, sessionId, agentId, agentName, eventType, label, payload } = event
  const { spanId, parentSpanId, schemaVersion } = event
  const names = [clientId, sessionId, agentId, agentName, eventType, label, spanId, parentSpanId, schemaVersion]
  return [run, eventId, seq, time, ...names, payload, receivedAt]
}

const SUMS: Columns = {
  prompt_tokens: 'bigint',
  completion_tokens: 'bigint',
  total_tokens: 'bigint',
  cost_nanos: 'bigint',
}
const RUN_STATE: Columns = {
  status: 'text',
  started_at: 'bigint',
  last_event_at: 'bigint',
  ended_at: 'bigint',
  closing_seq: 'bigint',
  event_count: 'bigint',
  differing_retries: 'bigint',
  last_seq: 'bigint',
  ...SUMS,
  session_key: 'text',
  session_id: 'text',
}
const RUN_COLUMNS: Columns = { id: 'uuid', ...RUN_STATE, run_id: 'text', agent_id: 'uuid', received_at: 'bigint' }
/** Only what is new is sent: a session may be long, and the row has it already. */
const KEPT = ['session_key', 'session_id']

const setRun = Object.entries(RUN_STATE).map(([column, type], index) => {
  const field = fieldOf(type, index + 1)
  return `${column} = ${KEPT.includes(column) ? `COALESCE(r.${column}, ${field})` : field}`
})

const HOUR_COLUMNS: Columns = {
  hour: 'bigint',
  agent_id: 'uuid',
  model_key: 'text',
  slot: 'integer',
  events: 'bigint',
  ...SUMS,
}
const MAX_SUM = Number.MAX_SAFE_INTEGER
const addHour = ['events', ...Object.keys(SUMS)].map(
  (sum) =>
    `${sum} = CASE WHEN h.${sum} > ${MAX_SUM} - excluded.${sum} THEN ${MAX_SUM} ELSE h.${sum} + excluded.${sum} END`,
)

export const WRITES = {
  events: insert('events', EVENT_COLUMNS, 'ON CONFLICT (environment_id, run_id, event_id) DO NOTHING'),
  /** Fails when another node has just opened one of the runs. */
  newRuns: insert('runs', RUN_COLUMNS),
  runs: statement(`UPDATE runs AS r SET ${setRun.join(', ')} FROM ${ROWS}
    WHERE r.environment_id = $1 AND r.id = (x->>0)::uuid`),
  models: insert('models', { model_key: 'text', model: 'text' }, 'ON CONFLICT (environment_id, model_key) DO NOTHING'),
  hours: insert(
    'usage_hours AS h',
    HOUR_COLUMNS,
    `ON CONFLICT (environment_id, hour, agent_id, model_key, slot) DO UPDATE SET ${addHour.join(', ')}`,
  ),
  agents: statement(`UPDATE agents AS a SET name = x->>1, name_time = (x->>2)::bigint FROM ${ROWS}
    WHERE a.environment_id = $1 AND a.id = (x->>0)::uuid AND a.name_time <= (x->>2)::bigint`),
  rejections: insert(
    'rejections',
    { rejection_key: 'text', code: 'text', rejected_at: 'bigint' },
    `ON CONFLICT (environment_id, rejection_key)
      DO UPDATE SET code = excluded.code, rejected_at = excluded.rejected_at`,
  ),
} as const

/** The number of rows written. */
export async function write(
  client: ClientBase,
  table: keyof typeof WRITES,
  environmentId: string,
  rows: Row[],
): Promise<number> {
  const { rowCount } = await client.query({ ...WRITES[table], values: [environmentId, JSON.stringify(rows)] })
  return rowCount ?? 0
}

const SAME = Object.entries(EVENT_CONTENT).map(
  ([column, type], index) => `e.${column} IS NOT DISTINCT FROM ${fieldOf(type, index + 3)}`,
)
const COMPARE = statement(`SELECT n - 1 AS index, e.seq = (x->>2)::bigint AS "isMine", ${SAME.join(' AND ')} AS "isSame"
  FROM jsonb_array_elements($2::jsonb) WITH ORDINALITY AS rows (x, n)
  JOIN events e ON e.environment_id = $1 AND e.run_id = (x->>0)::uuid AND e.event_id = x->>1`)

export interface Compared {
  /** Place in the rows that were given. */
  index: number
  /** Whether the stored event is the very row, not an earlier one of that id. */
  isMine: boolean
  isSame: boolean
}

/** What is stored under the ids of these rows, which are as for `events`. */
export async function compare(client: ClientBase, environmentId: string, rows: Row[]): Promise<Compared[]> {
  return (await client.query<Compared>({ ...COMPARE, values: [environmentId, JSON.stringify(rows)] })).rows
}
