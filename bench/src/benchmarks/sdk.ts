/** The cost of recording for an agent. */
import { startBareServer } from '../bare/http-server.ts'
import type { Benchmark } from '../benchmark.ts'
import { startChild } from '../child.ts'
import type { RecordLoad } from '../load/record-calls.ts'
import { atLeast, below, row } from '../result.ts'
import { inTurn } from '../rounds.ts'
import type { Rate } from '../stats.ts'

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
  run: async (setting) => {
    const { place, plan } = setting
    const { seconds } = plan
    await using service = await startBareServer(place, 'count')
    const { url } = service
    await using load = startChild<RecordLoad, Rate>(new URL('../load/record-calls.ts', import.meta.url))
    const { sdk: ours, bare } = await inTurn(
      setting,
      { sdk: () => load.call({ by: 'sdk', url, seconds }), bare: () => load.call({ by: 'hand', url, seconds }) },
      { warmUp: true },
    )
    return {
      rows: [
        row('events delivered', '/s', ours.perSecond, bare.perSecond, atLeast(100_000)),
        row('record call, p50', 'µs', ours.p50Us, bare.p50Us),
        row('record call, p99', 'µs', ours.p99Us, bare.p99Us, below(20)),
        row('record call, p99.9', 'µs', ours.p999Us, bare.p999Us),
      ],
      notes: [],
    }
  },
}
