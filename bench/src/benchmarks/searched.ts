/** What search over payloads costs recording: the index is made while events arrive. */
import path from 'node:path'
import type { Benchmark, Setting } from '../benchmark.ts'
import { newPlot } from '../load/shapes.ts'
import { row, type Result } from '../result.ts'
import { cpuUsPerEvent, startServer, type Server } from '../server.ts'
import { whole } from '../text.ts'
import { CONNECTIONS, rateOf, startIngestLoad, WHOLE_RUNS } from './recording.ts'

export const SEARCHED = `${WHOLE_RUNS} One server indexes the payloads of its events for search, the other does not. They run in turn. Here the \
bare limit is the server without search. The processor time includes the work on the index while events arrive.`

export const searched: Benchmark = {
  name: 'searched',
  title: 'Recording with search on',
  part: 'sqlite',
  about: [SEARCHED],
  run: (setting) => measureSearched(setting, (name) => startServer(path.join(setting.place, name))),
}

/** `start` starts a server on the store with that name. The first start of a name creates an empty store. */
export async function measureSearched(
  { plan, say }: Setting,
  start: (store: string) => Promise<Server>,
): Promise<Result> {
  await using load = startIngestLoad()
  const [on, off] = [newSide('search', true), newSide('plain', false)]

  /** Only one server runs, because the other would go on with its index. */
  async function record({ store, enabled, rates, cpus }: Side): Promise<void> {
    await using server = await start(store)
    if (enabled && rates.length === 0) {
      await server.operator(`/environments/${await server.environmentId()}/search/settings`, { enabled })
    }
    const target = { url: server.url, apiKey: server.apiKey, plot: newPlot('whole-run'), connections: CONNECTIONS }
    await load.call({ ...target, seconds: plan.warmUpSeconds })
    const before = await server.metrics()
    rates.push(rateOf(await load.call({ ...target, seconds: plan.seconds })))
    cpus.push(cpuUsPerEvent(before, await server.metrics()))
  }

  for (let round = 1; round <= plan.rounds; round++) {
    for (const side of round % 2 === 0 ? [on, off] : [off, on]) await record(side)
    const [searching, plain] = [on, off].map(({ rates }) => whole(rates.at(-1) ?? 0))
    say(`round ${round}: ${searching} events/s with search, ${plain} without`)
  }
  const rates = { ours: on.rates, bare: off.rates, budgets: [{ of: 'ratio', is: 'at least', limit: 0.8 } as const] }
  return {
    rows: [
      row({ what: 'events', unit: '/s', better: 'more', ...rates }),
      row({ what: 'processor time of an event', unit: 'µs', better: 'less', ours: on.cpus, bare: off.cpus }),
    ],
    notes: [],
  }
}

interface Side {
  store: string
  enabled: boolean
  rates: number[]
  cpus: number[]
}

const newSide = (store: string, enabled: boolean): Side => ({ store, enabled, rates: [], cpus: [] })
