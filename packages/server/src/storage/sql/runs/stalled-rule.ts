/**
 * The stalled rule of an environment. No event is made up: the row of a run says that the rule closed it.
 *
 *   RUNNING --no event for the time of the rule, no pending approval--> closed by the rule --an outcome--> closed by it
 *      ^--------------------------------- any other event -----------------------|
 *
 * A run whose newest event is WAITING stays open.
 */
import type { RunStatus } from '@tacho/contract/runs/run.ts'
import type { AuditEntry } from '../../people/operators.ts'
import type { RunPlace, TraceSpan, UnendedTrace } from '../../runs/runs.ts'
import { closeAfterMinutes, DEFAULT_STALLED_RULE, type StalledRuleRow } from '../../data/retention.ts'
import { changesRuns, lookup, read, write, selectList, type Sql, eventEnvironment } from '../engine/sql.ts'
import type { RunState } from '../record/run-state.ts'
import { insertAudit } from '../people/audit.ts'
import { allIn, insertRows, replacing } from '../engine/rows.ts'
import { ofRun, WITH_RUN } from '../record/events.ts'
import { textKey } from '../engine/keys.ts'
import { lockRuns } from '../engine/revision.ts'
import { askedSince, findByRunId, findRun, isPaused, readStalledRule, stalledBefore, WAITED_FOR } from './runs.ts'
import { countRun, noCounts, slotOf, writeCounts } from './usage-counts.ts'
import { failureSubject } from '../../issues/issues.ts'
import { enqueueWork, RESTARTS } from '../engine/work.ts'

export const stalledActs = {
  ...lookup({ readActivityRule }),
  ...read({ readStalledRule }),
  ...write({ changeStalledRule }),
  closeStalledRuns: changesRuns(closeStalledRuns, ({ changedRunIds }) => changedRunIds),
}

async function changeStalledRule(
  sql: Sql,
  environmentId: string,
  { idleMinutes, closeAs }: StalledRuleRow,
  now: number,
  audit: AuditEntry[],
): Promise<void> {
  const replaced = `ON CONFLICT (environment_id) ${replacing(['idle_minutes', 'close_as', 'row_sum'])}`
  await insertRows(sql, 'stalled_rules', [{ environmentId, idleMinutes, closeAs }], replaced)
  const work = { kind: 'close_stalled', environmentId, subjectId: environmentId, dueAt: now } as const
  if (closeAs !== null) await enqueueWork(sql, [work], RESTARTS)
  await insertAudit(sql, audit)
}

async function readActivityRule(sql: Sql, environmentId: string, runIds: string[], now: number) {
  const [before, waiting, paused] = await Promise.all([
    stalledBefore(sql, environmentId, now),
    findWaitingRuns(sql, environmentId, runIds, { now, askedSince: askedSince(now) }),
    findPausedRuns(sql, environmentId, runIds),
  ])
  return { stalledBefore: before, waiting: [...new Set([...waiting, ...paused])] }
}

async function findPausedRuns(sql: Sql, environmentId: string, runIds: string[]): Promise<string[]> {
  const text = `SELECT run_id AS "runId" FROM runs WHERE environment_id = :env AND run_id IN (:runIds)
    AND status = 'RUNNING' AND ${isPaused(sql)}`
  return (await allIn<{ runId: string }>(sql, text, { env: environmentId, runIds })).map(({ runId }) => runId)
}

async function findWaitingRuns(
  sql: Sql,
  environmentId: string,
  runIds: string[],
  since: { now: number; askedSince: number },
): Promise<string[]> {
  const text = `SELECT run_key AS key FROM approvals WHERE environment_id = :env AND run_key IN (:runKeys) AND ${WAITED_FOR}`
  const runKeys = runIds.map(textKey)
  const keys = await allIn<{ key: string }>(sql, text, { env: environmentId, runKeys, ...since })
  const waiting = new Set(keys.map(({ key }) => key))
  return runIds.filter((runId) => waiting.has(textKey(runId)))
}

const EXAMINED = 200

type Idle = Pick<RunState, 'id' | 'number' | 'runId' | 'agentId' | 'status' | 'startedAt' | 'lastEventAt'>

const COLUMNS = selectList('id number run_id agent_id status started_at last_event_at')

