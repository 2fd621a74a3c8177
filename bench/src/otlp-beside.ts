/**
 * Spans that Tacho, MLflow and Phoenix store over OTLP, in one run: the same requests from the same sender, in turn. By hand, in a
 * virtual environment of Python with mlflow and arize-phoenix: scripts/node bench/src/otlp-beside.ts <its folder>
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../packages/server/test/setup/free-port.ts'
import { BATCH_EVENTS } from './load/events.ts'
import { createTraceRequest } from './load/trace-request.ts'
import { makePlace } from './place.ts'
import { startServer } from './server.ts'
import { whole } from './text.ts'

const ROUNDS = 3
const SECONDS = 5
const CONNECTIONS = 4
const READY_MS = 480_000
/** A service that acknowledges before it stores may catch up. */
const SETTLE_MS = 10_000

interface Service {
  name: string
  traces: string
  headers: Record<string, string>
  /** How many spans its store has. */
  stored: () => number
}

const [folder = ''] = process.argv.slice(2)
const program = (name: string) => path.join(folder, 'bin', name)
const place = makePlace()
const children: ChildProcess[] = []

try {
  const missing = ['mlflow', 'phoenix'].filter((name) => !existsSync(program(name)))
  if (missing.length > 0)
    console.log(`Not measured: there is no ${missing.join(' and no ')} in ${folder || 'the folder'}.`)
  else await measure()
} finally {
  for (const child of children)
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL')
  rmSync(place, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
}

async function measure(): Promise<void> {
  await using tacho = await startServer(path.join(place, 'store'))
  const services: Service[] = [
    {
      name: 'Tacho',
      traces: `${tacho.url}/openapi/v1/otlp/v1/traces`,
      headers: { 'x-api-key': tacho.apiKey },
      stored: () => countIn(path.join(place, 'store', 'tacho.db'), 'events'),
    },
    ...(await Promise.all([startMlflow(), startPhoenix()])),
  ]
  const { body, renew } = createTraceRequest()
  const rates = new Map<string, number[]>(services.map(({ name }) => [name, []]))
  const lost = new Map<string, number>()
  for (let round = 0; round <= ROUNDS; round++) {
    for (const { name, traces, headers, stored } of services) {
      const before = stored()
      const answers = { accepted: 0, refused: 0 }
      const begun = performance.now()
      const end = begun + SECONDS * 1_000
      const lane = async (): Promise<void> => {
        const own = Buffer.from(body)
        while (performance.now() < end) {
          renew(own)
          const reply = await fetch(traces, {
            method: 'POST',
            headers: { ...headers, 'content-type': 'application/x-protobuf' },
            body: own,
          })
          await reply.arrayBuffer()
          if (reply.ok) answers.accepted++
          else answers.refused++
        }
      }
      await Promise.all(Array.from({ length: CONNECTIONS }, lane))
      const seconds = (performance.now() - begun) / 1_000
      const sent = answers.accepted * BATCH_EVENTS
      for (let waited = 0; stored() - before < sent && waited < SETTLE_MS; waited += 500) await sleep(500)
      const kept = Math.min(stored() - before, sent)
      console.log(
        `round ${round}: ${name} acknowledged ${whole(sent / seconds)} spans/s, stored ${whole(kept / seconds)}, refused ${answers.refused} requests`,
      )
      // The first round warms up.
      if (round === 0) continue
      rates.get(name)?.push(kept / seconds)
      lost.set(name, (lost.get(name) ?? 0) + sent - kept)
    }
  }
  for (const [name, found] of rates) {
    const [low = 0, median = 0, high = 0] = found.toSorted((a, b) => a - b)
    console.log(
      `${name}: ${whole(median)} (${whole(low)}–${whole(high)}) spans/s stored, ${lost.get(name)} acknowledged but not stored`,
    )
  }
}

async function startMlflow(): Promise<Service> {
  const port = await freePort()
  const file = path.join(place, 'mlflow.db')
  const args = ['server', '--host', '127.0.0.1', '--port', String(port), '--workers', '2']
  await start(
    'mlflow',
    [...args, '--backend-store-uri', `sqlite:///${file}`],
    { MLFLOW_DISABLE_TELEMETRY: 'true' },
    `http://127.0.0.1:${port}/health`,
  )
  return {
    name: 'MLflow',
    traces: `http://127.0.0.1:${port}/v1/traces`,
    headers: { 'x-mlflow-experiment-id': '0' },
    stored: () => countIn(file, 'spans'),
  }
}

async function startPhoenix(): Promise<Service> {
  const [port, grpcPort] = [await freePort(), await freePort()]
  const home = path.join(place, 'phoenix')
  mkdirSync(home)
  const variables = {
    PHOENIX_WORKING_DIR: home,
    PHOENIX_HOST: '127.0.0.1',
    PHOENIX_PORT: String(port),
    PHOENIX_GRPC_PORT: String(grpcPort),
    PHOENIX_TELEMETRY_ENABLED: 'false',
  }
  await start('phoenix', ['serve'], variables, `http://127.0.0.1:${port}/healthz`)
  return {
    name: 'Phoenix',
    traces: `http://127.0.0.1:${port}/v1/traces`,
    headers: {},
    stored: () => countIn(path.join(home, 'phoenix.db'), 'spans'),
  }
}

async function start(name: string, args: string[], variables: object, readyUrl: string): Promise<void> {
  const log = openSync(path.join(place, `${name}.log`), 'a')
  const env = { ...process.env, ...variables }
  const child = spawn(program(name), args, { stdio: ['ignore', log, log], env, detached: true, cwd: place })
  children.push(child)
  const ready = Date.now() + READY_MS
  for (;;) {
    const status = await fetch(readyUrl).then(
      ({ status: found }) => found,
      () => 0,
    )
    if (status === 200) return
    if (Date.now() > ready || child.exitCode !== null) {
      throw new Error(`${name} did not start: ${readFileSync(path.join(place, `${name}.log`), 'utf8').slice(-1_000)}`)
    }
    await sleep(500)
  }
}

function countIn(file: string, table: string): number {
  const store = new DatabaseSync(file, { readOnly: true, timeout: 10_000 })
  try {
    return Number(store.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n'])
  } finally {
    store.close()
  }
}
