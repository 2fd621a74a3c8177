/** How soon a publication and a stop take effect in SDK clients, and how many clients confirm the stop. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { pythonCommand } from '../../../packages/sdk-conformance/test/python.ts'
import { startChild, type Child } from '../child.ts'
import type { SdkCall } from '../load/sdk-waiting.ts'
import type { WaitingAnswer } from '../load/waiting.ts'
import { ROOT } from '../place.ts'
import type { Plan } from '../plan.ts'
import { below, row, type Row } from '../result.ts'
import type { Server } from '../server.ts'
import { timesOf } from '../stats.ts'
import { assertAll, type Operator } from './stopping-operator.ts'

export const [TYPESCRIPT_PROCESSES, PYTHON_PROCESSES, CLIENTS_OF_PROCESS] = [9, 1, 100]
const PUBLICATIONS = 3
/** The default wait of `tacho stop`. */
const CONFIRMED_WITHIN_MS = 5_000

type Load = Child<SdkCall, WaitingAnswer>
type Figures = Record<'published' | 'p50' | 'p99' | 'last' | 'confirmed', number>

export async function stoppedClients(server: Server, operator: Operator, plan: Plan): Promise<Row[]> {
  const isQuick = plan.size === 'quick'
  const [each, inTypeScript] = isQuick ? [2, 2] : [CLIENTS_OF_PROCESS, TYPESCRIPT_PROCESSES]
  const hasPython = !isQuick && pythonCommand !== undefined
  await using opened = new AsyncDisposableStack()
  const inPython = hasPython ? Array.from({ length: PYTHON_PROCESSES }, startPython) : []
  const loads = [...Array.from({ length: inTypeScript }, startTypeScript), ...inPython].map((load) => opened.use(load))
  const [count, apiKey] = [each * loads.length, server.headers['x-api-key'] ?? '']
  for (const load of loads) await load.call({ open: each, url: server.url, apiKey })
  const figures: Figures[] = []
  for (let round = 1; round <= plan.rounds; round++) {
    const changed = async (begun: number, isBlocked: boolean) => {
      const revision = await operator.revision()
      const answers = await Promise.all(loads.map((load) => load.call({ changes: each, revision })))
      const decided = answers.flatMap((one) => one.decided)
      return assertAll(decided, count, isBlocked).map(({ at }) => at - begun)
    }
    const published: number[] = []
    for (let publication = 0; publication < (isQuick ? 1 : PUBLICATIONS); publication++) {
      published.push(...(await changed(await operator.deploy(), false)))
      // Wait until their events are delivered.
      if (!isQuick) await sleep(2_000)
    }
    const begun = await operator.stop()
    const stopped = await changed(begun, true)
    const { p50, p99 } = timesOf(stopped)
    const confirmed = await confirmations(operator, count, begun + CONFIRMED_WITHIN_MS)
    figures.push({ published: timesOf(published).p99, p50, p99, last: Math.max(...stopped), confirmed })
    await changed(await operator.resume(), false)
    if (!isQuick) await sleep(2_000)
  }
  await Promise.all(loads.map((load) => load.call({ close: true })))
  const of = (name: keyof Figures) => figures.map((one) => one[name])
  return [
    row('clients of the SDKs: publication to decision, p99', 'ms', of('published'), null, below(1_000)),
    row('clients of the SDKs: stop to the blocked call, p50', 'ms', of('p50')),
    row('clients of the SDKs: stop to the blocked call, p99', 'ms', of('p99')),
    row('clients of the SDKs: stop to the last blocked call', 'ms', of('last'), null, below(1_000)),
    row(`clients of ${count} that have confirmed the stop within 5 s`, 'clients', of('confirmed')),
  ]
}

/** The number of clients that confirmed it. Resolves when all have, or when the time is over. */
async function confirmations(operator: Operator, count: number, until: number): Promise<number> {
  for (;;) {
    const confirmed = await operator.confirmed()
    if (confirmed >= count || performance.timeOrigin + performance.now() >= until) return confirmed
    await sleep(250)
  }
}

const startTypeScript = (): Load => startChild(new URL('../load/sdk-waiting.ts', import.meta.url))

function startPython(): Load {
  const program = path.join(import.meta.dirname, '../load/sdk-waiting.py')
  const env = { ...process.env, PYTHONPATH: path.join(ROOT, 'sdks/python/src') }
  const child = spawn(pythonCommand as string, [program], { stdio: ['pipe', 'pipe', 'inherit'], env })
  const exited = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    async call(asked) {
      child.stdin.write(`${JSON.stringify(asked)}\n`)
      const line = await lines.next()
      if (line.done) throw new Error(`${program} ended`)
      return JSON.parse(line.value) as WaitingAnswer
    },
    async [Symbol.asyncDispose]() {
      child.stdin.end()
      await exited
    },
  }
}
