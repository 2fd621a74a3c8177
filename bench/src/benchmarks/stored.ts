/** Whether recording slows down as the store grows. */
import path from 'node:path'
import type { Benchmark, Setting } from '../benchmark.ts'
import { newPlot } from '../load/shapes.ts'
import { row, type Result } from '../result.ts'
import { startServer, type Server } from '../server.ts'
import { whole } from '../text.ts'
import { fillHistory } from './history.ts'
import { CONNECTIONS, rateOf, startIngestLoad, WHOLE_RUNS } from './recording.ts'

export const FULL_AND_EMPTY = `One store has 10 million events of 1 million runs before. The other is empty at the start of each round. Here the bare \
limit is the same server on the empty store, not the driver.`

export const stored: Benchmark = {
  name: 'stored',
  title: 'Recording, 10 million events stored',
  part: 'sqlite',
  about: [`${WHOLE_RUNS} ${FULL_AND_EMPTY}`],
  onDemand: true,
  run: (setting) => measureStored(setting, (store) => startServer(path.join(setting.place, store))),
}

/** `start` starts a server on the store with that name. The first start of a name creates an empty store. */
export async function measureStored(
  { plan, say }: Setting,
  start: (store: string) => Promise<Server>,
): Promise<Result> {
  await using load = startIngestLoad()
  const filling = await start('full')
  await fillHistory(load, filling, plan.storedEvents)
  await filling.stop()
  say(`${whole(plan.storedEvents)} events are stored`)

  async function rateOn(store: string): Promise<number> {
    // A new server each time, so that both are equally warm.
    const server = await start(store)
    try {
      const { url, apiKey } = server
      const target = { url, apiKey, plot: newPlot('whole-run'), connections: CONNECTIONS }
      await load.call({ ...target, seconds: plan.warmUpSeconds })
      return rateOf(await load.call({ ...target, seconds: plan.seconds }))
    } finally {
      await server.stop()
    }
  }

  const [ours, empty]: [number[], number[]] = [[], []]
  for (let round = 1; round <= plan.rounds; round++) {
    ours.push(await rateOn('full'))
    empty.push(await rateOn(`empty-${round}`))
    say(`round ${round}: ${whole(ours.at(-1) ?? 0)} events/s, empty ${whole(empty.at(-1) ?? 0)}`)
  }
  const budgets = [{ of: 'ratio', is: 'at least', limit: 0.9 } as const]
  return { rows: [row({ what: 'events', unit: '/s', better: 'more', ours, bare: empty, budgets })], notes: [] }
}
