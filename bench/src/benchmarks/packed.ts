/** What packing payloads into blocks costs recording. */
import { setTimeout as wait } from 'node:timers/promises'
import type { Benchmark, Setting } from '../benchmark.ts'
import { BATCH_EVENTS } from '../load/events.ts'
import { newPlot, type Plot } from '../load/shapes.ts'
import { row, type Result } from '../result.ts'
import type { Server } from '../server.ts'
import { whole } from '../text.ts'
import { CONNECTIONS, rateOf, startIngestLoad, WHOLE_RUNS } from './recording.ts'
import { fill, sqliteStore, type RetainedStore } from './retention.ts'

export const PACKED = `${WHOLE_RUNS} The store has events of two days ago, in runs of 9 to 100 events. A server that packs their payloads in the \
background and one that does not run in turn on the same store: first with as much load as possible, then with half of it. Here the bare limit is the \
server that does not pack.`

export const packed: Benchmark = {
  name: 'packed',
  title: 'Recording while payloads are packed',
  part: 'sqlite',
  about: [PACKED],
  run: (setting) => measurePacked(setting, sqliteStore(setting.place)),
}

/** More than are packed meanwhile. */
const STORED_EVENTS_MAX = 400_000
const DAY_MS = 86_400_000

type PackedStore = Pick<RetainedStore, 'start' | 'open' | 'query'>

export async function measurePacked({ plan, say }: Setting, store: PackedStore): Promise<Result> {
  await using load = startIngestLoad()
  const first = await store.start(['--pack-payloads', 'off'])
  const environmentId = await first.environmentId()
  await first.stop()
  const requests = Math.min(plan.storedEvents, STORED_EVENTS_MAX) / BATCH_EVENTS
  const history = { from: Date.now() - 3 * DAY_MS, perRequestMs: DAY_MS / requests }
  await fill(store, environmentId, { ...newPlot('history'), history }, requests)

  const [on, off] = [newSide('on'), newSide('off')]
  const recording: Plot = newPlot('whole-run')

  async function record({ pack, rates, p99 }: Side): Promise<void> {
    await using server: Server = await store.start(['--pack-payloads', pack])
    const target = { url: server.url, apiKey: server.apiKey, plot: recording, connections: CONNECTIONS }
    await load.call({ ...target, seconds: plan.warmUpSeconds })
    const rate = rateOf(await load.call({ ...target, seconds: plan.seconds }))
    const perSecond = (off.rates[0] ?? rate) / 2 / BATCH_EVENTS
    const { times } = await load.call({ ...target, seconds: plan.seconds, perSecond })
    rates.push(rate)
    p99.push(times.p99)
    // Otherwise both sides did the same.
    while (pack === 'on' && (await packedEvents()) === 0) await wait(100)
  }

  async function packedEvents(): Promise<number> {
    const [found] = await store.query('SELECT COUNT(*) AS events FROM events WHERE block IS NOT NULL')
    return Number(found?.['events'])
  }

  for (let round = 1; round <= plan.rounds; round++) {
    for (const side of round % 2 === 0 ? [on, off] : [off, on]) await record(side)
    const [packing, plain] = [on, off].map(
      ({ rates, p99 }) => `${whole(rates.at(-1) ?? 0)} (${p99.at(-1)?.toFixed(1)} ms)`,
    )
    say(`round ${round}: ${packing} events/s while packing, ${plain} without`)
  }
  const events = await packedEvents()
  const rates = { ours: on.rates, bare: off.rates, budgets: [{ of: 'ratio', is: 'at least', limit: 0.9 } as const] }
  return {
    rows: [
      row({ what: 'events recorded while payloads are packed', unit: '/s', better: 'more', ...rates }),
      row({ what: 'acknowledgement at half the rate, p99', unit: 'ms', better: 'less', ours: on.p99, bare: off.p99 }),
    ],
    notes: [`${whole(events)} of ${whole(requests * BATCH_EVENTS)} stored events were packed meanwhile.`],
  }
}

interface Side {
  pack: 'on' | 'off'
  rates: number[]
  p99: number[]
}

const newSide = (pack: Side['pack']): Side => ({ pack, rates: [], p99: [] })
