/** Whether recording slows down as the store grows. */
import type { Setting } from '../benchmark.ts'
import type { Engine, Store } from '../engines/engine.ts'
import { onBoth } from '../engines/on-both.ts'
import { newPlot } from '../load/shapes.ts'
import { startLoad } from '../load/start.ts'
import { ratioAtLeast, row, type Result } from '../result.ts'
import { inTurn } from '../rounds.ts'
import { whole } from '../text.ts'
import { WHOLE_RUNS } from './recording.ts'

export const stored = onBoth({
  sqlite: ['stored', 'Recording, 10 million events stored'],
  postgres: ['postgres-stored', 'Recording on PostgreSQL, 10 million events stored'],
  about: `${WHOLE_RUNS} One store already has 10 million events of 1 million runs. The other is empty at the start of each round. Here the bare \
limit is the same server on the empty store, not the driver.`,
  onDemand: true,
  measure,
})

async function measure(setting: Setting, engine: Engine): Promise<Result> {
  const { plan, say } = setting
  await using load = startLoad()
  const filled = await engine.createStore('full')
  const filling = await filled.start()
  await load.fillHistory(filling, plan.storedEvents)
  await filling.stop()
  say(`${whole(plan.storedEvents)} events are stored`)

  async function record(store: Store) {
    // Start a new server for each store, so that both are equally warm.
    await using server = await store.start()
    const plot = newPlot('whole-run')
    await load.record(server, { send: plot, seconds: plan.warmUpSeconds })
    const { rate } = await load.record(server, { send: plot, seconds: plan.seconds })
    return { rate }
  }

  const { full, empty } = await inTurn(setting, {
    full: () => record(filled),
    empty: async (round) => record(await engine.createStore(`empty-${round}`)),
  })
  return { rows: [row('events', '/s', full.rate, empty.rate, ratioAtLeast(0.9))], notes: [] }
}
