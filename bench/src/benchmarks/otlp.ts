/** Spans over OTLP, compared with events over the batch endpoint of the same server. */
import path from 'node:path'
import type { Benchmark } from '../benchmark.ts'
import { newPlot, type Plot } from '../load/shapes.ts'
import { startLoad } from '../load/start.ts'
import { ratioAtLeast, row } from '../result.ts'
import { inTurn } from '../rounds.ts'
import { startServer } from '../server.ts'

export const otlp: Benchmark = {
  name: 'otlp',
  title: 'OpenTelemetry spans',
  part: 'sqlite',
  about: [
    'Like recording, but each request is one OTLP trace in protobuf: 100 spans, as large as a batch of events. Here the bare limit is the \
batch endpoint of the same server, measured in the same round.',
  ],
  run: async (setting) => {
    const { plan, place } = setting
    await using server = await startServer(path.join(place, 'store'))
    await using load = startLoad()
    const plot = newPlot('whole-run')
    for (const send of ['spans', plot] as const) await load.record(server, { send, seconds: plan.warmUpSeconds })
    const record = async (send: Plot | 'spans') => {
      const { rate, cpuUs } = await load.record(server, { send, seconds: plan.seconds })
      return { rate, cpuUs }
    }
    const { spans, events } = await inTurn(setting, { spans: () => record('spans'), events: () => record(plot) })
    return {
      rows: [
        row('spans, beside events of the batch endpoint', '/s', spans.rate, events.rate, ratioAtLeast(0.5)),
        row('processor time of a span', 'µs', spans.cpuUs, events.cpuUs),
      ],
      notes: [],
    }
  },
}
