/** The cost of a server without load: its start, its memory, its processor time. */
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startBareServer } from '../bare/http-server.ts'
import type { Benchmark } from '../benchmark.ts'
import { row } from '../result.ts'
import type { Usage } from '../server-process.ts'
import { startServer } from '../server.ts'
import { whole } from '../text.ts'
import { fillHistory } from './history.ts'
import { startIngestLoad } from './recording.ts'

const STORED_EVENTS = 20_000

export const start: Benchmark = {
  name: 'start',
  title: 'Starting, and doing nothing',
  part: 'process',
  about: [
    'Start: from spawning the process to its first answer on /readyz, with an existing store. Idle: memory of the process twenty seconds after its \
start, and its processor time over the next twenty seconds, without any request.',
    'The bare limit is the same Node running Fastify with one route that answers a short text.',
  ],
  run: async ({ plan, place, say }) => {
    const directory = path.join(place, 'store')
    {
      await using server = await startServer(directory)
      await using load = startIngestLoad()
      await fillHistory(load, server, Math.min(plan.storedEvents, STORED_EVENTS))
    }

    const [starts, bareStarts]: [number[], number[]] = [[], []]
    for (let round = 1; round <= plan.rounds; round++) {
      const server = await startServer(directory)
      await server.stop()
      const hello = await startBareServer(place, 'hello')
      await hello.stop()
      starts.push(server.startMs)
      bareStarts.push(hello.startMs)
      say(`round ${round}: ready after ${whole(server.startMs)} ms, bare ${whole(hello.startMs)} ms`)
    }

    await using server = await startServer(directory)
    await using hello = await startBareServer(place, 'hello')
    // Both at once: idle processes do not disturb each other.
    const look = () => Promise.all([server.usage(), hello.usage()])
    await sleep(plan.idleSeconds * 1000)
    const [before, bareBefore] = await look()
    await sleep(plan.idleSeconds * 1000)
    const [after, bareAfter] = await look()
    const share = (from: Usage, to: Usage) => (100 * (to.cpuSeconds - from.cpuSeconds)) / plan.idleSeconds
    return {
      rows: [
        row({
          what: 'from spawning to ready',
          unit: 'ms',
          ours: starts,
          bare: bareStarts,
          better: 'less',
          budgets: [{ of: 'ours', is: 'below', limit: 1_000 }],
        }),
        row({
          what: 'idle memory (resident)',
          unit: 'MB',
          ours: [before.megabytes],
          bare: [bareBefore.megabytes],
          better: 'less',
          budgets: [{ of: 'ours', is: 'below', limit: 150 }],
        }),
        row({
          what: 'idle processor time, of one core',
          unit: '%',
          ours: [share(before, after)],
          bare: [share(bareBefore, bareAfter)],
          better: 'less',
          budgets: [{ of: 'ours', is: 'below', limit: 1 }],
        }),
      ],
      notes: [],
    }
  },
}
