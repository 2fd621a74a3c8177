import { read, type Sql } from '../engine/sql.ts'
import type {
  InputOfRequest,
  InputsBounds,
  LinkedInput,
  RecordedInputRow,
  SoughtInput,
} from '../../approvals/approvals.ts'
import { ofRun, WITH_RUN } from '../record/events.ts'
import { mayContain, PAYLOAD, PAYLOAD_BYTES, withPayloads, rowsThatFit } from '../record/payloads.ts'
import { OF_RUN_ID } from '../runs/runs.ts'

export const recordedInputActs = read({ findLinkedInputs, findRecordedInput, findRecordedInputs })

/**
 * Inputs in the order of `links`. Null: the event was erased, or is damaged. `too_large`: the inputs before it take all
 * `maxBytes`.
 */
async function findLinkedInputs(
  sql: Sql,
  environmentId: string,
  links: LinkedInput[],
  maxBytes: number,
): Promise<(RecordedInputRow | 'too_large' | null)[]> {
  const one = `${START} SELECT :columns FROM events e WHERE ${ofRun(sql)} AND e.event_id = :eventId`
  const read = <Row>(columns: string, { runId: run, eventId }: LinkedInput) =>
    sql.get<Row>(one.replace(':columns', columns), { env: environmentId, run, eventId })
  const sizes = await Promise.all(links.map((link) => read<{ bytes: number }>(`${PAYLOAD_BYTES} AS bytes`, link)))
  let bytes = 0
  const columns = `e.seq, e.event_id AS "eventId", e.received_at AS "receivedAt", ${PAYLOAD}`
  const rows = await Promise.all(
    links.map(async (link, at) => {
      const size = sizes[at]?.bytes
      if (size === undefined) return null
      bytes += size
      // The first input is always read, whatever its size.
      if (bytes > maxBytes && at > 0) return 'too_large' as const
      return read<RecordedInputRow & { seq: number }>(columns, link)
    }),
  )
  const rowObjects = rows.filter((row) => typeof row === 'object' && row !== null)
  await withPayloads(sql, environmentId, rowObjects)
  return rows.map((row) => {
    if (row === null || row === 'too_large') return row
    return { eventId: row.eventId, receivedAt: row.receivedAt, payload: row.payload }
  })
}

const START = `WITH run AS (SELECT number FROM runs WHERE environment_id = :env AND ${OF_RUN_ID})`

/** Reads the first stored POLICY_DECISION that names this approval, tool and hash and has an `input`, within bounds. */
async function findRecordedInput(
  sql: Sql,
  environmentId: string,
  run: string,
  { approvalId, toolName, inputHash, until, bounds }: SoughtInput,
): Promise<RecordedInputRow | null> {
  const params = { env: environmentId, run, until, limit: bounds.limit }
  // Reads sizes first, so that the search through payloads is bounded in bytes.
  const decisions = await sql.all<{ time: number; bytes: number }>(
    `${WITH_RUN} SELECT time, bytes FROM (
      SELECT time, seq, event_type, ${PAYLOAD_BYTES} AS bytes FROM events e
      WHERE ${ofRun(sql)} AND time <= :until ORDER BY time DESC, seq DESC LIMIT :rows) AS page
    WHERE event_type = 'POLICY_DECISION' ORDER BY time DESC, seq DESC LIMIT :limit`,
    { ...params, rows: bounds.rowsLookedAt },
  )
  const oldest = decisions[rowsThatFit(decisions, bounds) - 1]
  if (oldest === undefined) return null
  const selected = await sql.all<RecordedInputRow & { seq: number }>(
    `${WITH_RUN} SELECT seq, event_id AS "eventId", received_at AS "receivedAt", ${PAYLOAD} FROM events e
      WHERE ${ofRun(sql)} AND time >= :oldest AND time <= :until AND event_type = 'POLICY_DECISION' AND ${mayContain(sql)}
      ORDER BY time, seq LIMIT :limit`,
    { ...params, oldest: oldest.time, text: approvalId },
  )
  const rows = await withPayloads(sql, environmentId, selected)
  const key = keyOf({ approvalId, toolName, inputHash })
  const decisionRows = rows.filter(({ payload }) => keyOfDecision(payload) === key)
  // The first stored decision counts: no later event changes what an operator has seen.
  const first = decisionRows.sort((a, b) => a.seq - b.seq)[0]
  return first === undefined ? null : { eventId: first.eventId, receivedAt: first.receivedAt, payload: first.payload }
}

const keyOf = ({ approvalId, toolName, inputHash }: Omit<InputOfRequest, 'runId'>): string =>
  JSON.stringify([approvalId, toolName, inputHash])

/** The key of the request that a decision names; null: it carries no input. */
function keyOfDecision(payload: string): string | null {
  const parsedPayload = JSON.parse(payload) as Record<string, unknown>
  if (!('input' in parsedPayload)) return null
  const { approvalId, toolName, inputHash } = parsedPayload
  const hash = typeof inputHash === 'string' ? inputHash.toLowerCase() : null
  return keyOf({ approvalId, toolName, inputHash: hash } as Omit<InputOfRequest, 'runId'>)
}

/**
 * In the order of `sought`: the payload of the first decision that names each request, among the newest held calls of a
 * run.
 */
async function findRecordedInputs(
  sql: Sql,
  environmentId: string,
  sought: InputOfRequest[],
  bounds: InputsBounds,
): Promise<(string | null)[]> {
  const runIds = [...new Set(sought.map(({ runId }) => runId))]
  // Only decisions have a problem other than an error. A condition on their type would make PostgreSQL choose the index
  // over all runs.
  const held = `FROM events e WHERE ${ofRun(sql)} AND e.problem IS NOT NULL AND e.problem <> 'error'
    ORDER BY e.time DESC LIMIT :limit`
  const paramsOf = (run: string, limit: number) => ({ env: environmentId, run, limit })
  const sizesText = `${START} SELECT ${PAYLOAD_BYTES} AS bytes ${held}`
  const sizesOf = (run: string) => sql.all<{ bytes: number }>(sizesText, paramsOf(run, bounds.perRun))
  const sizes = await Promise.all(runIds.map(sizesOf))
  let bytes = 0
  const limits = sizes.map((rows) => rows.findIndex((row) => (bytes += row.bytes) > bounds.bytes))
  const payloadsText = `${START} SELECT e.seq, ${PAYLOAD} ${held}`
  const decisions = await Promise.all(
    runIds.map(async (run, at) => {
      const limit = limits[at] === -1 ? (sizes[at]?.length ?? 0) : (limits[at] ?? 0)
      return limit === 0 ? [] : sql.all<{ seq: number; payload: string }>(payloadsText, paramsOf(run, limit))
    }),
  )
  const byRun = new Map<string, Map<string | null, string>>()
  for (const [at, run] of runIds.entries()) {
    const rows = await withPayloads(sql, environmentId, decisions[at] ?? [])
    // The oldest last, so that it wins in the map.
    const newestFirst = rows.toSorted((a, b) => b.seq - a.seq)
    byRun.set(run, new Map(newestFirst.map(({ payload }) => [keyOfDecision(payload), payload])))
  }
  return sought.map(({ runId, ...request }) => byRun.get(runId)?.get(keyOf(request)) ?? null)
}
