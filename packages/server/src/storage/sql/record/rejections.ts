import { read, type Sql } from '../engine/sql.ts'
import type { NewEvent, RejectionRow } from '../../record/events.ts'
import { replacing, insertJsonRows, type InsertedTable, type Row } from '../engine/rows.ts'
import { addRejected, addRepeated } from '../../record/completeness.ts'
import { ownText } from './known-rows.ts'
import type { RunState } from './run-state.ts'
import { rejectionKey } from '../engine/keys.ts'

export const rejectionsActs = read({ findRejection })

/** Rejections kept per environment, besides those since the last trim. */
const REJECTIONS_KEPT = 10_000

const REJECTIONS: InsertedTable = {
  name: 'rejections',
  columns: { rejection_key: 'text', code: 'text', message: 'text', rejected_at: 'bigint' },
  conflict: `ON CONFLICT (environment_id, rejection_key) ${replacing(['code', 'message', 'rejected_at'])}`,
}

export function rejectionRow(event: NewEvent, code: RejectionRow['code'], rejectedAt: number): RejectionRow {
  const { runId, eventId, clientId, number, drops } = event
  return {
    runId,
    eventId,
    code,
    message: null,
    rejectedAt,
    ...(number !== null && { numbered: { number, clientId, drops } }),
  }
}

/** Call this before the rejections are stored: a retry that is rejected again counts once. */
export async function countRejected(
  sql: Sql,
  environmentId: string,
  rejections: readonly RejectionRow[],
  runs: ReadonlyMap<string, RunState>,
): Promise<RunState[]> {
  const counted = new Set<string>()
  const changed: RunState[] = []
  for (const { runId, eventId, numbered } of rejections) {
    const run = runs.get(runId)
    const key = rejectionKey(runId, eventId)
    if (run === undefined || numbered === undefined || counted.has(key)) continue
    counted.add(key)
    const isRetry = (await findRejection(sql, environmentId, runId, eventId)) !== null
    if (!isRetry) addRejected(run.recorders, numbered.number, numbered.clientId, ownText)
    if (addRepeated(run.recorders, numbered, ownText) || !isRetry) changed.push(run)
  }
  return changed
}

export function keepRejections(sql: Sql, environmentId: string, rejections: readonly RejectionRow[]): Promise<unknown> {
  const newest = new Map<string, Row>()
  for (const { runId, eventId, code, message, rejectedAt } of rejections) {
    const key = rejectionKey(runId, eventId)
    newest.set(key, [key, code, message ?? null, rejectedAt])
  }
  const rows = [...newest].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
  return insertJsonRows(sql, REJECTIONS, environmentId, rows)
}

/** Reads an index row for each row that stays, so call it seldom. */
export async function trimRejections(sql: Sql, environmentId: string): Promise<void> {
  const text = `DELETE FROM rejections WHERE environment_id = :env AND rejected_at <= (
    SELECT rejected_at FROM rejections WHERE environment_id = :env ORDER BY rejected_at DESC LIMIT 1 OFFSET :kept)`
  await sql.run(text, { env: environmentId, kept: REJECTIONS_KEPT })
}

async function findRejection(sql: Sql, environmentId: string, runId: string, eventId: string) {
  const text = `SELECT code, message, rejected_at AS "rejectedAt" FROM rejections
    WHERE environment_id = :env AND rejection_key = :key`
  const params = { env: environmentId, key: rejectionKey(runId, eventId) }
  const row = await sql.get<Pick<RejectionRow, 'code' | 'message' | 'rejectedAt'>>(text, params)
  return row && { runId, eventId, ...row }
}