async function closeStalledRuns(sql: Sql, environmentId: string, now: number, after: RunPlace | null) {
  const environmentRule = await readStalledRule(sql, environmentId)
  const { closeAs } = environmentRule ?? DEFAULT_STALLED_RULE
  if (closeAs === null) return { isOn: false, changedRunIds: [], after: null, nextAt: null }
  const idleMs = closeAfterMinutes(environmentRule) * 60_000
  const before = now - idleMs
  const later = after === null ? '' : 'AND (started_at, id) > (:startedAt, :id)'
  const text = `SELECT ${COLUMNS} FROM runs WHERE environment_id = :env AND status = 'RUNNING' AND started_at < :before ${later}
    ORDER BY started_at, id LIMIT ${EXAMINED}`
  const place = { startedAt: after?.startedAt, id: after?.id }
  const examined = await sql.all<Idle>(text, { env: environmentId, before, ...place })
  if (examined.length === 0 && after === null) {
    return { isOn: true, changedRunIds: [], after: null, nextAt: await earliestDue(sql, environmentId, now, idleMs) }
  }
  const last = examined.length < EXAMINED ? undefined : examined.at(-1)
  const closed = await lockIdle(sql, environmentId, examined, before, now)
  // Close runs one by one: for a list, PostgreSQL may read all rows of the environment.
  const close = `UPDATE runs SET status = :closeAs, ended_at = last_event_at, rule_closed_at = :now
    WHERE environment_id = :env AND id = :id`
  await Promise.all(closed.map(({ id }) => sql.run(close, { closeAs, now, env: environmentId, id })))
  await countClosed(sql, environmentId, closed, closeAs)
  const work = closed.map(({ id }) => {
    return { kind: 'find_failures' as const, environmentId, subjectId: failureSubject(id, null), dueAt: now }
  })
  await enqueueWork(sql, work)
  return {
    isOn: true,
    changedRunIds: closed.map(({ runId }) => runId),
    after: last ? { startedAt: last.startedAt, id: last.id } : null,
    nextAt: null,
  }
}

/** A run that opens now cannot be due earlier than `idleMs` later, whatever the times of its events. */
async function earliestDue(sql: Sql, environmentId: string, now: number, idleMs: number): Promise<number> {
  const text = `SELECT started_at AS "startedAt" FROM runs WHERE environment_id = :env AND status = 'RUNNING'
    ORDER BY started_at, id LIMIT 1`
  const first = await sql.get<{ startedAt: number }>(text, { env: environmentId })
  return Math.min(now, first?.startedAt ?? now) + idleMs
}

async function lockIdle(sql: Sql, environmentId: string, examined: Idle[], before: number, now: number) {
  const isIdle = ({ lastEventAt }: Idle) => lastEventAt < before
  const idle = examined.filter(isIdle)
  const runIds = idle.map(({ runId }) => runId)
  // `askedSince: 0`: a client that cannot reach the service for half a minute still counts as waiting.
  const waiting = new Set(await findWaitingRuns(sql, environmentId, runIds, { now, askedSince: 0 }))
  const ids = idle.filter(({ runId }) => !waiting.has(runId)).map(({ id }) => id)
  const locked = await lockRuns<Idle>(sql, environmentId, ids, COLUMNS)
  const stalled: Idle[] = []
  for (const run of locked.filter((each) => isIdle(each) && each.status === 'RUNNING')) {
    // Clients name the times of events. A run with an event that arrived lately is not stalled, however old the event claims to be.
    const newest = `SELECT received_at AS at, event_type AS "eventType" FROM events WHERE environment_id = ${eventEnvironment(sql)} AND run = :number
      ORDER BY time DESC, seq DESC LIMIT 1`
    const event = await sql.get<{ at: number; eventType: string }>(newest, { env: environmentId, number: run.number })
    // A person decides in the framework of the agent: that may take days.
    const isWaiting = event?.eventType === 'WAITING'
    if (event === null || (event.at < before && !isWaiting)) stalled.push(run)
  }
  return stalled
}

async function countClosed(sql: Sql, environmentId: string, runs: Idle[], status: RunStatus): Promise<void> {
  const counts = noCounts()
  for (const run of runs) {
    countRun(counts, run, -1)
    countRun(counts, { ...run, status }, 1)
  }
  const noNames = { models: new Map(), tools: new Map() }
  await Promise.all(writeCounts(sql, environmentId, counts, noNames, slotOf(sql, 'stalledRule')))
}

/** The end of a trace whose topmost span is recorded elsewhere: see jobs/runs/end-runs.ts. */

export const traceEndsActs = { ...read({ readUnendedTrace }), ...write({ queueTraceEnds }) }

/** A trace with more spans is left to the stalled rule. */
const SPANS_MAX = 10_000

async function queueTraceEnds(sql: Sql, environmentId: string, runIds: string[], dueAt: number): Promise<void> {
  const work = []
  for (const runId of runIds) {
    const run = await findByRunId(sql, environmentId, runId)
    if (run?.status === 'RUNNING') work.push({ kind: 'end_trace' as const, environmentId, subjectId: run.id, dueAt })
  }
  await enqueueWork(sql, work)
}

/** Null: an outcome has ended it, or it is too long. */
async function readUnendedTrace(sql: Sql, environmentId: string, id: string): Promise<UnendedTrace | null> {
  const run = await findRun(sql, environmentId, id)
  if (run === null || (run.status !== 'RUNNING' && run.ruleClosedAt === null)) return null
  const text = `${WITH_RUN} SELECT ${selectList('event_id event_type span_id parent_span_id time received_at', 'e.')},
      COALESCE(e.latency_us, 0) AS "latencyMicros"
    FROM events e WHERE ${ofRun(sql)} LIMIT ${SPANS_MAX}`
  const spans = await sql.all<TraceSpan>(text, { env: environmentId, run: run.id })
  if (spans.length === SPANS_MAX) return null
  const { idleMinutes } = (await readStalledRule(sql, environmentId)) ?? DEFAULT_STALLED_RULE
  return { runId: run.runId, spans, idleMs: Math.min(idleMinutes, DEFAULT_STALLED_RULE.idleMinutes) * 60_000 }
}
