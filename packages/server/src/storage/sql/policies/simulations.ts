import { read, write, countOf, selectList, type Sql, eventEnvironment } from '../engine/sql.ts'
import type { AuditEntry } from '../../people/operators.ts'
import type {
  CallingRun,
  CallKind,
  NewSimulationRow,
  PastRow,
  RunStepPage,
  RunStepRow,
  SimulationEnd,
  SimulationProgress,
  SimulationRow,
  ToolCallPage,
  ToolCallRow,
} from '../../policies/policies.ts'
import { mapPage, type PageById } from '../../engine/page.ts'
import { insertAudit } from '../people/audit.ts'
import { lockEnvironment } from '../tenants/workspaces.ts'
import { withEnvelope } from '../record/envelopes.ts'
import { ofRun, eventSession, WITH_RUN, AFTER } from '../record/events.ts'
import { PAYLOAD_BYTES, payloadIf, readPayloadPage } from '../record/payloads.ts'
import { insertRows, withJson } from '../engine/rows.ts'
import { enqueueWork, removeWork } from '../engine/work.ts'
import type { ToolEventRow } from '../../approvals/approvals.ts'
import type { EventPage } from '../../record/events.ts'

export const simulationsActs = {
  ...read({
    findSimulation,
    listSimulations,
    countToolCalls,
    listToolCalls,
    listRunSteps,
    listCallingRuns,
    listRunPast,
  }),
  ...write({ createSimulation, cancelSimulation, reportSimulation, endSimulation }),
}

const COLUMNS =
  selectList(`id environment_id status condition severity action on_error days tool_labels flow created_at created_by ended_at
  scanned total error result`)

const WAITING = `status IN ('QUEUED', 'RUNNING')`

const toRow = withJson<SimulationRow>('result', 'toolLabels', 'flow')

async function createSimulation(
  sql: Sql,
  simulation: NewSimulationRow,
  bounds: { waiting: number; kept: number },
  audit: AuditEntry[],
): Promise<'created' | 'too_many'> {
  const { id, environmentId, createdAt } = simulation
  await lockEnvironment(sql, environmentId)
  const counted = `SELECT COUNT(*) AS count FROM simulations WHERE environment_id = :env AND ${WAITING}`
  if ((await countOf(sql, counted, { env: environmentId })) >= bounds.waiting) return 'too_many'
  await insertRows(sql, 'simulations', [{ ...simulation, status: 'QUEUED', scanned: 0 }])
  const forget = `DELETE FROM simulations WHERE environment_id = :env AND NOT ${WAITING} AND id <= (
    SELECT id FROM simulations WHERE environment_id = :env ORDER BY id DESC LIMIT 1 OFFSET :kept)`
  await sql.run(forget, { env: environmentId, kept: bounds.kept })
  await enqueueWork(sql, [{ kind: 'simulate', environmentId, subjectId: id, dueAt: createdAt }])
  await insertAudit(sql, audit)
  return 'created'
}

async function findSimulation(sql: Sql, environmentId: string, id: string): Promise<SimulationRow | null> {
  const text = `SELECT ${COLUMNS} FROM simulations WHERE environment_id = :env AND id = :id`
  const row = await sql.get<object>(text, { env: environmentId, id })
  return row && toRow(row)
}

async function listSimulations(sql: Sql, environmentId: string, { limit, after }: PageById) {
  const older = after === null ? '' : ' AND id < :after'
  const text = `SELECT ${COLUMNS} FROM simulations WHERE environment_id = :env${older} ORDER BY id DESC`
  return mapPage(await sql.page(text, { env: environmentId, after }, limit), toRow)
}

async function cancelSimulation(sql: Sql, environmentId: string, id: string, now: number, audit: AuditEntry[]) {
  const text = `UPDATE simulations SET status = 'CANCELLED', ended_at = :now
    WHERE environment_id = :env AND id = :id AND ${WAITING}`
  if ((await sql.run(text, { now, env: environmentId, id })) === 1) {
    await insertAudit(sql, audit)
    await removeWork(sql, { kind: 'simulate', environmentId, subjectId: id })
  }
  return findSimulation(sql, environmentId, id)
}

