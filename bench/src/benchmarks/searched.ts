/** The cost of search over payloads while recording: the index is built as events arrive. */
import type { Setting } from '../benchmark.ts'
import type { Engine, Store } from '../engines/engine.ts'
import { onBoth } from '../engines/on-both.ts'
import { newPlot } from '../load/shapes.ts'
import { startLoad } from '../load/start.ts'
import { ratioAtLeast, row, type Result } from '../result.ts'
import { inTurn } from '../rounds.ts'
import { WHOLE_RUNS } from './recording.ts'

export const searched = onBoth({
  sqlite: ['searched', 'Recording with search on'],
  postgres: ['postgres-searched', 'Recording on PostgreSQL with search on'],
  about: `${WHOLE_RUNS} One server indexes the payloads of its events for search, the other does not. They run in turn. Here the \
bare limit is the server without search. The processor time includes the work on the index while events arrive.`,
  measure,
})

async function measure(setting: Setting, engine: Engine): Promise<Result> {
  const { plan } = setting
  await using load = startLoad()
  const [searching, plain] = [await engine.createStore('search'), await engine.createStore('plain')]

  /** Only one server runs at a time, because another one would continue to build its index. */
  async function record(store: Store, round: number) {
    await using server = await store.start()
    if (store === searching && round === 1) {
      const { environmentId } = await server.home()
      await server.operator(`/environments/${environmentId}/search/settings`, { enabled: true })
    }
    const plot = newPlot('whole-run')
    await load.record(server, { send: plot, seconds: plan.warmUpSeconds })
    const { rate, cpuUs } = await load.record(server, { send: plot, seconds: plan.seconds })
    return { rate, cpuUs }
  }

  const sides = { off: (round: number) => record(plain, round), on: (round: number) => record(searching, round) }
  const { on, off } = await inTurn(setting, sides, { alternating: true })
  return {
    rows: [
      row('events', '/s', on.rate, off.rate, ratioAtLeast(0.8)),
      row('processor time of an event', 'µs', on.cpuUs, off.cpuUs),
    ],
    notes: [],
  }
}
