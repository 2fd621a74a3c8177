/** Spans over OTLP, compared with events over the batch endpoint of the same server. */
import path from 'node:path'
import type { Benchmark } from '../benchmark.ts'
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
    'Like recording, but each request is one OTLP trace in protobuf: 100 spans, as large as a batch of events. Here the bare limit is the \
batch endpoint of the same server, measured in the same round.',
  ],
  run: async ({ plan, place, say }) => {
    await using server = await startServer(path.join(place, 'store'))
    await using spans = startChild<OtlpLoad, Paced>(new URL('../load/otlp-load.ts', import.meta.url))
    await using events = startIngestLoad()
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
  },
}
