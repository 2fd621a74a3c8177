/**
 * Clients that wait for a configuration change: their cost while nothing happens, and the delay until a change is in
 * force.
 */
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startBareServer } from '../bare/http-server.ts'
import type { Benchmark, Setting } from '../benchmark.ts'
import { startChild } from '../child.ts'
import { openPostgres } from '../engines/postgres.ts'
import type { Opened, WaitingAnswer, WaitingCall } from '../load/waiting.ts'
import { below, row } from '../result.ts'
import { startServer, type Server } from '../server.ts'
import type { Usage } from '../server-process.ts'
import { timesOf } from '../stats.ts'
import { whole } from '../text.ts'
import { assertAll, now, operatorOf } from './stopping-operator.ts'
import { CLIENTS_OF_PROCESS, PYTHON_PROCESSES, stoppedClients, TYPESCRIPT_PROCESSES } from './stopped-clients.ts'

const TARGET = '/openapi/v1/runtime-config?wait=25'
/** Smaller values are not shown, because a quick run is too short to measure them. */
const MEASURABLE = 0.01

export const configurationWaits: Benchmark = {
  name: 'configuration-waits',
  title: 'Clients that wait for the configuration',
  part: 'process',
  about: [
    '10,000 clients hold `GET /runtime-config?wait=25` on a connection each, with the current tag. Memory is what the process has more than before they \
came. Processor time is what a second in which they only wait takes more than a second without them; each client asks again every 25 seconds, and that is not in it. Clients ask with one key, whose rate limit is \
raised (`--rate-limit`).',
    'The bare limit is a `node:http` server that holds each request and never answers.',
  ],
  run: async (setting) => {
    const { plan, place } = setting
    const count = plan.size === 'quick' ? 20 : 10_000
    await using server = await startServer(path.join(place, 'store'), ['--rate-limit', '1000000'])
    const { tag } = await configurationOf(server)
    const ours: Held[] = []
    const bare: Held[] = []
    for (let round = 1; round <= plan.rounds; round++) {
      const headers = { ...server.headers, 'if-none-match': tag }
      ours.push(await held(setting, server, { open: count, url: server.url, target: TARGET, headers }))
      await using bareServer = await startBareServer(place, 'hold')
      bare.push(await held(setting, bareServer, { open: count, url: bareServer.url, target: '/', headers: {} }))
      setting.say(`round ${round}: ours ${JSON.stringify(ours.at(-1))}, bare ${JSON.stringify(bare.at(-1))}`)
    }
    const of = (name: keyof Held) => [ours.map((each) => each[name]), bare.map((each) => each[name])] as const
    return {
      rows: [
        row('memory of a waiting client', 'kB', ...of('kilobytes'), below(20)),
        row('processor time of a second, all clients waiting', 'ms', ...of('cpuMs')),
      ],
      notes: [`${whole(count)} clients.`],
    }
  },
}

interface Held {
  kilobytes: number
  cpuMs: number
}

async function held({ plan }: Setting, server: { usage(): Promise<Usage> }, clients: Opened): Promise<Held> {
  const seconds = Math.min(plan.idleSeconds, 8)
  await sleep(seconds * 250)
  const alone = await server.usage()
  await sleep(seconds * 1_000)
  const before = await server.usage()
  await using load = startChild<WaitingCall, WaitingAnswer>(new URL('../load/waiting.ts', import.meta.url))
  await load.call(clients)
  // Wait until the last requests are read and garbage is collected.
  await sleep(seconds * 500)
  const begun = await server.usage()
  await sleep(seconds * 1_000)
  const ended = await server.usage()
  const busySeconds = ended.cpuSeconds - begun.cpuSeconds
  return {
    kilobytes: Math.max(MEASURABLE, ((ended.megabytes - before.megabytes) * 1_000) / clients.open),
    cpuMs: Math.max(MEASURABLE, ((busySeconds - (before.cpuSeconds - alone.cpuSeconds)) * 1_000) / seconds),
  }
}

async function configurationOf(server: Server): Promise<{ tag: string; text: string }> {
  const reply = await fetch(`${server.url}${TARGET.replace('?wait=25', '')}`, { headers: server.headers })
  return { text: await reply.text(), tag: reply.headers.get('etag') ?? '' }
}

