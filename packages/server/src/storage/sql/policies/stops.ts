/** Reads the stops of an environment; stop-and-resume.ts writes them. */
import { mapPage, type Page } from '../../engine/page.ts'
import { isStopped, type StopFilter, type StopPage, type StopRow, type StopSubject } from '../../policies/policies.ts'
import { lookup, read, selectList, type Sql } from '../engine/sql.ts'
import { inChunks, withJson } from '../engine/rows.ts'

export const stopsActs = { ...lookup({ findStopOver }), ...read({ listStops }) }

export const STOP_COLUMNS =
  selectList(`environment_id id scope target names reason stopped_at stopper_kind stopper_id stopped_by
  resumed_at resumed_by resume_reason`)

export const toStopRow = withJson<StopRow>('names')

export async function stopsInEffect(sql: Sql, environmentId: string): Promise<StopRow[]> {
  const text = `SELECT ${STOP_COLUMNS} FROM stops WHERE environment_id = :env AND resumed_at IS NULL ORDER BY id`
  return (await sql.all<object>(text, { env: environmentId })).map(toStopRow)
}

/** Newest first. */
async function listStops(
  sql: Sql,
  environmentId: string,
  { inEffect, run }: StopFilter,
  { limit, after }: StopPage,
): Promise<Page<StopRow> & { lookedTo?: { id: string } }> {
  const state = inEffect ? ' AND resumed_at IS NULL' : ''
  const further = after ? ' AND id < :id' : ''
  const text = `SELECT ${STOP_COLUMNS} FROM stops WHERE environment_id = :env${state}${further} ORDER BY id DESC`
  const page = mapPage(await sql.page<object>(text, { env: environmentId, id: after?.id }, limit), toStopRow)
  if (run === undefined) return page
  const stored = await sql.get<{ startedAt: number; endedAt: number | null }>(
    'SELECT started_at AS "startedAt", ended_at AS "endedAt" FROM runs WHERE environment_id = :env AND run_id = :run',
    { env: environmentId, run },
  )
  const subject = await subjectOf(sql, environmentId, { runId: run, sessionId: null, agentId: null })
  const overlaps = ({ stoppedAt, resumedAt }: StopRow) =>
    stored === null ||
    (stoppedAt <= (stored.endedAt ?? Infinity) && (resumedAt === null || resumedAt >= stored.startedAt))
  const last = page.rows.at(-1)
  const rows = page.rows.filter((row) => isStopped(row, subject) && overlaps(row))
  return { ...page, rows, ...(last && { lookedTo: { id: last.id } }) }
}

interface Asking {
  runId: string | null
  sessionId: string | null
  agentId: string | null
}

interface OfRun {
  runId: string
  sessionId: string | null
  externalId: string | null
  name: string
}

/** The subject also has the session and the agent that the run reports. */
async function subjectOf(sql: Sql, environmentId: string, asking: Asking): Promise<StopSubject> {
  const [subject] = await subjectsOf(sql, environmentId, [asking])
  return subject ?? subjectIn(new Map(), asking)
}

async function subjectsOf(sql: Sql, environmentId: string, asking: readonly Asking[]): Promise<StopSubject[]> {
  const text = `SELECT r.run_id AS "runId", r.session_id AS "sessionId", a.external_id AS "externalId", a.name FROM runs r
    JOIN agents a ON a.environment_id = r.environment_id AND a.id = r.agent_id
    WHERE r.environment_id = :env AND r.run_id IN (:runIds)`
  const runIds = asking.flatMap(({ runId }) => (runId === null ? [] : [runId]))
  const rows = await inChunks(runIds, (chunk) => sql.all<OfRun>(text, { env: environmentId, runIds: chunk }))
  const runs = new Map(rows.map((run) => [run.runId, run]))
  return asking.map((one) => subjectIn(runs, one))
}

function subjectIn(runs: ReadonlyMap<string, OfRun>, { runId, sessionId, agentId }: Asking): StopSubject {
  const run = runId === null ? undefined : runs.get(runId)
  return {
    runId,
    sessionIds: [sessionId, run?.sessionId ?? null],
    agents: [agentId, run?.externalId ?? null, run?.name ?? null],
  }
}

/** A stop in effect that covers a request; null: none does. */
export async function findStopOver(sql: Sql, environmentId: string, asking: Asking): Promise<StopRow | null> {
  const [stop] = await findStopsOver(sql, environmentId, [asking])
  return stop ?? null
}

/** Finds for each request a stop in effect that covers it. */
export async function findStopsOver(
  sql: Sql,
  environmentId: string,
  asking: readonly Asking[],
): Promise<(StopRow | null)[]> {
  const inEffect = await stopsInEffect(sql, environmentId)
  if (inEffect.length === 0) return asking.map(() => null)
  const subjects = await subjectsOf(sql, environmentId, asking)
  return subjects.map((subject) => inEffect.find((one) => isStopped(one, subject)) ?? null)
}
