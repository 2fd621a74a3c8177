/**
 * What retention costs while recording, how long it takes, and whether a crash in the middle changes what it removes.
 */
import { setTimeout as wait } from 'node:timers/promises'
import type { Retention } from '@tacho/contract/data/retention.ts'
import { withSql } from '../bare/sql.ts'
import type { Setting } from '../benchmark.ts'
import type { Engine, Store } from '../engines/engine.ts'
import { fillStore, historyBatches } from '../engines/fill.ts'
import { inFull, onBoth } from '../engines/on-both.ts'
import { BATCH_EVENTS } from '../load/events.ts'
import { newHistory, newPlot, partOf, runIdOf, timeOf, type Plot } from '../load/shapes.ts'
import { startLoad } from '../load/start.ts'
import { ratioAtLeast, row, type Result } from '../result.ts'
import { megabytes, whole } from '../text.ts'

const DAY_MS = 86_400_000
const DAYS = 60
const KEPT_DAYS = 30
const LONGEST_MS = 2 * 3_600_000
/** The server is killed when these shares of the old runs are removed. */
const KILLS_AT = [0.6, 0.8]

export const retention = onBoth({
  sqlite: ['retention', 'Removing old runs while recording'],
  postgres: ['postgres-retention', 'Removing old runs from PostgreSQL while recording'],
  about: `The store has events of ${DAYS} days, in runs of 9 to 100 events, stored with the times that they had then. Runs are then kept \
for ${KEPT_DAYS} days, while recording goes on. Each round records with retention off and on: first as fast as possible, then at half that rate. Here the \
bare limit is the same server with retention off. When 60 % and 80 % of the old runs are removed, the server is killed (SIGKILL) and started again. In the \
end, every run is checked: each old run is gone, and each other run is there with all its events.`,
  measure,
})

export const retentionFull = inFull(retention)

async function measure({ plan, say }: Setting, engine: Engine): Promise<Result> {
  await using load = startLoad()
  const store = await engine.createStore('store')
  const { storedEvents } = plan
  const requests = storedEvents / BATCH_EVENTS
  const plot = newHistory(requests, { ago: DAYS, days: DAYS - 1 })
  const filledAt = performance.now()
  const path = `/environments/${await fillStore(store, historyBatches(plot, requests))}/retention`
  const filled = await store.size()
  say(`${whole(storedEvents)} events in ${whole((performance.now() - filledAt) / 1000)} s: ${megabytes(filled.bytes)}`)

  let server = await store.start()
  const recording = newPlot('whole-run')
  // Do not keep runs with open issues: all failed runs have one.
  const keep = (runDays: number | null) => server.operator(`${path}/change`, { runDays, keepOpenIssueRuns: false })
  const progress = async () => (await server.operator<Retention>(path)).progress
  const removedEvents = async () => (await progress())?.total.events ?? 0
  const firstAt = Date.now()
  const history = historyOf(plot, requests)
  const old = [...history.values()].filter(({ lastAt }) => isOld(lastAt, firstAt)).length
  const isOver = async () => {
    const found = await progress()
    // The pass may have begun with the earlier settings, so check the count too.
    return found !== null && found.passEndedAt !== null && found.total.runs >= old
  }
  await load.record(server, { send: recording, seconds: plan.warmUpSeconds })

  let [onMs, most] = [0, 0]
  async function record(side: 'off' | 'on') {
    await keep(side === 'on' ? KEPT_DAYS : null)
    const [since, before] = [performance.now(), await removedEvents()]
    const { rate } = await load.record(server, { send: recording, seconds: plan.seconds })
    if (side === 'off') most = rate
    const { p99 } = await load.record(server, { send: recording, seconds: plan.seconds, rate: most / 2 })
    if (side === 'on') onMs += performance.now() - since
    const removed = whole((await removedEvents()) - before)
    say(`retention ${side}: ${whole(rate)} events/s, p99 ${p99.toFixed(1)} ms, ${removed} removed`)
    return { rate, p99 }
  }
  const rounds: Record<'off' | 'on', { rate: number; p99: number }>[] = []
  while (rounds.length < plan.rounds) {
    const round = { off: await record('off'), on: await record('on') }
    const hasEnded = await isOver()
    // Skip a round in which retention finished: it does not show the cost.
    if (!hasEnded || rounds.length === 0) rounds.push(round)
    if (hasEnded) break
  }

  await keep(KEPT_DAYS)
  const since = performance.now()
  const half = (storedEvents * (DAYS - KEPT_DAYS)) / DAYS
  // On PostgreSQL, this waits minutes for the lease of the dead node, so a quick run skips it.
  const kills = engine.name === 'postgres' && plan.size === 'quick' ? [] : [...KILLS_AT]
  while (kills.length > 0 || !(await isOver())) {
    if (performance.now() - since > LONGEST_MS) throw new Error('Retention does not come to its end')
    // Recording continues until the kill breaks it off.
    const sent = load.record(server, { send: recording, seconds: plan.seconds / 2, rate: most / 2 })
    await Promise.all([sent.catch(() => undefined), killWhenDue()])
  }
  onMs += performance.now() - since
  const total = (await progress())?.total ?? { runs: 0, events: 0 }
  await server.stop()
  const left = await store.size()
  const faults = await faultsOf(store, history, { from: firstAt, to: Date.now() })
  if (faults.length > 0) throw new Error(`${faults.length} faults, such as: ${faults.slice(0, 5).join('; ')}`)
  const figures = (side: 'off' | 'on', name: 'rate' | 'p99') => rounds.map((round) => round[side][name])
  const free = left.freeBytes === null ? '' : `; ${megabytes(left.freeBytes)} of it are free for new rows`
  return {
    rows: [
      row(
        'events recorded while runs are removed',
        '/s',
        figures('on', 'rate'),
        figures('off', 'rate'),
        ratioAtLeast(0.9),
      ),
      row('acknowledgement at half the rate, p99', 'ms', figures('on', 'p99'), figures('off', 'p99')),
      row('events removed', '/s', [(total.events * 1000) / onMs]),
      row('time to remove half of the events', 's', [onMs / 1000]),
    ],
    notes: [
      `${whole(storedEvents)} events were stored before. Removed: ${whole(total.events)} events of ${whole(total.runs)} runs, about ${whole(half)} were older than ${KEPT_DAYS} days. The time includes two \
kills, after which the work waits until the lease of the dead process ends.`,
      `The store had ${megabytes(filled.bytes)} before and ${megabytes(left.bytes)} after, with the events recorded meanwhile${free}.`,
    ],
  }

  async function killWhenDue(): Promise<void> {
    const [at] = kills
    if (at === undefined) return
    await wait((plan.seconds / 4) * 1000)
    const done = await removedEvents()
    if (done < at * half && !(await isOver())) return
    kills.shift()
    await server.kill()
    server = await store.start()
    say(`killed after ${whole(done)} removed events`)
  }
}

