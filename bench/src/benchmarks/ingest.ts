/** Durable ingest with the embedded engine. */
import path from 'node:path'
import type { BareWrites, BareWritten } from '../bare/sqlite.ts'
import type { Benchmark, Setting } from '../benchmark.ts'
import { startChild } from '../child.ts'
import { newPlot, type Shape } from '../load/shapes.ts'
import type { Result } from '../result.ts'
import { startServer } from '../server.ts'
import { measureRecording, MIXED_RUNS, WHOLE_RUNS, type Recording } from './recording.ts'

export const ingest: Benchmark = {
  name: 'ingest',
  title: 'Recording, a run in each request',
  part: 'sqlite',
  about: [WHOLE_RUNS],
  run: (setting) =>
    measure(setting, 'whole-run', {
      rate: [
        { of: 'ratio', is: 'at least', limit: 0.6 },
        { of: 'ours', is: 'at least', limit: 60_000 },
      ],
      p99: [{ of: 'ours', is: 'below', limit: 50 }],
    }),
}

export const mixed: Benchmark = {
  name: 'mixed',
  title: 'Recording, events of 1,000 runs mixed',
  part: 'sqlite',
  about: [MIXED_RUNS],
  run: (setting) => measure(setting, 'mixed', { rate: [{ of: 'ratio', is: 'at least', limit: 0.6 }] }),
}

async function measure(setting: Setting, shape: Shape, budgets: Recording['budgets']): Promise<Result> {
  await using server = await startServer(path.join(setting.place, 'store'))
  await using child = startChild<BareWrites, BareWritten>(new URL('../bare/sqlite.ts', import.meta.url))
  const plot = newPlot(shape)
  const file = path.join(setting.place, 'bare.db')
  const bare: Recording['bare'] = (args) => child.call({ ...args, file, plot })
  return await measureRecording(setting, { server, plot, name: 'events', bare, beside: [], budgets })
}
