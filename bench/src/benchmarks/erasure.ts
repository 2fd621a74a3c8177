/** How long an erasure takes until it is effective. */
import type { Erasure } from '@tacho/contract/data/erasure.ts'
import type { Setting } from '../benchmark.ts'
import type { Engine } from '../engines/engine.ts'
import { fillStore, type Batch } from '../engines/fill.ts'
import { onBoth } from '../engines/on-both.ts'
import { below, row, type Result } from '../result.ts'
import { inTurn } from '../rounds.ts'
import type { Server } from '../server.ts'
import { timesOf } from '../stats.ts'
import { whole } from '../text.ts'

const SESSION_RUNS = 5
const BATCH_RUNS = 100
const ERASURES = 20
const HOUR_MS = 3_600_000

export const erasure = onBoth({
  sqlite: ['erasure', 'Erasing a session among a million runs'],
  postgres: ['postgres-erasure', 'Erasing a session among a million runs on PostgreSQL'],
  about: `The store has a million runs in sessions of ${SESSION_RUNS}. Each round erases ${ERASURES} sessions, one after the other, and \
checks after each answer that no run of the session is listed. The time is that of the request: when it is answered, no reader finds the runs. The bare \
limit is a request that only writes a setting and its audit entry, to the same server in turn.`,
  measure,
})

async function measure(setting: Setting, engine: Engine): Promise<Result> {
  const { plan, say } = setting
  const runs = plan.storedEvents
  const store = await engine.createStore('store')
  const filledAt = performance.now()
  const environment = `/environments/${await fillStore(store, callBatches(runs))}`
  say(`${whole(runs)} runs in ${whole((performance.now() - filledAt) / 1000)} s`)

  await using server = await store.start()
  const sessions = runs / SESSION_RUNS
  async function erase(round: number) {
    const [erasures, settings]: [number[], number[]] = [[], []]
    for (let n = 0; n < ERASURES; n++) {
      // Spread over the whole store.
      const session = Math.floor(((round * ERASURES + n + 0.5) * sessions) / ((plan.rounds + 1) * ERASURES))
      erasures.push(await eraseSession(server, environment, sessionOf(session)))
      settings.push(await setRetention(server, environment, n + 1))
    }
    const [ours, bare] = [timesOf(erasures), timesOf(settings)]
    return { median: ours.p50, slowest: ours.p999, bareMedian: bare.p50, bareSlowest: bare.p999 }
  }
  // The first round opens connections and prepares statements.
  const { erased } = await inTurn(setting, { erased: erase }, { warmUp: true })
  return {
    rows: [
      row('median', 'ms', erased.median, erased.bareMedian, below(50)),
      row('slowest of a round', 'ms', erased.slowest, erased.bareSlowest),
    ],
    notes: [`The store had ${whole(runs)} runs.`],
  }
}

/** Returns the milliseconds until the reply. */
async function eraseSession(server: Server, environment: string, id: string): Promise<number> {
  const startedAt = performance.now()
  const { effectiveAt, runs } = await server.operator<Erasure>(`${environment}/erasures`, { kind: 'session', id })
  const ms = performance.now() - startedAt
  const listed = await server.operator<{ items: unknown[] }>(`${environment}/runs?sessionId=${id}`)
  if (effectiveAt === null || runs !== SESSION_RUNS || listed.items.length > 0) throw new Error(`${id} is not erased`)
  return ms
}

/**
 * Changes the retention, which removes nothing because no row is old enough. Returns the milliseconds until the reply.
 */
async function setRetention(server: Server, environment: string, days: number): Promise<number> {
  const startedAt = performance.now()
  await server.operator(`${environment}/retention/change`, { auditDays: 1_000 + days })
  return performance.now() - startedAt
}

const sessionOf = (number: number) => `session-${number}`

/** Runs of the last hour, each with one model call. */
function* callBatches(runs: number): Generator<Batch> {
  const receivedAt = Date.now() - HOUR_MS
  for (let run = 0; run < runs; run += BATCH_RUNS) {
    const calls = Array.from({ length: Math.min(BATCH_RUNS, runs - run) }, (_, n) => callOf(run + n, receivedAt))
    yield { text: JSON.stringify(calls), receivedAt }
  }
}

function callOf(run: number, timestamp: number) {
  const usage = { promptTokens: 1_204, completionTokens: 96, totalTokens: 1_300 }
  return {
    eventId: `event-${run}`,
    clientId: 'bench',
    runId: `run-${run}`,
    sessionId: sessionOf(Math.floor(run / SESSION_RUNS)),
    agentName: `agent-${run % 20}`,
    eventType: 'LLM_CALL',
    label: 'Decide what to do next',
    timestamp,
    payload: { model: 'gpt-5-mini', latency: 812, usage },
  }
}
