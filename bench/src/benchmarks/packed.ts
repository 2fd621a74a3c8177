/** The cost of packing payloads into blocks while recording. */
import { setTimeout as wait } from 'node:timers/promises'
import { withSql } from '../bare/sql.ts'
import type { Setting } from '../benchmark.ts'
import type { Engine } from '../engines/engine.ts'
import { fillStore, historyBatches } from '../engines/fill.ts'
import { onBoth } from '../engines/on-both.ts'
import { BATCH_EVENTS } from '../load/events.ts'
import { newHistory, newPlot } from '../load/shapes.ts'
import { startLoad } from '../load/start.ts'
import { ratioAtLeast, row, type Result } from '../result.ts'
import { inTurn } from '../rounds.ts'
import { whole } from '../text.ts'
import { WHOLE_RUNS } from './recording.ts'

/** Maximum number of stored events. Packing this many does not finish during the measurement. */
const STORED_EVENTS_MAX = 400_000
/** Longest wait until the server has packed something. Before, both sides would be equal. */
const PACKED_WITHIN_MS = 60_000

export const packed = onBoth({
  sqlite: ['packed', 'Recording while payloads are packed'],
  postgres: ['postgres-packed', 'Recording on PostgreSQL while payloads are packed'],
  about: `${WHOLE_RUNS} The store has events of two days ago, in runs of 9 to 100 events. A server that packs their payloads in the \
background and one that does not run in turn on the same store: first with as much load as possible, then with half of it. Here the bare limit is the \
server that does not pack.`,
  measure,
})

async function measure(setting: Setting, engine: Engine): Promise<Result> {
  const { plan } = setting
  await using load = startLoad()
  const store = await engine.createStore('store')
  const storedEvents = Math.min(plan.storedEvents, STORED_EVENTS_MAX)
  const requests = storedEvents / BATCH_EVENTS
  await fillStore(store, historyBatches(newHistory(requests, { ago: 3, days: 1 }), requests))
  const plot = newPlot('whole-run')
  let half = 0

  async function record(pack: 'on' | 'off') {
    const before = await packedEvents()
    await using server = await store.start(['--pack-payloads', pack])
    await load.record(server, { send: plot, seconds: plan.warmUpSeconds })
    const { rate } = await load.record(server, { send: plot, seconds: plan.seconds })
    half ||= rate / 2
    const { p99 } = await load.record(server, { send: plot, seconds: plan.seconds, rate: half })
    if (pack === 'on') await untilPacked(before)
    return { rate, p99 }
  }

  async function untilPacked(before: number): Promise<void> {
    for (const end = performance.now() + PACKED_WITHIN_MS; (await packedEvents()) === before; await wait(100)) {
      if (performance.now() > end)
        throw new Error(`Nothing was packed: ${before} of ${storedEvents} events were before`)
    }
  }

  async function packedEvents(): Promise<number> {
    const count = 'SELECT COUNT(*) AS events FROM events WHERE block IS NOT NULL'
    return withSql(store.at, async (sql) => (await sql.get<{ events: number }>(count))?.events ?? 0)
  }

  const sides = { off: () => record('off'), on: () => record('on') }
  const { on, off } = await inTurn(setting, sides, { alternating: true })
  const events = await packedEvents()
  return {
    rows: [
      row('events recorded while payloads are packed', '/s', on.rate, off.rate, ratioAtLeast(0.9)),
      row('acknowledgement at half the rate, p99', 'ms', on.p99, off.p99),
    ],
    notes: [`${whole(events)} of ${whole(storedEvents)} stored events were packed meanwhile.`],
  }
}
