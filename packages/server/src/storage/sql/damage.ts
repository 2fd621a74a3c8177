/** Names damaged payloads. Their text goes no further. */
import type { StoreCheck } from '../store.ts'
import { eventEnvironment } from './events.ts'
import { PAYLOAD, withPayloads } from './payloads.ts'
import type { DamagedPayload, Sql } from './sql.ts'

export function damagedPayload({ environmentId, eventId, seq }: DamagedPayload): [what: string, error: Error] {
  const name = eventId === null ? `with seq ${seq}` : JSON.stringify(eventId)
  return ['a stored payload is damaged', new Error(`Event ${name} of environment ${environmentId}`)]
}

export interface PayloadsChecked {
  payloads: number
  damaged: number
  first: (DamagedPayload & { runId: string | null }) | null
}

const ROWS_PER_PAGE = 100

export async function checkPayloads(snapshot: <Result>(work: (sql: Sql) => Promise<Result>) => Promise<Result>) {
  const checked: PayloadsChecked = { payloads: 0, damaged: 0, first: null }
  const environments = await snapshot((sql) => sql.all<{ id: string }>('SELECT id FROM environments ORDER BY id'))
  for (const { id } of environments) {
    for (let after: CheckedRow | null = null; ;) {
      const rows: CheckedRow[] = await snapshot((sql) => readPage(sql, id, after))
      for (const { run, eventId, payloadDamaged } of rows) {
        checked.payloads++
        if (!payloadDamaged) continue
        checked.damaged++
        checked.first ??= {
          environmentId: id,
          eventId,
          seq: null,
          runId: await snapshot((sql) => runIdOf(sql, id, run)),
        }
      }
      after = rows.at(-1) ?? null
      if (rows.length < ROWS_PER_PAGE) break
    }
  }
  return checked
}

async function runIdOf(sql: Sql, env: string, run: number): Promise<string | null> {
  const text = 'SELECT run_id AS "runId" FROM runs WHERE environment_id = :env AND number = :run'
  return (await sql.get<{ runId: string }>(text, { env, run }))?.runId ?? null
}

interface CheckedRow {
  run: number
  eventId: string
  payload: string
  payloadDamaged?: true
}

async function readPage(sql: Sql, environmentId: string, after: CheckedRow | null): Promise<CheckedRow[]> {
  const text = `SELECT e.run, e.event_id AS "eventId", ${PAYLOAD} FROM events e
    WHERE e.environment_id = ${eventEnvironment(sql)} AND (e.run, e.event_id) > (:run, :eventId)
    ORDER BY e.run, e.event_id LIMIT ${ROWS_PER_PAGE}`
  const params = { env: environmentId, run: after?.run ?? 0, eventId: after?.eventId ?? '' }
  return withPayloads(sql, environmentId, await sql.all<CheckedRow>(text, params))
}

export function payloadsCheck({ payloads, damaged, first }: PayloadsChecked): StoreCheck {
  const all = payloads.toLocaleString('en')
  const detail =
    first === null
      ? `All ${all} payloads match their checksums`
      : `${damaged.toLocaleString('en')} of ${all} payloads are damaged, the first of event ${JSON.stringify(first.eventId)} in run ${JSON.stringify(first.runId)} of environment ${first.environmentId}. A backup may still have them`
  return { name: 'payloads', ok: first === null, detail }
}
