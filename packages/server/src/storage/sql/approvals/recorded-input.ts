import { read } from '../act.ts'
import type { RecordedInputRow, SoughtInput } from '../../approvals.ts'
import { ofRun, WITH_RUN } from '../events.ts'
import { mayContain, PAYLOAD, PAYLOAD_BYTES, withPayloads, rowsThatFit } from '../payloads.ts'
import type { Sql } from '../sql.ts'

export const recordedInputActs = {
  findRecordedInput: read(findRecordedInput),
}

/**
 * From the first stored POLICY_DECISION of a run (internal id) that names this approval, tool and hash and carries
 * `input`. Searches backwards from `until`, within bounds.
 */
async function findRecordedInput(
  sql: Sql,
  environmentId: string,
  run: string,
  { approvalId, toolName, inputHash, until, bounds }: SoughtInput,
): Promise<RecordedInputRow | null> {
  const params = { env: environmentId, run, until, limit: bounds.limit }
  // Sizes first, so that the search through payloads is bounded in bytes.
  const decisions = await sql.all<{ time: number; bytes: number }>(
    `${WITH_RUN} SELECT time, bytes FROM (
      SELECT time, seq, event_type, ${PAYLOAD_BYTES} AS bytes FROM events e
      WHERE ${ofRun(sql)} AND time <= :until ORDER BY time DESC, seq DESC LIMIT :rows) AS page
    WHERE event_type = 'POLICY_DECISION' ORDER BY time DESC, seq DESC LIMIT :limit`,
    { ...params, rows: bounds.rowsLookedAt },
  )
  const count = rowsThatFit(
    decisions.map(({ bytes }) => bytes),
    bounds,
  )
  const oldest = decisions[count - 1]
  if (oldest === undefined) return null
  const selected = await sql.all<RecordedInputRow & { seq: number }>(
    `${WITH_RUN} SELECT seq, event_id AS "eventId", received_at AS "receivedAt", ${PAYLOAD} FROM events e
      WHERE ${ofRun(sql)} AND time >= :oldest AND time <= :until AND event_type = 'POLICY_DECISION' AND ${mayContain(sql)}
      ORDER BY time, seq LIMIT :limit`,
    { ...params, oldest: oldest.time, text: approvalId },
  )
  const rows = await withPayloads(sql, environmentId, selected)
  const found = rows.filter(({ payload }) => {
    const said = JSON.parse(payload) as Record<string, unknown>
    const saidHash = typeof said['inputHash'] === 'string' ? said['inputHash'].toLowerCase() : null
    const names = said['approvalId'] === approvalId && said['toolName'] === toolName && saidHash === inputHash
    return names && 'input' in said
  })
  // The first stored one: no later event changes what an operator has seen.
  const first = found.sort((a, b) => a.seq - b.seq)[0]
  return first === undefined ? null : { eventId: first.eventId, receivedAt: first.receivedAt, payload: first.payload }
}
