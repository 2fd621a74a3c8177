/** PostgreSQL with one server process and with two. */
import type { Benchmark } from '../benchmark.ts'
import { openPostgres } from '../engines/postgres.ts'
import { newPlot } from '../load/shapes.ts'
import { startLoad } from '../load/start.ts'
import { row } from '../result.ts'
import { inTurn } from '../rounds.ts'
import type { Server } from '../server.ts'
import { spreadOf } from '../stats.ts'
import { ratio, spread } from '../text.ts'
import { WHOLE_RUNS } from './recording.ts'

export const workers: Benchmark = {
  name: 'postgres-workers',
  title: 'From one process to two',
  part: 'postgres',
  about: [
    `${WHOLE_RUNS} One server has one process, the other has two (\`--workers 2\`), each with its own database. Here the bare limit is the server with \
one process. The database and the load generator run on the same machine, so two cores leave little for a second process.`,
  ],
  run: async (setting) => {
    await using engine = await openPostgres(setting)
    await using load = startLoad()
    const start = async (count: string) => (await engine.createStore(count)).start(['--workers', count])
    await using pair = await start('2')
    await using single = await start('1')
    const recorder = (server: Server) => {
      const plot = newPlot('whole-run')
      return async () => {
        const { rate } = await load.record(server, { send: plot, seconds: setting.plan.seconds })
        return { rate }
      }
    }
    const { two, one } = await inTurn(setting, { two: recorder(pair), one: recorder(single) }, { warmUp: true })
    const growth = spreadOf(two.rate.map((rate, round) => rate / (one.rate[round] ?? Number.NaN)))
    return {
      rows: [row('events, two processes', '/s', two.rate, one.rate)],
      notes: [`From one process to two the rate grows ${spread(growth, ratio)} times.`],
    }
  },
}
