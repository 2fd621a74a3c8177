/** What retention costs recording, how long it takes, and whether a crash in the middle changes what it removes. */
import { statSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import Database from 'better-sqlite3'
import type { Retention } from '@tacho/contract/operator/retention.ts'
import { judgeBatch } from '@tacho/server/domain/event.ts'
import { openSqliteStorage } from '@tacho/server/storage/sqlite/open.ts'
import type { Storage } from '@tacho/server/storage/storage.ts'
import type { Benchmark, Setting } from '../benchmark.ts'
import { bodyWriter } from '../load/bodies.ts'
import { BATCH_EVENTS } from '../load/events.ts'
import { newPlot, partOf, runIdOf, timeOf, type Plot } from '../load/shapes.ts'
import { row, type Result } from '../result.ts'
import { startServer, type Server } from '../server.ts'
import { megabytes, whole } from '../text.ts'
import { CONNECTIONS, rateOf, startIngestLoad } from './recording.ts'

const DAY_MS = 86_400_000
const DAYS = 60
const KEPT_DAYS = 30
/** Batches on their way to the store while it is filled. */
const FILLING = 40
const LONGEST_MS = 2 * 3_600_000
export const KILLS_AT = [0.6, 0.8]

export const RETAINED = `The store has events of ${DAYS} days, in runs of 9 to 100 events, stored with the times that they had then. Runs are then kept \
for ${KEPT_DAYS} days, while recording goes on. Each round records with retention off and on: first as fast as possible, then at half that rate. Here the \
bare limit is the same server with retention off. At two points of the rest the server is killed (SIGKILL) and started again. In the end every run is \
checked: none is there that should be gone, none is gone or short of events that should be there.`

/** How a benchmark reaches the store itself. */
export interface RetainedStore {
  start(flags?: readonly string[]): Promise<Server>
  open(): Promise<Storage>
  /** Rows of a statement, while no server runs. */
  query(text: string): Promise<Record<string, unknown>[]>
  /** How much is removed, in parts of all, when the server is killed. */
  killsAt: readonly number[]
  /** Bytes on disk, and those that are free for new rows; null: unknown. */
  size(): Promise<{ bytes: number; freeBytes: number | null }>
}

export const retention: Benchmark = {
  name: 'retention',
  title: 'Removing old runs while recording',
  part: 'sqlite',
  about: [RETAINED],
  run: (setting) => measureRetention(setting, sqliteStore(setting.place)),
}

export const retentionFull: Benchmark = {
  ...retention,
  name: 'retention-full',
  title: 'Removing old runs while recording, 10 million events stored',
  onDemand: true,
}

export function sqliteStore(place: string): RetainedStore {
  const directory = path.join(place, 'store')
  const file = path.join(directory, 'tacho.db')
  const read = <Result>(work: (db: Database.Database) => Result): Result => {
    const db = new Database(file, { readonly: true })
    try {
      return work(db)
    } finally {
      db.close()
    }
  }
  return {
    killsAt: KILLS_AT,
    start: (flags) => startServer(directory, flags),
    open: () => {
      const onTrouble = (error: Error) => {
        throw error
      }
      return openSqliteStorage({ directory, minFreeDiskBytes: 0, onTrouble })
    },
    query: async (text) => read((db) => db.prepare<[], Record<string, unknown>>(text).all()),
    size: async () => {
      const freeBytes = read((db) => {
        const [pages, bytes] = ['freelist_count', 'page_size'].map(
          (name) => db.pragma(name, { simple: true }) as number,
        )
        return (pages ?? 0) * (bytes ?? 0)
      })
      return { bytes: statSync(file).size, freeBytes }
    },
  }
}

export async function measureRetention({ plan, say }: Setting, store: RetainedStore): Promise<Result> {
  await using load = startIngestLoad()
  const requests = plan.storedEvents / BATCH_EVENTS
  const first = await store.start()
  const home = await homeOf(first)
  await first.stop()
  const perRequestMs = ((DAYS - 1) * DAY_MS) / requests
  const plot: Plot = { ...newPlot('history'), history: { from: Date.now() - DAYS * DAY_MS, perRequestMs } }
  const filledAt = performance.now()
  await fill(store, home.environmentId, plot, requests)
  const filled = await store.size()
  const events = plan.storedEvents
  say(`${whole(events)} events in ${whole((performance.now() - filledAt) / 1000)} s: ${megabytes(filled.bytes)}`)

  let server = await store.start()
  const target = () => ({ url: server.url, apiKey: server.apiKey, plot: recording, connections: CONNECTIONS })
  const recording = newPlot('whole-run')
  const set = (runDays: number | null) => server.operator(`${home.path}/change`, { runDays })
  const removed = async () => (await server.operator<Retention>(home.path)).progress
  const firstAt = Date.now()
  const history = historyOf(plot, requests)
  const old = [...history.values()].filter(({ lastAt }) => isOld(lastAt, firstAt)).length
  // Also a pass that began with the settings before may have ended.
  const isOver = async () => {
    const progress = await removed()
    return progress !== null && progress.passEndedAt !== null && progress.total.runs >= old
  }
  await load.call({ ...target(), seconds: plan.warmUpSeconds })

  const rates: Record<'on' | 'off', number[]> = { on: [], off: [] }
  const p99: Record<'on' | 'off', number[]> = { on: [], off: [] }
  let [onMs, ended, most] = [0, false, 0]
  for (let round = 1; round <= plan.rounds && !ended; round++) {
    for (const side of ['off', 'on'] as const) {
      await set(side === 'on' ? KEPT_DAYS : null)
      const since = performance.now()
      const before = (await removed())?.total.events ?? 0
      const rate = rateOf(await load.call({ ...target(), seconds: plan.seconds }))
      if (side === 'off') most = rate
      const perSecond = most / 2 / BATCH_EVENTS
      const { times } = await load.call({ ...target(), seconds: plan.seconds, perSecond })
      const removedNow = ((await removed())?.total.events ?? 0) - before
      ended = side === 'on' && (await isOver())
      // A round in which retention came to its end says nothing about its cost.
      if (ended && round > 1) {
        rates.off.pop()
        p99.off.pop()
      } else {
        rates[side].push(rate)
        p99[side].push(times.p99)
      }
      if (side === 'on') onMs += performance.now() - since
      say(
        `round ${round}, ${side}: ${whole(rate)} events/s, p99 ${times.p99.toFixed(1)} ms, ${whole(removedNow)} removed`,
      )
    }
  }

  await set(KEPT_DAYS)
  const since = performance.now()
  const half = (events * (DAYS - KEPT_DAYS)) / DAYS
  const kills = [...store.killsAt]
  while (kills.length > 0 || !(await isOver())) {
    if (performance.now() - since > LONGEST_MS) throw new Error('Retention does not come to its end')
    // Recording goes on, and is cut off by the kill.
    const sent = load.call({ ...target(), seconds: plan.seconds / 2, perSecond: most / 2 / BATCH_EVENTS })
    await Promise.all([sent.catch(() => undefined), killWhenDue()])
  }
  onMs += performance.now() - since
  const progress = await removed()
  await server.stop()
  const left = await store.size()
  const faults = await faultsOf(store, history, { from: firstAt, to: Date.now() })
  if (faults.length > 0) throw new Error(`${faults.length} faults, such as: ${faults.slice(0, 5).join('; ')}`)
  const total = progress?.total ?? { runs: 0, events: 0 }
  say(`${whole(total.events)} events of ${whole(total.runs)} runs were removed`)
  return {
    rows: [
      row({
        what: 'events recorded while runs are removed',
        unit: '/s',
        better: 'more',
        ours: rates.on,
        bare: rates.off,
        budgets: [{ of: 'ratio', is: 'at least', limit: 0.9 }],
      }),
      row({ what: 'acknowledgement at half the rate, p99', unit: 'ms', better: 'less', ours: p99.on, bare: p99.off }),
      row({ what: 'events removed', unit: '/s', better: 'more', ours: [(total.events * 1000) / onMs] }),
      row({ what: 'time to remove half of the events', unit: 's', better: 'less', ours: [onMs / 1000] }),
    ],
    notes: [
      `${whole(events)} events were stored before. Removed: ${whole(total.events)} events of ${whole(total.runs)} runs, about ${whole(half)} were older than ${KEPT_DAYS} days. The time includes two \
kills, after which the work waits until the lease of the dead process ends.`,
      `The store had ${megabytes(filled.bytes)} before and ${megabytes(left.bytes)} after, with the events recorded meanwhile\
${left.freeBytes === null ? '' : `; ${megabytes(left.freeBytes)} of it are free for new rows`}.`,
    ],
  }

  async function killWhenDue(): Promise<void> {
    const [at] = kills
    if (at === undefined) return
    await wait((plan.seconds / 4) * 1000)
    const done = (await removed())?.total.events ?? 0
    if (done < at * half && !(await isOver())) return
    kills.shift()
    await server.kill()
    server = await store.start()
    say(`killed after ${whole(done)} removed events`)
  }
}

interface Home {
  environmentId: string
  path: string
}

async function homeOf(server: Server): Promise<Home> {
  const environmentId = await server.environmentId()
  return { environmentId, path: `/environments/${environmentId}/retention` }
}

/** Stores the history as it came then. The server would refuse events of 60 days ago. */
export async function fill(
  store: Pick<RetainedStore, 'open'>,
  environmentId: string,
  plot: Plot,
  requests: number,
): Promise<void> {
  const storage = await store.open()
  const body = bodyWriter(plot)
  for (let n = 0; n < requests;) {
    const stored: Promise<unknown>[] = []
    for (; n < requests && stored.length < FILLING; n++) {
      const receivedAt = timeOf(plot, n, BATCH_EVENTS)
      const judged = judgeBatch(body(n).toString('latin1'), { workspaceId: '', now: receivedAt })
      if (!judged.ok) throw new Error('A load has valid events only')
      stored.push(storage.appendEvents({ environmentId, receivedAt, events: judged.batch.events, rejections: [] }))
    }
    await Promise.all(stored)
  }
  await storage.close()
}

const RUNS = 'SELECT run_id AS "runId", number, event_count AS "eventCount" FROM'
const EVENTS = 'SELECT run AS number, COUNT(*) AS events FROM'

type History = Map<string, { events: number; lastAt: number }>

/** The runs that `fill` stores. */
function historyOf(plot: Plot, requests: number): History {
  const runs: History = new Map()
  for (let n = 0; n < requests; n++) {
    for (let index = 0; index < BATCH_EVENTS; index++) {
      const runId = runIdOf(plot, partOf(plot.shape, n, index).run)
      const run = runs.get(runId) ?? { events: 0, lastAt: 0 }
      run.events++
      run.lastAt = Math.max(run.lastAt, timeOf(plot, n, BATCH_EVENTS))
      runs.set(runId, run)
    }
  }
  return runs
}

const isOld = (lastAt: number, now: number) => lastAt < now - KEPT_DAYS * DAY_MS

/** What is wrong with the runs of the history. Runs that became old while retention ran may be there or not. */
async function faultsOf(
  store: RetainedStore,
  expected: History,
  during: { from: number; to: number },
): Promise<string[]> {
  const faults: string[] = []
  const counts = new Map(
    (await store.query(`${EVENTS} events GROUP BY run`)).map((each) => [each['number'], Number(each['events'])]),
  )
  const runs = new Map<string, number>()
  for (const { runId, number, eventCount } of await store.query(`${RUNS} runs`)) {
    const stored = counts.get(number) ?? 0
    counts.delete(number)
    if (stored !== Number(eventCount))
      faults.push(`${String(runId)} counts ${String(eventCount)} events and has ${stored}`)
    runs.set(String(runId), stored)
  }
  if (counts.size > 0) faults.push(`events of ${counts.size} runs that are gone`)
  for (const [runId, { events, lastAt }] of expected) {
    const stored = runs.get(runId)
    if (stored !== undefined && isOld(lastAt, during.from)) faults.push(`${runId} is there`)
    if (stored !== events && !isOld(lastAt, during.to))
      faults.push(`${runId} has ${stored ?? 'no'} events of ${events}`)
  }
  return faults
}
