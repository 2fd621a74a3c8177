/**
 * The cost of failed calls while recording: the server reads the reason of a failed run from them, and a job opens issues
 * from them.
 */
import type { Setting } from '../benchmark.ts'
import type { Engine } from '../engines/engine.ts'
import { onBoth } from '../engines/on-both.ts'
import { newPlot } from '../load/shapes.ts'
import { startLoad } from '../load/start.ts'
import { row, type Result } from '../result.ts'
import { inTurn } from '../rounds.ts'
import { WHOLE_RUNS } from './recording.ts'

export const failing = onBoth({
  sqlite: ['failing', 'Recording failed calls'],
  postgres: ['postgres-failing', 'Recording failed calls on PostgreSQL'],
  about: `${WHOLE_RUNS} In some, 5 or 50 of the 100 events are failed tool calls with an exception and its stack, so every run has failures, and a \
job makes issues of them meanwhile. All events have the same size. The three loads run in turn, each on a store and a server of its own. Here the bare \
limit is the load without failed calls.`,
  measure,
})

async function measure(setting: Setting, engine: Engine): Promise<Result> {
  const { seconds, warmUpSeconds } = setting.plan
  await using load = startLoad()

  async function side(name: string, failed: number) {
    const store = await engine.createStore(name)
    return async () => {
      await using server = await store.start()
      const plot = { ...newPlot('whole-run'), failed }
      await load.record(server, { send: plot, seconds: warmUpSeconds })
      return await load.record(server, { send: plot, seconds })
    }
  }

  const sides = { none: await side('none', 0), few: await side('few', 5), half: await side('half', 50) }
  const { none, few, half } = await inTurn(setting, sides)
  return {
    rows: [
      row('events, 5 % of them failed', '/s', few.rate, none.rate),
      row('events, 50 % of them failed', '/s', half.rate, none.rate),
      row('processor time of an event, 5 % failed', 'µs', few.cpuUs, none.cpuUs),
      row('processor time of an event, 50 % failed', 'µs', half.cpuUs, none.cpuUs),
      row('acknowledgement with 5 % failed, p99', 'ms', few.p99, none.p99),
      row('acknowledgement with 50 % failed, p99', 'ms', half.p99, none.p99),
    ],
    notes: [
      'Issues are made of 50 failures a second of an environment, after 5,000 at once; the others are recorded only. The processor time includes that job.',
    ],
  }
}
