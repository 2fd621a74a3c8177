/**
 * The limit of PostgreSQL: some connections that write the same rows into the same tables and indexes through `pg`, with as
 * many events in a transaction as the server has. The statements of a transaction travel together, so that each costs one
 * round trip; rows travel as one JSON parameter, or events by COPY, which is quicker and cannot tell that one is stored
 * already. Nothing is locked, looked up or compared.
 */
import { hash } from 'node:crypto'
import { clientConfig } from '@tacho/server/storage/postgres/connections.ts'
import { copyRows } from '@tacho/server/storage/postgres/copy-rows.ts'
import { migrate } from '@tacho/server/storage/postgres/migrate.ts'
import { EVENT_COLUMNS } from '@tacho/server/storage/postgres/row-writes.ts'
import pg from 'pg'
import { answer } from '../child.ts'
import { BATCH_EVENTS } from '../load/events.ts'
import type { Plot } from '../load/shapes.ts'
import { agentUuid, ENVIRONMENT, hoursOf, rowMaker, sumsOf, usageOf, type EventRow, type Recorded } from './rows.ts'

export interface BarePostgresWrites {
  url: string
  plot: Plot
  connections: number
  seconds: number
  eventsPerCommit: number
  /** How events travel. */
  way: 'insert' | 'copy'
}

/** Rows are made in portions, outside of the time that counts. */
const PORTION_EVENTS = 40_000
const TIMEOUTS = { connectMs: 5_000, statementMs: 60_000, lockMs: 60_000, idleInTransactionMs: 60_000 }

const columns = (names: string) => names.split(',').map((each) => each.trim().split(' ') as [string, string])
const SUMS = 'prompt_tokens bigint, completion_tokens bigint, total_tokens bigint, cost_nanos bigint'
const RUNS = columns(`id uuid, run_id text, agent_id uuid, received_at bigint, status text, started_at bigint,
  last_event_at bigint, ended_at bigint, closing_seq bigint, event_count bigint, differing_retries bigint, last_seq bigint,
  ${SUMS}, session_key text, session_id text`)
const HOURS = columns(`hour bigint, agent_id uuid, model_key text, slot integer, events bigint, ${SUMS}`)
const adding = (table: string, names: string[]) => names.map((name) => `${name} = ${table}.${name} + excluded.${name}`)
const TOKENS = columns(SUMS).map(([name]) => name)

const STATEMENTS = {
  events: insert('events', Object.entries(EVENT_COLUMNS)),
  runs: `${insert('runs AS r', RUNS)} ON CONFLICT (environment_id, id) DO UPDATE SET status = excluded.status,
    last_event_at = excluded.last_event_at, last_seq = excluded.last_seq,
    ${adding('r', ['event_count', ...TOKENS]).join(', ')}`,
  hours: `${insert('usage_hours AS h', HOURS)} ON CONFLICT (environment_id, hour, agent_id, model_key, slot)
    DO UPDATE SET ${adding('h', ['events', ...TOKENS]).join(', ')}`,
}

function insert(table: string, fields: [string, string][]): string {
  const values = fields.map(([, type], index) => (type === 'text' ? `x->>${index}` : `(x->>${index})::${type}`))
  return `INSERT INTO ${table} (environment_id, ${fields.map(([name]) => name).join(', ')})
    SELECT '${ENVIRONMENT}', ${values.join(', ')} FROM jsonb_array_elements($1::jsonb) AS x`
}

const opened = new Map<string, Promise<Lane[]>>()

answer<BarePostgresWrites, Recorded>(async ({ url, plot, connections, seconds, eventsPerCommit, way }) => {
  const known = opened.get(url) ?? openLanes(url, plot, connections)
  opened.set(url, known)
  const lanes = await known
  let [events, busyMs, cpuUs] = [0, 0, 0]
  while (busyMs < seconds * 1000) {
    const portion = lanes.map((lane) => lane.take(PORTION_EVENTS / connections, eventsPerCommit))
    const [from, cpuFrom] = [performance.now(), process.cpuUsage()]
    await Promise.all(lanes.map((lane, index) => lane.commitAll(portion[index] ?? [], way)))
    busyMs += performance.now() - from
    const { user, system } = process.cpuUsage(cpuFrom)
    cpuUs += user + system
    events += portion.flat(2).length
  }
  return { eventsPerSecond: (events * 1000) / busyMs, cpuUsPerEvent: cpuUs / events }
})

