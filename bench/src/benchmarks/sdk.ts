/** The cost of recording for an agent. */
import type { Benchmark } from '../benchmark.ts'
import { startChild } from '../child.ts'
import type { RecordLoad, RecordResult } from '../load/record-calls.ts'
import { row } from '../result.ts'
import { whole } from '../text.ts'

export const sdk: Benchmark = {
  name: 'sdk',
  title: 'Recording with the TypeScript SDK',
  part: 'sdk',
  about: [
    'One process records tool calls of 550 bytes through the SDK with its default settings, credentials masked. It delivers them to a service in another \
process that counts and accepts them. Half of the time counts delivered events, the other half measures the time of each record call. \
Every event must be accepted. The two processes share the cores of the machine, as an agent and its service do on a small one.',
    'The bare limit is the same event built by hand, serialised, and sent with `fetch` in batches of 100: no masking, no bounds, no retries, no ids.',
  ],
  run: async ({ plan, say }) => {
    await using service = startChild<null, string>(new URL('../load/null-service.ts', import.meta.url))
    const url = await service.call(null)
    await using load = startChild<RecordLoad, RecordResult>(new URL('../load/record-calls.ts', import.meta.url))
    const [ours, bares]: [RecordResult[], RecordResult[]] = [[], []]
    for (let round = 0; round <= plan.rounds; round++) {
      const result = await load.call({ by: 'sdk', url, seconds: plan.seconds })
      const bare = await load.call({ by: 'hand', url, seconds: plan.seconds })
      // The first round warms up.
      if (round === 0) continue
      ours.push(result)
      bares.push(bare)
      say(`round ${round}: ${whole(result.perSecond)}/s, p99 ${result.p99Us.toFixed(1)} µs`)
    }
    const figures = (name: keyof RecordResult) => ({
      ours: ours.map((result) => result[name]),
      bare: bares.map((result) => result[name]),
    })
    const rate = [{ of: 'ours', is: 'at least', limit: 100_000 } as const]
    const time = [{ of: 'ours', is: 'below', limit: 20 } as const]
    const rows = [
      row({ what: 'events delivered', unit: '/s', better: 'more', ...figures('perSecond'), budgets: rate }),
      row({ what: 'record call, p50', unit: 'µs', better: 'less', ...figures('p50Us') }),
      row({ what: 'record call, p99', unit: 'µs', better: 'less', ...figures('p99Us'), budgets: time }),
      row({ what: 'record call, p99.9', unit: 'µs', better: 'less', ...figures('p999Us') }),
    ]
    return { rows, notes: [] }
  },
}
