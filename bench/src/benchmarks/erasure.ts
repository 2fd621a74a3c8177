/** How long an erasure takes until it is effective. */
import type { Erasure } from '@tacho/contract/operator/erasure.ts'
import { judgeBatch } from '@tacho/server/domain/event.ts'
import type { Storage } from '@tacho/server/storage/storage.ts'
import type { Benchmark, Setting } from '../benchmark.ts'
import { row, type Result } from '../result.ts'
import type { Server } from '../server.ts'
import { timesOf } from '../stats.ts'
import { whole } from '../text.ts'
import { sqliteStore, type RetainedStore } from './retention.ts'

const SESSION_RUNS = 5
const BATCH_RUNS = 100
/** Batches on their way to the store while it is filled. */
const FILLING = 40
const ERASURES = 20
const HOUR_MS = 3_600_000

export const ERASED = `The store has a million runs in sessions of ${SESSION_RUNS}. Each round erases ${ERASURES} sessions, one after the other, and \
checks after each answer that no run of the session is listed. The time is that of the request: when it is answered, no reader finds the runs. The bare \
limit is a request that only writes a setting and its audit entry, to the same server in turn.`

export const erasure: Benchmark = {
  name: 'erasure',
  title: 'Erasing a session among a million runs',
  part: 'sqlite',
  about: [ERASED],
  run: (setting) => measureErasure(setting, sqliteStore(setting.place)),
}

export async function measureErasure(
  { plan, say }: Setting,
  store: Pick<RetainedStore, 'start' | 'open'>,
): Promise<Result> {
  const first = await store.start()
  const environmentId = await first.environmentId()
  await first.stop()
  const storage = await store.open()
  const filledAt = performance.now()
  await fill(storage, environmentId, plan.storedEvents)
  await storage.close()
  say(`${whole(plan.storedEvents)} runs in ${whole((performance.now() - filledAt) / 1000)} s`)

  await using server = await store.start()
  const sessions = plan.storedEvents / SESSION_RUNS
  const medians: number[] = []
  const slowest: number[] = []
  const bare: { medians: number[]; slowest: number[] } = { medians: [], slowest: [] }
  for (let round = 0; round <= plan.rounds; round++) {
    const ms: number[] = []
    const bareMs: number[] = []
    for (let n = 0; n < ERASURES; n++) {
      // From all over the store.
      const session = Math.floor(((round * ERASURES + n + 0.5) * sessions) / ((plan.rounds + 1) * ERASURES))
      ms.push(await eraseSession(server, environmentId, sessionOf(session)))
      bareMs.push(await setRetention(server, environmentId, n + 1))
    }
    // The first round opens connections and prepares statements.
    if (round === 0) continue
    const times = timesOf(ms)
    medians.push(times.p50)
    slowest.push(Math.max(...ms))
    bare.medians.push(timesOf(bareMs).p50)
    bare.slowest.push(Math.max(...bareMs))
    say(`round ${round}: median ${times.p50.toFixed(1)} ms, slowest ${Math.max(...ms).toFixed(1)} ms`)
  }
  const of = { unit: 'ms', better: 'less' } as const
  return {
    rows: [
      row({
        what: 'median',
        ...of,
        ours: medians,
        bare: bare.medians,
        budgets: [{ of: 'ours', is: 'below', limit: 50 }],
      }),
      row({ what: 'slowest of a round', ...of, ours: slowest, bare: bare.slowest }),
    ],
    notes: [`The store had ${whole(plan.storedEvents)} runs.`],
  }
}

/** Returns the milliseconds until it was answered. */
async function eraseSession(server: Server, environmentId: string, id: string): Promise<number> {
  const startedAt = performance.now()
  const order = { kind: 'session', id }
  const { effectiveAt, runs } = await server.operator<Erasure>(`/environments/${environmentId}/erasures`, order)
  const ms = performance.now() - startedAt
  const listed = await server.operator<{ items: unknown[] }>(`/environments/${environmentId}/runs?sessionId=${id}`)
  if (effectiveAt === null || runs !== SESSION_RUNS || listed.items.length > 0) throw new Error(`${id} is not erased`)
  return ms
}

/** Returns the milliseconds until it was answered. It removes nothing: no row is that old. */
async function setRetention(server: Server, environmentId: string, days: number): Promise<number> {
  const startedAt = performance.now()
  await server.operator(`/environments/${environmentId}/retention/change`, { auditDays: 1_000 + days })
  return performance.now() - startedAt
}

const sessionOf = (number: number) => `session-${number}`

/** Runs of the last hours, each with one model call. */
async function fill(storage: Storage, environmentId: string, runs: number): Promise<void> {
  const receivedAt = Date.now() - HOUR_MS
  for (let run = 0; run < runs;) {
    const stored: Promise<unknown>[] = []
    for (; run < runs && stored.length < FILLING; run += BATCH_RUNS) {
      const events = Array.from({ length: Math.min(BATCH_RUNS, runs - run) }, (_, n) => callOf(run + n, receivedAt))
      const judged = judgeBatch(JSON.stringify(events), { workspaceId: '', now: receivedAt })
      if (!judged.ok) throw new Error('A load has valid events only')
      stored.push(storage.appendEvents({ environmentId, receivedAt, events: judged.batch.events, rejections: [] }))
    }
    await Promise.all(stored)
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