type Lane = Awaited<ReturnType<typeof openLane>>

async function openLanes(url: string, plot: Plot, connections: number): Promise<Lane[]> {
  const unhurried = new pg.Client(clientConfig({ connectionString: url }, TIMEOUTS))
  await unhurried.connect()
  await migrate(unhurried)
  await unhurried.end()
  // Runs of their own, so that no connection waits for another's rows.
  return Promise.all(
    Array.from({ length: connections }, (_, slot) =>
      openLane(url, { ...plot, salt: `${slot}${plot.salt.slice(1)}` }, slot),
    ),
  )
}

async function openLane(url: string, plot: Plot, slot: number) {
  const client = new pg.Client({ ...clientConfig({ connectionString: url }, TIMEOUTS), pipeline: true })
  await client.connect()
  await client.query('SET search_path = tacho; SET jit = off')
  const rowsOf = rowMaker(plot)
  const seqs = new Map<string, number>()
  let requests = 0

  function nextSeq(run: string): number {
    const seq = (seqs.get(run) ?? 0) + 1
    seqs.set(run, seq)
    return seq
  }

  function eventValues(row: EventRow, receivedAt: number) {
    const { run, eventId, time, clientId, sessionId, agentId, agentName, type, label, spanId, schemaVersion } = row
    const names = [clientId, sessionId, agentId, agentName, type, label, spanId, null, schemaVersion]
    return [run.id, eventId, nextSeq(run.id), time, ...names, row.payload, receivedAt]
  }

  async function commit(rows: readonly EventRow[], way: BarePostgresWrites['way']): Promise<void> {
    const receivedAt = Date.now()
    const send = (name: keyof typeof STATEMENTS, values: unknown[]) =>
      client.query({ name, text: STATEMENTS[name], values: [JSON.stringify(values)] })
    const begun = client.query('BEGIN')
    const values = rows.map((row) => eventValues(row, receivedAt))
    const events =
      way === 'copy' ? copyRows(client, 'events', EVENT_COLUMNS, ENVIRONMENT, values) : send('events', values)
    const sums = sumsOf(rows)
    const runs = send(
      'runs',
      sums.map(({ run, events: count, lastTime, outcome, calls }) => {
        const seq = seqs.get(run.id) ?? 0
        const ended = outcome === null ? [null, null] : [lastTime, seq]
        const identity = [run.id, run.runId, agentUuid(run.agent), receivedAt, outcome ?? 'RUNNING', run.startedAt]
        const session = [hash('sha256', run.sessionId), run.sessionId]
        return [...identity, lastTime, ...ended, count, 0, seq, ...usageOf(calls), ...session]
      }),
    )
    const hours = send(
      'hours',
      hoursOf(sums).map(({ agent, hour, model, events: count }) => {
        const usage = usageOf(model === '' ? 0 : count)
        return [hour, agentUuid(agent), model === '' ? '' : hash('sha256', model), slot, count, ...usage]
      }),
    )
    await Promise.all([begun, events, runs, hours, client.query('COMMIT')])
  }

  return {
    /** The rows of so many events, divided into transactions. */
    take(count: number, eventsPerCommit: number): EventRow[][] {
      const commits: EventRow[][] = []
      for (let [taken, due] = [0, eventsPerCommit]; taken < count; due += eventsPerCommit) {
        const rows: EventRow[] = []
        // Whole requests, so that the mean is as asked for; but at least one.
        while (rows.length === 0 || taken + rows.length + BATCH_EVENTS / 2 < due) rows.push(...rowsOf(requests++))
        commits.push(rows)
        taken += rows.length
      }
      return commits
    },
    async commitAll(commits: EventRow[][], way: BarePostgresWrites['way']): Promise<void> {
      for (const rows of commits) await commit(rows, way)
    },
  }
}
