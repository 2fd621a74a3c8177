/** The statements of the hot path. */
import { textKey } from '../sql/keys.ts'
import { MAX_SUM } from '../sql/sums.ts'
import type { HourChange, RunChange, Tally } from '../sql/tally.ts'
import type { NewEvent } from '../storage.ts'
import type { Database } from './database.ts'
import type { KnownAgent, KnownRows, KnownRun } from './known-rows.ts'

export interface RowWriter {
  /** The seq of the new row, null when the run has an event of that id. */
  event(environmentId: string, run: string, receivedAt: number, event: NewEvent): number | null
  /** Whether the stored event of that id has the same content; null when there is none. */
  sameEvent(environmentId: string, run: string, event: NewEvent): boolean | null
  changes(environmentId: string, changes: Changes, known: KnownRows): void
}

/** What a transaction changes in one environment, written at its end. */
export interface Changes {
  tally: Tally
  /** By internal id. */
  runs: Map<string, KnownRun>
  agents: Set<KnownAgent>
}

const CONTENT = `time, client_id, session_id, agent_id, agent_name, event_type, label, span_id, parent_span_id,
  schema_version, payload`.split(/,\s*/)

/** Order of CONTENT. */
function contentOf(event: NewEvent) {
  const { time, clientId, sessionId, agentId, agentName, eventType, label, payload } = event
  const spans = [event.spanId, event.parentSpanId, event.schemaVersion]
  return [time, clientId, sessionId, agentId, agentName, eventType, label, ...spans, payload]
}

const adding = (column: string) =>
  `${column} = CASE WHEN ${column} > ${MAX_SUM} - @${column} THEN ${MAX_SUM} ELSE ${column} + @${column} END`
const SUMS = ['prompt_tokens', 'completion_tokens', 'total_tokens', 'cost_nanos']

export function rowWriter(db: Database): RowWriter {
  const insertEvent = db.prepare(
    `INSERT INTO events (environment_id, run_id, event_id, received_at, ${CONTENT.join(', ')})
      VALUES (?, ?, ?, ?, ${CONTENT.map(() => '?').join(', ')})
      ON CONFLICT (environment_id, run_id, event_id) DO NOTHING`,
  )
  const selectSame = db
    .prepare<unknown[], number>(
      `SELECT ${CONTENT.map((column) => `${column} IS ?`).join(' AND ')}
        FROM events WHERE environment_id = ? AND run_id = ? AND event_id = ?`,
    )
    .pluck()
  const insertRun = db.prepare(
    `INSERT INTO runs (environment_id, id, run_id, agent_id, status, started_at, session_key, last_event_at,
        received_at, event_count, differing_retries, prompt_tokens, completion_tokens, total_tokens, cost_nanos,
        ended_at, closing_seq, session_id)
      VALUES (@environment_id, @id, @run_id, @agent_id, @status, @started_at, @session_key, @last_event_at,
        @received_at, @event_count, @differing_retries, @prompt_tokens, @completion_tokens, @total_tokens,
        @cost_nanos, @ended_at, @closing_seq, @session_id)`,
  )
  // Two statements, because SQLite rewrites every index that has a column named in SET, changed or not.
  const addToRun = db.prepare(
    `UPDATE runs SET event_count = event_count + @event_count,
        differing_retries = differing_retries + @differing_retries,
        last_event_at = CASE WHEN last_event_at < @last_event_at THEN @last_event_at ELSE last_event_at END,
        ${SUMS.map(adding).join(', ')}
      WHERE environment_id = @environment_id AND id = @id`,
  )
  const changeRun = db.prepare(
    `UPDATE runs SET status = @status, started_at = @started_at, session_key = COALESCE(session_key, @session_key),
        session_id = COALESCE(session_id, @session_id), ended_at = COALESCE(ended_at, @ended_at),
        closing_seq = COALESCE(closing_seq, @closing_seq)
      WHERE environment_id = @environment_id AND id = @id`,
  )
  const insertAgent = db.prepare(
    `INSERT INTO agents (environment_id, id, agent_key, external_id, name, name_time) VALUES (?, ?, ?, ?, ?, ?)`,
  )
  const renameAgent = db.prepare('UPDATE agents SET name = ?, name_time = ? WHERE environment_id = ? AND id = ?')
  const addToHour = db.prepare(
    `INSERT INTO usage_hours AS h (environment_id, hour, agent_id, model_key, slot, events, ${SUMS.join(', ')})
      VALUES (@environment_id, @hour, @agent_id, @model_key, 0, @events, ${SUMS.map((sum) => `@${sum}`).join(', ')})
      ON CONFLICT (environment_id, hour, agent_id, model_key, slot)
      DO UPDATE SET events = events + @events, ${SUMS.map(adding).join(', ')}`,
  )

  function writeAgent(environmentId: string, agent: KnownAgent) {
    const { id, key, externalId, name, nameTime } = agent
    if (agent.isNew) insertAgent.run(environmentId, id, key, externalId, name, nameTime)
    else renameAgent.run(name, nameTime, environmentId, id)
    agent.isNew = false
  }

  function writeRun(environmentId: string, run: KnownRun, change: RunChange) {
    const closing = run.status === 'RUNNING' ? change.outcome : null
    const opening = run.hasSession ? null : change.sessionId
    const earlier = change.firstTime < run.startedAt
    run.status = closing?.status ?? run.status
    run.hasSession ||= opening !== null
    if (earlier) run.startedAt = change.firstTime
    const sums = {
      environment_id: environmentId,
      id: run.id,
      event_count: change.events,
      differing_retries: change.differingRetries,
      last_event_at: change.lastTime,
      ...sumsOf(change),
    }
    const state = {
      environment_id: environmentId,
      id: run.id,
      status: run.status,
      started_at: run.startedAt,
      session_key: opening === null ? null : textKey(opening),
      session_id: opening,
      ended_at: closing?.time ?? null,
      closing_seq: closing?.seq ?? null,
    }
    if (run.isNew) {
      insertRun.run({ ...sums, ...state, run_id: run.runId, agent_id: run.agentId, received_at: run.receivedAt })
    } else {
      addToRun.run(sums)
      if (closing || opening !== null || earlier) changeRun.run(state)
    }
    run.isNew = false
  }

  function writeHour(environmentId: string, modelKey: string, change: HourChange) {
    const { hour, agentId, events } = change
    addToHour.run({
      environment_id: environmentId,
      hour,
      agent_id: agentId,
      model_key: modelKey,
      events,
      ...sumsOf(change),
    })
  }

  return {
    event(environmentId, run, receivedAt, event) {
      const { changes, lastInsertRowid } = insertEvent.run(
        environmentId,
        run,
        event.eventId,
        receivedAt,
        ...contentOf(event),
      )
      return changes === 0 ? null : Number(lastInsertRowid)
    },
    sameEvent(environmentId, run, event) {
      const same = selectSame.get(...contentOf(event), environmentId, run, event.eventId)
      return same === undefined ? null : same === 1
    },
    changes(environmentId, { tally, runs, agents }, known) {
      for (const agent of agents) writeAgent(environmentId, agent)
      for (const [id, change] of tally.runs) {
        const run = runs.get(id)
        if (run) writeRun(environmentId, run, change)
      }
      for (const change of tally.hours.values()) {
        writeHour(environmentId, known.modelKey(environmentId, change.model), change)
      }
    },
  }
}

function sumsOf({ promptTokens, completionTokens, totalTokens, costNanos }: RunChange | HourChange) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: totalTokens,
    cost_nanos: costNanos,
  }
}