async function reportSimulation(sql: Sql, environmentId: string, id: string, { scanned, total }: SimulationProgress) {
  const text = `UPDATE simulations SET status = 'RUNNING', scanned = :scanned, total = :total
    WHERE environment_id = :env AND id = :id AND ${WAITING}`
  return (await sql.run(text, { scanned, total, env: environmentId, id })) === 1
}

async function endSimulation(sql: Sql, environmentId: string, id: string, end: SimulationEnd): Promise<void> {
  const set = end.status === 'DONE' ? 'scanned = :scanned, total = :scanned, result = :result' : 'error = :error'
  const values =
    end.status === 'DONE' ? { scanned: end.scanned, result: JSON.stringify(end.result) } : { error: end.error }
  const text = `UPDATE simulations SET status = :status, ended_at = :at, ${set}
    WHERE environment_id = :env AND id = :id AND ${WAITING}`
  await sql.run(text, { status: end.status, at: end.at, ...values, env: environmentId, id })
  await removeWork(sql, { kind: 'simulate', environmentId, subjectId: id })
}

// --- recorded calls. The conditions are those of two indexes, so that the planner finds them.

const OF_KIND: Record<CallKind, string> = {
  ran: "e.event_type = 'TOOL_CALL'",
  held: "e.event_type = 'POLICY_DECISION' AND e.problem IS NOT NULL",
}

export const CALL_COLUMNS = `e.time, r.id AS run, e.seq, r.run_id AS "runId", e.event_id AS "eventId", e.span_id AS "spanId",
  ${eventSession('r.session_id')} AS "sessionId", v.agent_id AS "agentId", v.agent_name AS "agentName"`

/** Leaves out events of removed runs that are not deleted yet. */
const NOT_REMOVED = 'NOT EXISTS (SELECT 1 FROM removed_runs g WHERE g.environment_id = :env AND g.number = e.run)'

async function countToolCalls(
  sql: Sql,
  environmentId: string,
  kind: CallKind,
  from: number,
  to: number,
): Promise<number> {
  const stored = `SELECT COUNT(*) FROM events e
    WHERE e.environment_id = ${eventEnvironment(sql)} AND ${OF_KIND[kind]}
      AND e.time >= :from AND e.time < :to`
  // If no runs were removed, the count needs only the index.
  const text = `SELECT CASE WHEN EXISTS (SELECT 1 FROM removed_runs WHERE environment_id = :env)
    THEN (${stored} AND ${NOT_REMOVED}) ELSE (${stored}) END AS count`
  return countOf(sql, text, { env: environmentId, from, to })
}

async function listToolCalls(sql: Sql, environmentId: string, { kind, from: start, to, after, ...page }: ToolCallPage) {
  const further = after ? ' AND (e.time, e.run, e.seq) > (:time, (SELECT number FROM run), :seq)' : ''
  const from = `FROM events e ${withEnvelope(sql)} LEFT JOIN runs r ON r.environment_id = :env AND r.number = e.run
    WHERE e.environment_id = ${eventEnvironment(sql)} AND ${OF_KIND[kind]}
      AND e.time >= :from AND e.time < :to${further}
      AND ${NOT_REMOVED}
    ORDER BY e.time, e.run, e.seq LIMIT :limit`
  const place = after && { time: after.time, run: after.run, seq: after.seq }
  const params = { env: environmentId, from: after?.time ?? start, to, ...place }
  const query = { start: after ? WITH_RUN : '', columns: CALL_COLUMNS, from, params }
  return (await readPayloadPage<ToolCallRow>(sql, query, page)).rows
}

async function listRunSteps(sql: Sql, environmentId: string, run: string, { after, before, ...page }: RunStepPage) {
  const further = after ? ` AND ${AFTER}` : ''
  const from = `FROM events e WHERE ${ofRun(sql)} AND (e.time, e.seq) < (:beforeTime, :beforeSeq)${further}
    AND event_type IN ('LLM_CALL', 'TOOL_CALL') ORDER BY e.time, e.seq LIMIT :limit`
  const of = { env: environmentId, run, beforeTime: before.time, beforeSeq: before.seq }
  const query = {
    start: WITH_RUN,
    columns: 'time, seq',
    payload: payloadIf("event_type = 'LLM_CALL'"),
    bytes: `CASE WHEN event_type = 'LLM_CALL' THEN ${PAYLOAD_BYTES} ELSE 0 END`,
    from,
    params: { ...of, time: after?.time, seq: after?.seq },
  }
  return (await readPayloadPage<RunStepRow>(sql, query, page)).rows
}

