/**
 * Compares Tacho, MLflow and Phoenix: spans stored over OTLP in one run, from the same requests and sender, in turn.
 * Run by hand in a Python virtual environment with mlflow and arize-phoenix: scripts/node bench/src/otlp-beside.ts <its
 * folder>
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, openSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { STORE_FILE } from '@tacho/server/storage/sqlite/database.ts'
import { freePort } from '../../packages/server/test/setup/free-port.ts'
import { BATCH_EVENTS } from './load/events.ts'
import { paceRequests, type Send } from './load/pace.ts'
import { createTraceRequest } from './load/trace-request.ts'
import { makePlace } from './place.ts'
import { inTurn } from './rounds.ts'
import { startServer } from './server.ts'
import { spreadOf } from './stats.ts'
import { spread, whole } from './text.ts'

const [ROUNDS, SECONDS, CONNECTIONS] = [3, 5, 4]
const READY_MS = 480_000
/** Time for a service that acknowledges before it stores. */
const SETTLE_MS = 10_000

interface Service {
  traces: string
  headers: Record<string, string>
  /** The number of spans in its store. */
  stored: () => number
}

const [folder = ''] = process.argv.slice(2)
const place = makePlace()
const program = (name: string) => path.join(folder, 'bin', name)
const missing = ['mlflow', 'phoenix'].filter((name) => !existsSync(program(name)))
if (missing.length > 0) {
  console.log(`Not measured: there is no ${missing.join(' and no ')} in ${folder || 'the folder'}.`)
  process.exit(1)
}

await using programs = new AsyncDisposableStack()
await using tacho = await startServer(path.join(place, 'store'))
const services: Record<string, Service> = {
  Tacho: {
    traces: `${tacho.url}/openapi/v1/otlp/v1/traces`,
    headers: tacho.headers,
    stored: () => countIn(STORE_FILE, 'events', tacho.directory),
  },
  MLflow: await startMlflow(),
  Phoenix: await startPhoenix(),
}
const sides = Object.entries(services).map(([name, service]) => [name, () => sendTo(service)] as const)
const setting = { plan: { rounds: ROUNDS }, say: console.log }
const found = await inTurn(setting, Object.fromEntries(sides), { warmUp: true })
for (const [name, { stored, lost }] of Object.entries(found)) {
  const sum = lost.reduce((all, each) => all + each, 0)
  console.log(`${name}: ${spread(spreadOf(stored), whole)} spans/s stored, ${sum} acknowledged but not stored`)
}

/** Sends for one round. Returns acknowledged and stored spans per second, lost spans, and refused requests. */
async function sendTo({ traces, headers, stored }: Service) {
  const before = stored()
  let [accepted, refused] = [0, 0]
  const { body, renew } = createTraceRequest()
  const lane = (): Send => {
    const own = Buffer.from(body)
    const sent = { method: 'POST', headers: { ...headers, 'content-type': 'application/x-protobuf' }, body: own }
    return async () => {
      renew(own)
      const reply = await fetch(traces, sent)
      await reply.arrayBuffer()
      if (reply.ok) accepted += BATCH_EVENTS
      else refused++
    }
  }
  const begun = performance.now()
  await paceRequests(Array.from({ length: CONNECTIONS }, lane), { seconds: SECONDS })
  const seconds = (performance.now() - begun) / 1_000
  for (let waited = 0; stored() - before < accepted && waited < SETTLE_MS; waited += 500) await sleep(500)
  const kept = Math.min(stored() - before, accepted)
  return { acknowledged: accepted / seconds, stored: kept / seconds, lost: accepted - kept, refused }
}

async function startMlflow(): Promise<Service> {
  const port = String(await freePort())
  const address = ['--host', '127.0.0.1', '--port', port, '--workers', '2']
  const store = ['--backend-store-uri', `sqlite:///${path.join(place, 'mlflow.db')}`]
  const traces = `http://127.0.0.1:${port}/v1/traces`
  await start(
    'mlflow',
    ['server', ...address, ...store],
    { MLFLOW_DISABLE_TELEMETRY: 'true' },
    new URL('/health', traces),
  )
  return { traces, headers: { 'x-mlflow-experiment-id': '0' }, stored: () => countIn('mlflow.db', 'spans') }
}

async function startPhoenix(): Promise<Service> {
  const port = String(await freePort())
  const variables = {
    PHOENIX_WORKING_DIR: place,
    PHOENIX_HOST: '127.0.0.1',
    PHOENIX_PORT: port,
    PHOENIX_GRPC_PORT: String(await freePort()),
    PHOENIX_TELEMETRY_ENABLED: 'false',
  }
  const traces = `http://127.0.0.1:${port}/v1/traces`
  await start('phoenix', ['serve'], variables, new URL('/healthz', traces))
  return { traces, headers: {}, stored: () => countIn('phoenix.db', 'spans') }
}

/** Starts a program and waits until it is ready. */
async function start(name: string, args: string[], variables: object, ready: URL): Promise<void> {
  const logFile = path.join(place, `${name}.log`)
  const log = openSync(logFile, 'a')
  const env = { ...process.env, ...variables }
  const child = spawn(program(name), args, { stdio: ['ignore', log, log], env, detached: true, cwd: place })
  const exited = once(child, 'exit')
  programs.defer(async () => {
    if (child.exitCode === null) process.kill(-(child.pid ?? Number.NaN), 'SIGKILL')
    await exited
  })
  const isReady = () =>
    fetch(ready).then(
      ({ ok }) => ok,
      () => false,
    )
  for (const end = Date.now() + READY_MS; !(await isReady()); await sleep(500)) {
    if (Date.now() < end && child.exitCode === null) continue
    throw new Error(`${name} did not start: ${readFileSync(logFile, 'utf8').slice(-1_000)}`)
  }
}

function countIn(file: string, table: string, directory = place): number {
  using store = new DatabaseSync(path.join(directory, file), { readOnly: true, timeout: 10_000 })
  return Number(store.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n'])
}
