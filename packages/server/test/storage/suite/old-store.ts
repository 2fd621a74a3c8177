/**
 * A store as versions before migration 010 have it: what a new store holds, written into the old tables. What clients
 * read of both must be the same.
 */
import type { RunRow } from '../../../src/storage/runs.ts'
import type { NewEvent } from '../../../src/storage/events.ts'
import { agentKey, textKey } from '../../../src/storage/sql/keys.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import { batch, event, llmCall, newId, NOON, outcome } from './sample.ts'

export type OldRow = Record<string, string | number | null>

/** Rows by table; those of events are in order of arrival. */
export type OldRows = Record<'agents' | 'runs' | 'events', OldRow[]>

export interface Recorded {
  environments: string[]
  /** By environment. */
  events: Map<string, NewEvent[]>
}

const ROUNDS = 12
const LONG = 'ü'.repeat(1_024)

/** Two environments whose clients name sessions, agents and versions in every way. */
export async function recordSample(storage: Storage): Promise<Recorded> {
  const recorded: Recorded = { environments: [newId(), newId()], events: new Map() }
  for (let round = 0; round < ROUNDS; round++) {
    for (const environment of recorded.environments) {
      const session = (id: string) => (round % 3 === 0 ? null : round % 3 === 1 ? id : `${id} of ${round}`)
      const shared = { time: NOON + ((round * 7) % 5), payload: `{"n": ${round}.0, "text": "ü\\u00fc", "n": 1}` }
      const events = [
        event({ ...shared, runId: 'a', sessionId: session('a'), clientId: `client ${round % 2}` }),
        event({ ...shared, runId: 'b', sessionId: round > 5 ? LONG : null, agentId: 'agent', schemaVersion: '1' }),
        event({ ...shared, runId: 'c', sessionId: round === 4 ? '' : 'c', agentName: `named ${round % 3}` }),
        event({ runId: `short ${round}`, eventType: 'TOOL_CALL', spanId: `span ${round}`, agentName: '3:abc-' }),
        llmCall({ promptTokens: round, costNanos: 7 }, { runId: 'b', time: NOON - round, parentSpanId: LONG }),
        ...(round === 3 ? [outcome('FAILED', { runId: 'a', time: NOON })] : []),
      ]
      await storage.appendEvents(batch(environment, events, { receivedAt: NOON + round }))
      recorded.events.set(environment, [...(recorded.events.get(environment) ?? []), ...events])
    }
  }
  return recorded
}

const ALL = { limit: 1_000, after: null }

/** Everything that clients read of it. */
export async function readSample(storage: Storage, { environments }: Recorded) {
  return Promise.all(
    environments.map(async (environment) => {
      const { rows: runs } = await storage.listRuns(environment, {}, ALL)
      const events = await Promise.all(
        runs.map(async (run) => {
          const { rows: byTime } = await storage.listEvents(environment, run.id, { ...ALL, pageBytes: 1e9 })
          const { rows: byArrival } = await storage.listEventRows(environment, run.id, { ...ALL, order: 'arrival' })
          const found = await Promise.all(
            byTime.map(({ eventId }) => storage.findEvent(environment, run.runId, eventId)),
          )
          return {
            byTime,
            byArrival,
            found: found.map((one) => one && { ...one, run: oldFields(one.run) }),
            run: oldFields(await storage.findRun(environment, run.id)),
          }
        }),
      )
      const calls = { from: 0, to: 2 * NOON, limit: 1_000, pageBytes: 1e9, after: null }
      const { rows: usage } = await storage.readUsage(environment, 0, 2 * NOON, ALL)
      return {
        runs: runs.map(oldFields),
        events,
        usage,
        toolCalls: byRun(await storage.listToolCalls(environment, calls)),
      }
    }),
  )
}

/** The fields of a run that the old tables have. */
function oldFields(run: RunRow | null) {
  if (run === null) return null
  const { errorCount: _, traits: __, ...rest } = run
  return rest
}

/** Runs at one time have any order. */
function byRun<Call extends { runId: string }>(calls: Call[]): Call[] {
  return calls.toSorted((a, b) => (a.runId < b.runId ? -1 : 1))
}

/** The rows of a store in the old tables. */
export async function oldRows(storage: Storage, { environments }: Recorded): Promise<OldRows> {
  const rows: OldRows = { agents: [], runs: [], events: [] }
  for (const environment_id of environments) {
    const { rows: runs } = await storage.listRuns(environment_id, {}, ALL)
    for (const run of runs) {
      const { rows: events } = await storage.listEvents(environment_id, run.id, { ...ALL, pageBytes: 1e9 })
      const found = await Promise.all(events.map((one) => storage.findEvent(environment_id, run.runId, one.eventId)))
      rows.runs.push({
        environment_id,
        id: run.id,
        run_id: run.runId,
        agent_id: run.agentId,
        status: run.status,
        started_at: run.startedAt,
        session_key: run.sessionId === null ? null : textKey(run.sessionId),
        last_event_at: run.lastEventAt,
        received_at: run.receivedAt,
        event_count: run.eventCount,
        differing_retries: run.differingRetries,
        prompt_tokens: run.promptTokens,
        completion_tokens: run.completionTokens,
        total_tokens: run.totalTokens,
        cost_nanos: run.costNanos,
        ended_at: run.endedAt,
        closing_seq: found.find((one) => one?.closedRun)?.event.seq ?? null,
        session_id: run.sessionId,
      })
      for (const each of events) {
        rows.events.push({
          environment_id,
          run_id: run.id,
          seq: each.seq,
          event_id: each.eventId,
          time: each.time,
          received_at: each.receivedAt,
          client_id: each.clientId,
          session_id: each.sessionId,
          agent_id: each.agentId,
          agent_name: each.agentName,
          event_type: each.eventType,
          label: each.label,
          span_id: each.spanId,
          parent_span_id: each.parentSpanId,
          schema_version: each.schemaVersion,
          payload: each.payload,
        })
      }
      if (rows.agents.some(({ id }) => id === run.agentId)) continue
      rows.agents.push({
        environment_id,
        id: run.agentId,
        agent_key: agentKey(run.agentExternalId, run.agentName),
        external_id: run.agentExternalId,
        name: run.agentName,
        name_time: NOON,
      })
    }
  }
  rows.events.sort((a, b) => Number(a['seq']) - Number(b['seq']))
  return rows
}