/** Runs with calls in this time, the newest first. */
async function listCallingRuns(sql: Sql, environmentId: string, from: number, to: number, limit: number) {
  const calls = (kind: CallKind) => `SELECT e.run FROM events e
    WHERE e.environment_id = ${eventEnvironment(sql)} AND ${OF_KIND[kind]} AND e.time >= :from AND e.time < :to`
  const text = `SELECT r.id AS run, c.calls FROM (
      SELECT run, COUNT(*) AS calls FROM (${calls('ran')} UNION ALL ${calls('held')}) k
      GROUP BY run ORDER BY run DESC LIMIT :limit) c
    JOIN runs r ON r.environment_id = :env AND r.number = c.run ORDER BY r.number DESC`
  return sql.all<CallingRun>(text, { env: environmentId, from, to, limit })
}

/** Lists the steps of a run before a time. */
async function listRunPast(sql: Sql, environmentId: string, run: string, { after, before, ...page }: RunStepPage) {
  const further = after ? ` AND ${AFTER}` : ''
  const from = `FROM events e ${withEnvelope(sql)} JOIN runs r ON r.environment_id = :env AND r.number = e.run
    WHERE ${ofRun(sql)} AND (e.time, e.seq) < (:beforeTime, :beforeSeq)${further}
      AND e.event_type IN ('USER_INPUT', 'LLM_CALL', 'POLICY_DECISION', 'TOOL_START', 'TOOL_CALL')
    ORDER BY e.time, e.seq LIMIT :limit`
  const columns = `${CALL_COLUMNS}, e.event_type AS "eventType", CASE WHEN ${OF_KIND.held} THEN 1 ELSE 0 END AS "isHeld"`
  const of = { env: environmentId, run, beforeTime: before.time, beforeSeq: before.seq }
  const params = { ...of, time: after?.time, seq: after?.seq }
  const { rows } = await readPayloadPage<PastRow>(sql, { start: WITH_RUN, columns, from, params }, page)
  return rows.map((row) => ({ ...row, isHeld: Number(row.isHeld) === 1 }))
}

/** Payloads do not leave this act. */

export const toolEventsActs = read({ listToolEvents })

type Read = Pick<ToolEventRow, 'seq' | 'eventId' | 'kind' | 'label' | 'time' | 'receivedAt'> & { payload: string }

async function listToolEvents(sql: Sql, environmentId: string, run: string, page: EventPage) {
  const after = page.after ? ` AND ${AFTER}` : ''
  const from = `FROM events e WHERE ${ofRun(sql)}${after}
    AND event_type IN ('TOOL_CALL', 'POLICY_DECISION') ORDER BY e.time, e.seq LIMIT :limit`
  const columns = 'seq, event_id AS "eventId", event_type AS kind, label, time, received_at AS "receivedAt"'
  const params = { env: environmentId, run, time: page.after?.time, seq: page.after?.seq }
  return mapPage(await readPayloadPage<Read>(sql, { start: WITH_RUN, columns, from, params }, page), toToolEvent)
}

function toToolEvent({ payload, ...row }: Read): ToolEventRow {
  const parsedPayload = JSON.parse(payload) as Record<string, unknown>
  const text = (name: string) => (typeof parsedPayload[name] === 'string' ? parsedPayload[name] : null)
  return {
    ...row,
    toolName: text('toolName'),
    inputHash: text('inputHash')?.toLowerCase() ?? null,
    approvalId: text('approvalId')?.toLowerCase() ?? null,
    action: row.kind === 'POLICY_DECISION' ? text('action') : null,
    outcome: outcomeOf(parsedPayload),
    neverRan: parsedPayload['outcome'] === 'never_ran',
  }
}

/** A null output is an output. A call that was cancelled or did not report may have worked. */
function outcomeOf(parsedPayload: Record<string, unknown>): ToolEventRow['outcome'] {
  const { outcome, error } = parsedPayload
  if (outcome === 'failed' || outcome === 'never_ran') return 'error'
  if (outcome === 'cancelled' || outcome === 'did_not_report') return 'unknown'
  if (outcome !== 'returned' && error !== undefined && error !== null && error !== false) return 'error'
  return 'output' in parsedPayload ? 'output' : 'unknown'
}
