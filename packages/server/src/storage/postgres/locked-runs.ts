/** Runs that a transaction holds: read whole under the lock, changed here, and written whole. */
import { randomUUIDv7 } from 'node:crypto'
import type { RunStatus } from '@tacho/contract/run.ts'
import type { ClientBase } from 'pg'
import { textKey } from '../sql/keys.ts'
import { addUsage, noUsage, type UsageSums } from '../sql/sums.ts'
import type { RunChange, Tally } from '../sql/tally.ts'
import type { Row } from './row-writes.ts'
import { statement } from './statement.ts'

export interface LockedRun extends UsageSums {
  id: string
  runId: string
  agentId: string
  receivedAt: number
  /** Not in the database yet. Its id is known to nobody else, so its events need no lock. */
  isNew: boolean
  status: RunStatus
  startedAt: number
  lastEventAt: number
  endedAt: number | null
  closingSeq: number | null
  eventCount: number
  differingRetries: number
  /** The largest seq given out. */
  lastSeq: number
  hasSession: boolean
}

const LOCK =
  statement(`SELECT id, run_id AS "runId", agent_id AS "agentId", received_at AS "receivedAt", false AS "isNew",
    status, started_at AS "startedAt", last_event_at AS "lastEventAt", ended_at AS "endedAt",
    closing_seq AS "closingSeq", event_count AS "eventCount", differing_retries AS "differingRetries",
    last_seq AS "lastSeq", session_key IS NOT NULL AS "hasSession", prompt_tokens AS "promptTokens",
    completion_tokens AS "completionTokens", total_tokens AS "totalTokens", cost_nanos AS "costNanos"
  FROM runs WHERE environment_id = $1 AND run_id = ANY($2) ORDER BY run_id FOR NO KEY UPDATE`)

/** Locks those of the runs that exist, by external id. */
export async function lockRuns(
  client: ClientBase,
  environmentId: string,
  runIds: Iterable<string>,
): Promise<Map<string, LockedRun>> {
  const { rows } = await client.query<LockedRun>({ ...LOCK, values: [environmentId, [...runIds]] })
  return new Map(rows.map((run) => [run.runId, run]))
}

export function openRun(runId: string, agentId: string, receivedAt: number): LockedRun {
  return {
    id: randomUUIDv7(),
    runId,
    agentId,
    receivedAt,
    isNew: true,
    status: 'RUNNING',
    startedAt: Infinity,
    lastEventAt: -Infinity,
    endedAt: null,
    closingSeq: null,
    eventCount: 0,
    differingRetries: 0,
    lastSeq: 0,
    hasSession: false,
    ...noUsage(),
  }
}

/** The rows that the counted changes make of the runs, in the order in which they are locked. */
export function changedRuns(runs: Map<string, LockedRun>, { runs: changes }: Tally) {
  const rows = { newRuns: [] as Row[], runs: [] as Row[] }
  for (const run of [...runs.values()].toSorted(byRunId)) {
    const change = changes.get(run.id)
    if (change === undefined) continue
    const state = changedRow(run, change)
    if (run.isNew) rows.newRuns.push([...state, run.runId, run.agentId, run.receivedAt])
    else rows.runs.push(state)
  }
  return rows
}

/** In the order of the columns of row-writes.ts. */
function changedRow(run: LockedRun, change: RunChange): Row {
  const closing = run.status === 'RUNNING' ? change.outcome : null
  const session = run.hasSession ? null : change.sessionId
  addUsage(run, { ...change, model: '' })
  return [
    run.id,
    closing?.status ?? run.status,
    Math.min(run.startedAt, change.firstTime),
    Math.max(run.lastEventAt, change.lastTime),
    closing?.time ?? run.endedAt,
    closing?.seq ?? run.closingSeq,
    run.eventCount + change.events,
    run.differingRetries + change.differingRetries,
    run.lastSeq,
    run.promptTokens,
    run.completionTokens,
    run.totalTokens,
    run.costNanos,
    session === null ? null : textKey(session),
    session,
  ]
}

/** Any order will do that every node of every version keeps: texts by UTF-16 code units. */
function byRunId(a: LockedRun, b: LockedRun): number {
  return a.runId < b.runId ? -1 : 1
}
