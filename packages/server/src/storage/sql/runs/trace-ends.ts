/** The end of a trace whose topmost span is recorded elsewhere: see jobs/runs/end-traces.ts. */
import { read, write } from '../engine/act.ts'
import { DEFAULT_STALLED_RULE } from '../../data/stalled.ts'
import type { TraceSpan, UnendedTrace } from '../../runs/runs.ts'
import { ofRun, WITH_RUN } from '../record/events.ts'
import { selectList, type Sql } from '../engine/sql.ts'
import { enqueueWork } from '../engine/work.ts'
import { findByRunId, findRun } from './runs.ts'
import { readStalledRule } from './stalled-rule.ts'

export const traceEndsActs = { ...read({ readUnendedTrace }), ...write({ queueTraceEnds }) }

/** A trace with more is left to the stalled rule. */
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
