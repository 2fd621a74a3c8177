/** What stored events change in other rows, written once at the end of a transaction. */
import { textKey } from '../sql/keys.ts'
import { MAX_SUM } from '../sql/sums.ts'
import type { RunChange, Tally } from '../sql/issues/tally.ts'
import type { Database } from './database.ts'
import type { KnownAgent, KnownRows, KnownRun } from './known-rows.ts'

/** The changes of one environment. */
export interface Changes {
  tally: Tally
  /** By internal id. */
  runs: Map<string, KnownRun>
  agents: Set<KnownAgent>
}

/** Column of a sum, and its name in a change. */
const SUMS = [
  ['prompt_tokens', 'promptTokens'],
  ['completion_tokens', 'completionTokens'],
  ['total_tokens', 'totalTokens'],
  ['cost_nanos', 'costNanos'],
] as const

const ADD_SUMS = SUMS.map(
  ([column, name]) =>
    `${column} = CASE WHEN ${column} > ${MAX_SUM} - @${name} THEN ${MAX_SUM} ELSE ${column} + @${name} END`,
).join(', ')
const SUM_COLUMNS = SUMS.map(([column]) => column).join(', ')
const SUM_VALUES = SUMS.map(([, name]) => `@${name}`).join(', ')

export function changedRows(db: Database) {
  const insertAgent = db.prepare(
    `INSERT INTO agents (environment_id, id, agent_key, external_id, name, name_time)
      VALUES (@environmentId, @id, @key, @externalId, @name, @nameTime)`,
  )
  const renameAgent = db.prepare(
    'UPDATE agents SET name = @name, name_time = @nameTime WHERE environment_id = @environmentId AND id = @id',
  )
  const insertRun = db.prepare(
    `INSERT INTO runs (environment_id, id, run_id, agent_id, status, started_at, session_key, last_event_at,
        received_at, event_count, differing_retries, ${SUM_COLUMNS}, ended_at, closing_seq, session_id)
      VALUES (@environmentId, @id, @runId, @agentId, @status, @startedAt, @sessionKey, @lastTime,
        @receivedAt, @events, @differingRetries, ${SUM_VALUES}, @endedAt, @closingSeq, @sessionId)`,
  )
  // Two statements, because SQLite rewrites every index that has a column named in SET, changed or not.
  const addToRun = db.prepare(
    `UPDATE runs SET event_count = event_count + @events, differing_retries = differing_retries + @differingRetries,
        last_event_at = CASE WHEN last_event_at < @lastTime THEN @lastTime ELSE last_event_at END, ${ADD_SUMS}
      WHERE environment_id = @environmentId AND id = @id`,
  )
  const changeRun = db.prepare(
    `UPDATE runs SET status = @status, started_at = @startedAt, session_key = COALESCE(session_key, @sessionKey),
        session_id = COALESCE(session_id, @sessionId), ended_at = COALESCE(ended_at, @endedAt),
        closing_seq = COALESCE(closing_seq, @closingSeq)
      WHERE environment_id = @environmentId AND id = @id`,
  )
  const addToHour = db.prepare(
    `INSERT INTO usage_hours (environment_id, hour, agent_id, model_key, slot, events, ${SUM_COLUMNS})
      VALUES (@environmentId, @hour, @agentId, @modelKey, 0, @events, ${SUM_VALUES})
      ON CONFLICT (environment_id, hour, agent_id, model_key, slot)
      DO UPDATE SET events = events + @events, ${ADD_SUMS}`,
  )

  function writeAgent(environmentId: string, agent: KnownAgent) {
    const statement = agent.isNew ? insertAgent : renameAgent
    statement.run({ environmentId, ...agent })
    agent.isNew = false
  }

  /**
   * RUNNING --first valid outcome--> COMPLETED | FAILED | CANCELLED. Nothing leaves those; later events only add usage,
   * and may lower the start.
   */
  function writeRun(environmentId: string, run: KnownRun, change: RunChange) {
    const closing = run.status === 'RUNNING' ? change.outcome : null
    const sessionId = run.hasSession ? null : change.sessionId
    const startsEarlier = change.firstTime < run.startedAt
    if (closing) run.status = closing.status
    if (sessionId !== null) run.hasSession = true
    if (startsEarlier) run.startedAt = change.firstTime
    const row = {
      environmentId,
      ...change,
      ...run,
      sessionId,
      sessionKey: sessionId === null ? null : textKey(sessionId),
      endedAt: closing?.time ?? null,
      closingSeq: closing?.seq ?? null,
    }
    if (run.isNew) insertRun.run(row)
    else {
      addToRun.run(row)
      if (closing || sessionId !== null || startsEarlier) changeRun.run(row)
    }
    run.isNew = false
  }

  return function write(environmentId: string, { tally, runs, agents }: Changes, known: KnownRows): void {
    for (const agent of agents) writeAgent(environmentId, agent)
    for (const [id, change] of tally.runs) {
      const run = runs.get(id)
      if (run) writeRun(environmentId, run, change)
    }
    for (const change of tally.hours.values()) {
      addToHour.run({ environmentId, ...change, modelKey: known.modelKey(environmentId, change.model) })
    }
  }
}
