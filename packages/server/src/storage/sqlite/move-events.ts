/**
 * Moves the rows of an older store into the tables of 010_numbers.sql, in transactions of some thousand rows. Moved rows
 * are deleted, so their space is used again, and what is left is what remains to be done.
 */
import { ENVELOPE, ENVELOPE_TEXT } from '../sql/append/envelopes.ts'
import { textKey } from '../sql/keys.ts'
import type { MovedRows } from '../sql/migrations.ts'
import { checkpointer } from './checkpoint.ts'
import type { Database } from './database.ts'

const ROWS_PER_TRANSACTION = 5_000
const BYTES_PER_TRANSACTION = 16 * 1_048_576
const CACHE_KIB = 131_072

const RUNS = `environment_id, id, run_id, agent_id, status, started_at, session_key, last_event_at, received_at,
  event_count, differing_retries, prompt_tokens, completion_tokens, total_tokens, cost_nanos, ended_at, closing_seq,
  session_id`
const FIRST_RUNS = 'SELECT environment_id, id FROM old_runs ORDER BY environment_id, id LIMIT ?'
const TEXTS = Object.values(ENVELOPE)
const ENVELOPE_KEY = `envelope_key(${ENVELOPE_TEXT})`

/** Yields after each transaction. */
export function* moveEvents(db: Database, rowsPerTransaction = ROWS_PER_TRANSACTION): Generator<MovedRows> {
  db.function('envelope_key', { deterministic: true }, (text) => textKey(text as string))
  const cache = db.pragma('cache_size', { simple: true }) as number
  db.pragma(`cache_size = -${CACHE_KIB}`)
  const checkpoint = checkpointer(db)
  const total = db
    .prepare<[], number>(
      `SELECT (SELECT count(*) FROM old_runs)
        + (SELECT COALESCE(max(seq) - min(seq) + 1, 0) FROM old_events)`,
    )
    .pluck()
    .get()
  const moved: MovedRows = { rows: 0, total: total ?? 0 }
  for (const move of [runMover(db, rowsPerTransaction), eventMover(db, rowsPerTransaction)]) {
    for (let rows = move(); rows > 0; rows = move()) {
      checkpoint.whenGrown()
      moved.rows += rows
      yield { ...moved }
    }
  }
  db.pragma(`cache_size = ${cache}`)
}

function runMover(db: Database, rows: number): () => number {
  const insert = db.prepare(
    `INSERT INTO runs (${RUNS}) SELECT ${RUNS} FROM old_runs ORDER BY environment_id, id LIMIT ?`,
  )
  const remove = db.prepare(`DELETE FROM old_runs WHERE (environment_id, id) IN (${FIRST_RUNS})`)
  return db.transaction(() => movedBy(insert.run(rows), remove.run(rows)))
}

function eventMover(db: Database, rows: number): () => number {
  const last = db
    .prepare<[number, number], number>(
      `SELECT max(seq) FROM (
        SELECT seq, row_number() OVER (ORDER BY seq) AS place, sum(bytes) OVER (ORDER BY seq) AS bytes
        FROM (SELECT seq, octet_length(payload) AS bytes FROM old_events ORDER BY seq LIMIT ?))
      WHERE bytes <= ? OR place = 1`,
    )
    .pluck()
  const environments = db.prepare(
    `INSERT INTO environment_numbers (environment_id)
      SELECT DISTINCT environment_id FROM old_events WHERE seq <= ? ON CONFLICT DO NOTHING`,
  )
  const envelopes = db.prepare(
    `INSERT INTO envelopes (environment_id, envelope_key, ${TEXTS.join(', ')})
      SELECT environment_id, ${ENVELOPE_KEY}, ${TEXTS.join(', ')}
      FROM (SELECT DISTINCT environment_id, ${TEXTS.join(', ')} FROM old_events WHERE seq <= ?) e
      WHERE true ON CONFLICT DO NOTHING`,
  )
  // CROSS JOIN keeps the order of the tables.
  const insert = db.prepare(
    `INSERT INTO events (seq, environment_id, run, envelope, time, received_at, event_id, event_type, label, own_session,
        span_id, parent_span_id, payload)
      SELECT e.seq, n.number, r.number, v.number, e.time, e.received_at, e.event_id, e.event_type, e.label,
        CASE WHEN e.session_id IS NULL THEN '' WHEN e.session_id IS NOT r.session_id THEN '=' || e.session_id END,
        e.span_id, e.parent_span_id, e.payload
      FROM old_events e
      CROSS JOIN environment_numbers n ON n.environment_id = e.environment_id
      CROSS JOIN runs r ON r.environment_id = e.environment_id AND r.id = e.run_id
      CROSS JOIN envelopes v ON v.environment_id = e.environment_id AND v.envelope_key = ${ENVELOPE_KEY}
      WHERE e.seq <= ? ORDER BY e.seq`,
  )
  const remove = db.prepare('DELETE FROM old_events WHERE seq <= ?')
  return db.transaction(() => {
    const seq = last.get(rows, BYTES_PER_TRANSACTION) ?? null
    if (seq === null) return 0
    environments.run(seq)
    envelopes.run(seq)
    return movedBy(insert.run(seq), remove.run(seq))
  })
}

function movedBy(inserted: { changes: number }, removed: { changes: number }): number {
  if (inserted.changes !== removed.changes) throw new Error('Rows of the old tables would be lost')
  return removed.changes
}
