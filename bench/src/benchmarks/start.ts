/** The cost of a server without load: start, memory and processor time; and the duration of a command. */
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startBareServer } from '../bare/http-server.ts'
import type { Benchmark } from '../benchmark.ts'
import { startLoad } from '../load/start.ts'
import { ROOT } from '../place.ts'
import { below, row } from '../result.ts'
import { inTurn } from '../rounds.ts'
import type { ServerProcess, Usage } from '../server-process.ts'
import { startServer, type Server } from '../server.ts'
import { spreadOf } from '../stats.ts'

const STORED_EVENTS = 20_000
/** Commands in one round: a single one varies too much. */
const COMMANDS = 5

/** A GET request in plain code, because an import would also load Node's fetch. */
const oneGet = (url: string) =>
  `process.getBuiltinModule('http').get('${url}/readyz').on('response', (reply) => reply.resume())`

export const start: Benchmark = {
  name: 'start',
  title: 'Starting, and doing nothing',
  part: 'process',
  about: [
    'Start: from spawning the process to its first answer on /readyz, with an existing store. Idle: memory of the process twenty seconds after its \
start, and its processor time over the next twenty seconds, without any request. The events of the store are of the last twenty days, so the server packs their \
payloads meanwhile; another has nothing to pack.',
    'The bare limit is the same Node running Fastify with one route that answers a short text. That of the command is Node with one `fetch` of \
/readyz; in its second row, with one request of node:http, which loads less of Node.',
  ],
  run: async (setting) => {
    const { plan, place } = setting
    const directory = path.join(place, 'store')
    {
      await using server = await startServer(directory)
      await using load = startLoad()
      await load.fillHistory(server, Math.min(plan.storedEvents, STORED_EVENTS))
    }

    async function startOnce(starting: Promise<ServerProcess>) {
      await using started = await starting
      return { ms: started.startMs }
    }
    const starts = await inTurn(setting, {
      server: () => startOnce(startServer(directory)),
      bare: () => startOnce(startBareServer(place, 'hello')),
    })

    await using server = await startServer(directory)
    await using hello = await startBareServer(place, 'hello')
    const count = plan.size === 'quick' ? 1 : COMMANDS
    const commands = await inTurn(
      setting,
      {
        list: () => runCommands(count, 'packages/cli/bin/tacho', ['runs', 'list'], server),
        bare: () => runCommands(count, 'scripts/node', ['--plain', '--eval', `fetch('${server.url}/readyz')`], server),
        oneGet: () => runCommands(count, 'scripts/node', ['--plain', '--eval', oneGet(server.url)], server),
      },
      { warmUp: true },
    )
    // Measure both at once: idle processes do not disturb each other.
    const look = () => Promise.all([server.usage(), hello.usage()])
    await sleep(plan.idleSeconds * 1000)
    const [before, bareBefore] = await look()
    await sleep(plan.idleSeconds * 1000)
    const [after, bareAfter] = await look()
    const share = (from: Usage, to: Usage) => (100 * (to.cpuSeconds - from.cpuSeconds)) / plan.idleSeconds
    await server.stop()
    await using rested = await startServer(directory, ['--pack-payloads', 'off'])
    await sleep(plan.idleSeconds * 1000)
    const { megabytes } = await rested.usage()
    const [shares, bareShares] = [[share(before, after)], [share(bareBefore, bareAfter)]]
    return {
      rows: [
        row('from spawning to ready', 'ms', starts.server.ms, starts.bare.ms, below(1_000)),
        row('idle memory (resident)', 'MB', [before.megabytes], [bareBefore.megabytes], below(150)),
        row('idle memory, with nothing to pack', 'MB', [megabytes], [bareBefore.megabytes], below(150)),
        row('idle processor time, of one core', '%', shares, bareShares, below(1)),
        row('`tacho runs list`', 'ms', commands.list.median, commands.bare.median, below(200)),
        row('`tacho runs list`, beside one request of node:http', 'ms', commands.list.median, commands.oneGet.median),
      ],
      notes: [],
    }
  },
}

/** The median duration of the command, from start to exit. */
function runCommands(count: number, command: string, args: readonly string[], server: Server) {
  const env = { ...process.env, TACHO_URL: server.url, TACHO_OPERATOR_TOKEN: server.operatorToken }
  const times = Array.from({ length: count }, () => {
    const start = performance.now()
    const { status, stderr } = spawnSync(path.join(ROOT, command), args, { env })
    if (status !== 0) throw new Error(`${command} ended with ${status}: ${stderr.toString()}`)
    return performance.now() - start
  })
  return { median: spreadOf(times).median }
}