const PUBLICATIONS = 20

export const liveConfiguration: Benchmark = {
  name: 'postgres-live-configuration',
  title: 'From a publication or a stop to the decisions of 1,000 clients',
  part: 'postgres',
  about: [
    `The server has two processes (\`--workers 2\`), and 1,000 clients wait on both of them. A policy is deployed ${PUBLICATIONS} times in each round. The \
time of a client begins with the operator's request and ends when it has decided a call by the new configuration. Then the agent of all clients is \
stopped; the last client that blocks its call counts. The bare limit is one process of \`node:http\` that answers as many waiting clients with the same \
text at once, and knows no database.`,
    `These clients are minimal, in one process. The last rows are of real ones: ${TYPESCRIPT_PROCESSES} processes with ${CLIENTS_OF_PROCESS} clients of the \
TypeScript SDK each, and ${PYTHON_PROCESSES} with ${CLIENTS_OF_PROCESS} of the Python SDK. Each makes a guarded call as soon as its configuration changes, and records it. They share the \
machine with the server.`,
  ],
  run: async (setting) => {
    const { plan, say } = setting
    const isQuick = plan.size === 'quick'
    const [count, publications] = isQuick ? [10, 2] : [1_000, PUBLICATIONS]
    await using engine = await openPostgres(setting)
    const store = await engine.createStore('live')
    await using server = await store.start(['--workers', '2', '--rate-limit', '1000000'])
    const operator = await operatorOf(server)
    await operator.deploy()
    const { tag, text } = await configurationOf(server)
    const headers = { ...server.headers, 'if-none-match': tag }
    const figures: { published: number; stopped: number; bare: number; bareLast: number }[] = []
    {
      await using clients = startChild<WaitingCall, WaitingAnswer>(new URL('../load/waiting.ts', import.meta.url))
      await clients.call({ open: count, url: server.url, target: TARGET, headers })
      const bodyFile = path.join(setting.place, 'body.json')
      writeFileSync(bodyFile, text)
      await using bareServer = await startBareServer(setting.place, 'hold', bodyFile)
      await using bareClients = startChild<WaitingCall, WaitingAnswer>(new URL('../load/waiting.ts', import.meta.url))
      await bareClients.call({ open: count, url: bareServer.url, target: '/', headers: {} })
      await sleep(isQuick ? 200 : 2_000)
      for (let round = 1; round <= plan.rounds; round++) {
        const [times, bareTimes, lasts] = [[], [], []] as [number[], number[], number[]]
        for (let publication = 0; publication < publications; publication++) {
          const begun = await operator.deploy()
          const { decided } = await clients.call({ changes: count })
          times.push(...assertAll(decided, count, false).map(({ at }) => at - begun))
          const bareBegun = now()
          await (await fetch(`${bareServer.url}/wake`)).arrayBuffer()
          const woken = (await bareClients.call({ changes: count })).decided.map(({ at }) => at - bareBegun)
          bareTimes.push(...woken)
          lasts.push(Math.max(...woken))
        }
        const begun = await operator.stop()
        const { decided } = await clients.call({ changes: count })
        const stopped = Math.max(...assertAll(decided, count, true).map(({ at }) => at - begun))
        await operator.resume()
        await clients.call({ changes: count })
        const [bare, bareLast] = [timesOf(bareTimes).p99, timesOf(lasts).p50]
        figures.push({ published: timesOf(times).p99, stopped, bare, bareLast })
        say(`round ${round}: ${JSON.stringify(figures.at(-1))}`)
      }
    }
    const of = (name: keyof (typeof figures)[number]) => figures.map((each) => each[name])
    // Ignore a failure: on a busy machine, these clients fail before anything else does.
    const real = await stoppedClients(server, operator, plan).catch((error: Error) => error.message)
    return {
      rows: [
        row('publication to decision, p99 of all clients', 'ms', of('published'), of('bare'), below(1_000)),
        row('stop to the last blocked call', 'ms', of('stopped'), of('bareLast'), below(1_000)),
        ...(typeof real === 'string' ? [] : real),
      ],
      notes: typeof real === 'string' ? [`The clients of the SDKs were not measured: ${real}.`] : [],
    }
  },
}