type History = Map<string, { events: number; lastAt: number }>

/** The runs of a filled store. */
function historyOf(plot: Plot, requests: number): History {
  const runs: History = new Map()
  for (let n = 0; n < requests; n++) {
    for (let index = 0; index < BATCH_EVENTS; index++) {
      const runId = runIdOf(plot, partOf(plot.shape, n, index).run)
      const { events, lastAt } = runs.get(runId) ?? { events: 0, lastAt: 0 }
      runs.set(runId, { events: events + 1, lastAt: Math.max(lastAt, timeOf(plot, n, BATCH_EVENTS)) })
    }
  }
  return runs
}

const isOld = (lastAt: number, now: number) => lastAt < now - KEPT_DAYS * DAY_MS

const RUNS = 'SELECT run_id AS "runId", number, event_count AS "eventCount" FROM runs'
const EVENTS = 'SELECT run AS number, COUNT(*) AS events FROM events GROUP BY run'

/** Faults in the runs of the history. Runs that became old during retention may be there or not. */
async function faultsOf(store: Store, expected: History, during: { from: number; to: number }): Promise<string[]> {
  const [runs, events] = await withSql(store.at, async (sql) => [
    await sql.all<{ runId: string; number: number; eventCount: number }>(RUNS),
    await sql.all<{ number: number; events: number }>(EVENTS),
  ])
  const faults: string[] = []
  const counts = new Map(events.map((each) => [each.number, each.events]))
  const stored = new Map(runs.map(({ runId, number }) => [runId, counts.get(number) ?? 0]))
  for (const { runId, number, eventCount } of runs) {
    if (stored.get(runId) !== eventCount)
      faults.push(`${runId} counts ${eventCount} events and has ${stored.get(runId)}`)
    counts.delete(number)
  }
  if (counts.size > 0) faults.push(`events of ${counts.size} runs that are gone`)
  for (const [runId, { events: sent, lastAt }] of expected) {
    const found = stored.get(runId)
    if (found !== undefined && isOld(lastAt, during.from)) faults.push(`${runId} is there`)
    if (found !== sent && !isOld(lastAt, during.to)) faults.push(`${runId} has ${found ?? 'no'} events of ${sent}`)
  }
  return faults
}
