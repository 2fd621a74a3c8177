import type { NewEvent } from '../events.ts'
import type { Database } from './database.ts'

export interface EventRows {
  /** The seq of the new row, null when the run has an event of that id. `run` is the internal id. */
  insert(environmentId: string, run: string, receivedAt: number, event: NewEvent): number | null
  /** Whether the stored event of that id has the same content; null when there is none. */
  isSame(environmentId: string, run: string, event: NewEvent): boolean | null
}

const KEY = ['environment_id', 'run_id', 'event_id']
/** What a retry must have in common with the stored event. */
const CONTENT = [
  'time',
  'client_id',
  'session_id',
  'agent_id',
  'agent_name',
  'event_type',
  'label',
  'span_id',
  'parent_span_id',
  'schema_version',
  'payload',
]

/** In the order of CONTENT. */
function contentOf(event: NewEvent) {
  const { time, clientId, sessionId, agentId, agentName, eventType, label, payload } = event
  const { spanId, parentSpanId, schemaVersion } = event
  return [time, clientId, sessionId, agentId, agentName, eventType, label, spanId, parentSpanId, schemaVersion, payload]
}

export function eventRows(db: Database): EventRows {
  const columns = [...KEY, 'received_at', ...CONTENT]
  const insert = db.prepare(
    `INSERT INTO events (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
      ON CONFLICT (${KEY.join(', ')}) DO NOTHING`,
  )
  const select = db
    .prepare<unknown[], number>(
      `SELECT ${CONTENT.map((column) => `${column} IS ?`).join(' AND ')}
        FROM events WHERE ${KEY.map((column) => `${column} = ?`).join(' AND ')}`,
    )
    .pluck()
  return {
    insert(environmentId, run, receivedAt, event) {
      const row = insert.run(environmentId, run, event.eventId, receivedAt, ...contentOf(event))
      return row.changes === 0 ? null : Number(row.lastInsertRowid)
    },
    isSame(environmentId, run, event) {
      const same = select.get(...contentOf(event), environmentId, run, event.eventId)
      return same === undefined ? null : same === 1
    },
  }
}
