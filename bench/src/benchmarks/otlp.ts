/** Spans by OTLP beside events by the batch endpoint of the same server. */
import path from 'node:path'
import { withEnds, type Benchmark } from '../benchmark.ts'
import { startChild } from '../child.ts'
import type { OtlpLoad } from '../load/otlp-load.ts'
import type { Paced } from '../load/pace.ts'
import { newPlot } from '../load/shapes.ts'
import { row } from '../result.ts'
import { cpuUsPerEvent, startServer } from '../server.ts'
import { whole } from '../text.ts'
import { CONNECTIONS, rateOf, startIngestLoad } from './recording.ts'

export const otlp: Benchmark = {
  name: 'otlp',
  title: 'OpenTelemetry spans',
  part: 'sqlite',
  about: [
    'As recording, but the requests are OTLP traces in protobuf: 100 spans each, as large as the batches of events, with a trace of their \
own. What stands in the place of the bare limit is the batch endpoint of the same server, round by round.',
  ],
  run: ({ plan, place, say }) =>
    withEnds(async (end) => {
      const server = await startServer(path.join(place, 'store'))
      end(server.stop)
      const spans = startChild<OtlpLoad, Paced>(new URL('../load/otlp-load.ts', import.meta.url))
      end(spans.end)
      const events = startIngestLoad()
      end(events.end)
      const target = { url: server.url, apiKey: server.apiKey, connections: CONNECTIONS }
      const plot = newPlot('whole-run')
      await spans.call({ ...target, seconds: plan.warmUpSeconds })
      await events.call({ ...target, plot, seconds: plan.warmUpSeconds })

      const [rates, batchRates, cpus, batchCpus]: [number[], number[], number[], number[]] = [[], [], [], []]
      for (let round = 1; round <= plan.rounds; round++) {
        const before = await server.metrics()
        rates.push(rateOf(await spans.call({ ...target, seconds: plan.seconds })))
        const between = await server.metrics()
        batchRates.push(rateOf(await events.call({ ...target, plot, seconds: plan.seconds })))
        cpus.push(cpuUsPerEvent(before, between))
        batchCpus.push(cpuUsPerEvent(between, await server.metrics()))
        say(`round ${round}: ${[rates, batchRates].map((found) => whole(found.at(-1) ?? 0)).join(' spans/s, events ')}`)
      }
      return {
        rows: [
          row({
            what: 'spans, beside events of the batch endpoint',
            unit: '/s',
            better: 'more',
            ours: rates,
            bare: batchRates,
            budgets: [{ of: 'ratio', is: 'at least', limit: 0.5 }],
          }),
          row({ what: 'processor time of a span', unit: 'µs', better: 'less', ours: cpus, bare: batchCpus }),
        ],
        notes: [],
      }
    }),
}
