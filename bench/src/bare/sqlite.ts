/**
 * The limit of the embedded engine: one process that writes the same rows into the same schema through better-sqlite3,
 * with the server's durability, checkpoints and events per commit, and does nothing else.
 */
import { hash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { checkpointer } from '@tacho/server/storage/sqlite/checkpoint.ts'
import { openDatabase } from '@tacho/server/storage/sqlite/database.ts'
import { migrate } from '@tacho/server/storage/sqlite/migrate.ts'
import { answer } from '../child.ts'
import { BATCH_EVENTS } from '../load/events.ts'
import type { Plot } from '../load/shapes.ts'
import { timesOf, type Times } from '../stats.ts'
import { agentUuid, ENVIRONMENT, hoursOf, rowMaker, sumsOf, usageOf, type EventRow, type Recorded } from './rows.ts'

export interface BareWrites {
  file: string
  plot: Plot
  seconds: number
  eventsPerCommit: number
  /** As many commits a second; as many as it takes where none is given. */
  perSecond?: number
}

export interface BareWritten extends Recorded {
  /** Of whole commits. */
  times: Times
}

const stores = new Map<string, ReturnType<typeof openStore>>()

answer<BareWrites, BareWritten>(async ({ file, plot, seconds, eventsPerCommit, perSecond }) => {
  const store = stores.get(file) ?? openStore(file, plot)
  stores.set(file, store)
  const took: number[] = []
  const begun = performance.now()
  let [events, busyMs, cpuUs] = [0, 0, 0]
  // Making the rows is not the driver's work, so that time is not counted.
  for (let commits = 1; (perSecond === undefined ? busyMs : performance.now() - begun) < seconds * 1000; commits++) {
    const rows: EventRow[] = []
    // Whole requests, so that the mean is as asked for.
    while (events + rows.length + BATCH_EVENTS / 2 < commits * eventsPerCommit) rows.push(...store.nextRows())
    if (perSecond !== undefined) await sleep(Math.max(0, begun + (commits * 1000) / perSecond - performance.now()))
    const [from, cpuFrom] = [performance.now(), process.cpuUsage()]
    store.commit(rows)
    const ms = performance.now() - from
    const { user, system } = process.cpuUsage(cpuFrom)
    cpuUs += user + system
    took.push(ms)
    busyMs += ms
    events += rows.length
  }
  return { eventsPerSecond: (events * 1000) / busyMs, cpuUsPerEvent: cpuUs / events, times: timesOf(took) }
})

function openStore(file: string, plot: Plot) {
  const db = openDatabase(file)
  migrate(db)
  const checkpoint = checkpointer(db)
  const rowsOf = rowMaker(plot)
  const insertEvent = db.prepare(`INSERT INTO events (environment_id, run_id, event_id, received_at, time, client_id,
    session_id, agent_id, agent_name, event_type, label, span_id, parent_span_id, schema_version, payload)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?, ?)`)
  const insertRun = db.prepare(`INSERT INTO runs (environment_id, id, run_id, agent_id, status, started_at, session_key,
    last_event_at, received_at, event_count, differing_retries, prompt_tokens, completion_tokens, total_tokens,
    cost_nanos, ended_at, closing_seq, session_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?)`)
  const addToRun = db.prepare(`UPDATE runs SET event_count = event_count + ?, last_event_at = ?,
    prompt_tokens = prompt_tokens + ?, completion_tokens = completion_tokens + ?, total_tokens = total_tokens + ?,
    cost_nanos = cost_nanos + ? WHERE environment_id = ? AND id = ?`)
  const addToHour = db.prepare(`INSERT INTO usage_hours AS h (environment_id, hour, agent_id, model_key, slot, events,
    prompt_tokens, completion_tokens, total_tokens, cost_nanos) VALUES (?, ?, ?, ?, 0, ?, ?, ?, ?, ?)
    ON CONFLICT (environment_id, hour, agent_id, model_key, slot) DO UPDATE SET events = events + excluded.events,
    prompt_tokens = prompt_tokens + excluded.prompt_tokens,
    completion_tokens = completion_tokens + excluded.completion_tokens,
    total_tokens = total_tokens + excluded.total_tokens, cost_nanos = cost_nanos + excluded.cost_nanos`)
  const writeAgent = db.prepare(`INSERT INTO agents (environment_id, id, agent_key, external_id, name, name_time)
    VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (environment_id, id) DO UPDATE SET name_time = excluded.name_time`)
  const modelKeys = new Map([['', '']])
  let requests = 0

  function modelKey(model: string): string {
    let key = modelKeys.get(model)
    if (key === undefined) modelKeys.set(model, (key = hash('sha256', model)))
    return key
  }

  function write(rows: readonly EventRow[]): void {
    const receivedAt = Date.now()
    let seq: number | bigint = 0
    for (const row of rows) {
      seq = insertEvent.run(
        ENVIRONMENT,
        row.run.id,
        row.eventId,
        receivedAt,
        row.time,
        row.clientId,
        row.sessionId,
        row.agentId,
        row.agentName,
        row.type,
        row.label,
        row.spanId,
        row.schemaVersion,
        row.payload,
      ).lastInsertRowid
    }
    const sums = sumsOf(rows)
    for (const { run, events, lastTime, outcome, calls } of sums) {
      const usage = usageOf(calls)
      if (run.stored) addToRun.run(events, lastTime, ...usage, ENVIRONMENT, run.id)
      else {
        insertRun.run(
          ENVIRONMENT,
          run.id,
          run.runId,
          agentUuid(run.agent),
          outcome ?? 'RUNNING',
          run.startedAt,
          hash('sha256', run.sessionId),
          lastTime,
          receivedAt,
          events,
          ...usage,
          outcome === null ? null : lastTime,
          outcome === null ? null : seq,
          run.sessionId,
        )
      }
      run.stored = true
    }
    const agents = new Map(sums.map(({ run, lastTime }) => [run.agent, lastTime]))
    for (const [agent, time] of agents) {
      writeAgent.run(ENVIRONMENT, agentUuid(agent), hash('sha256', `agent ${agent}`), `agent-${agent}`, 'Agent', time)
    }
    for (const { agent, hour, model, events } of hoursOf(sums)) {
      addToHour.run(ENVIRONMENT, hour, agentUuid(agent), modelKey(model), events, ...usageOf(model === '' ? 0 : events))
    }
  }

  return {
    nextRows: () => rowsOf(requests++),
    commit(rows: readonly EventRow[]): void {
      db.exec('BEGIN IMMEDIATE')
      write(rows)
      db.exec('COMMIT')
      checkpoint.whenGrown()
    },
  }
}
