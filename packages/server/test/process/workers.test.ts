import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { eventually } from '../setup/eventually.ts'
import { heldRequest } from '../setup/held-request.ts'
import { testDatabases, type TestDatabases } from '../setup/postgres-server.ts'
import { startProcess, temporaryDirectory, type ServerProcess } from '../setup/process.ts'
import { event } from '../setup/service.ts'

let databases: TestDatabases
before(async () => {
  databases = await testDatabases()
})
after(() => databases.close())

async function start(
  t: TestContext,
  variables: Record<string, string> = {},
  database = databases.create(),
): Promise<ServerProcess> {
  const { url, drop } = await database
  t.after(drop)
  const own = { TACHO_DATABASE_URL: url, TACHO_WORKERS: '2', TACHO_DATABASE_POOL: '3', ...variables }
  return startProcess(t, temporaryDirectory(t), own)
}

/** The first key. The parent gets it from a worker and prints it. */
async function keyOf(server: ServerProcess): Promise<string> {
  return eventually(() => /API key +(tacho_\w+)\n/.exec(server.stdout())?.[1], 'the first key')
}

interface Line {
  msg: string
  worker?: number
  pid?: number
}

const lines = (server: ServerProcess): Line[] =>
  server
    .stderr()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Line)

/** The process ids of the ready workers, in the order in which they became ready. */
async function workers(server: ServerProcess, count: number): Promise<number[]> {
  const ready = () => lines(server).filter(({ msg, worker }) => msg === 'ready' && worker !== undefined)
  await eventually(() => ready().length >= count, `${count} ready workers`)
  return ready().map(({ pid = 0 }) => pid)
}

async function record(url: string, key: string, events: unknown[]): Promise<{ accepted: number }> {
  const reply = await fetch(`${url}/openapi/v1/events/batch`, {
    method: 'POST',
    // Open a connection for each request, so that the workers take turns.
    headers: { 'x-api-key': key, 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify(events),
  })
  return (await reply.json()) as { accepted: number }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

async function metric(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`, { headers: { connection: 'close' } })).text()
  const line = text.split('\n').find((one) => one.startsWith(`${name} `))
  return Number(line?.split(' ')[1])
}

test('workers share one port and one store, and print the address and the first key once', async (t) => {
  const server = await start(t, {}, databases.createEmpty())
  const url = await server.ready()
  await workers(server, 2)
  const key = await keyOf(server)
  const ids = Array.from({ length: 20 }, (_, n) => `e${n}`)
  for (const eventId of ids) await record(url, key, [event({ eventId })])
  const { accepted } = await record(url, key, [event({ eventId: 'e0' })])
  assert.equal(accepted, 1)
  const run = await fetch(`${url}/openapi/v1/runs/run`, { headers: { 'x-api-key': key } })
  assert.equal(((await run.json()) as { events: unknown[] }).events.length, 20)
  for (const once of [/listens on/g, /API key {2}/g, /curl -sS/g]) {
    assert.equal(server.stdout().match(once)?.length, 1, String(once))
  }
  server.signal('SIGTERM')
  assert.equal(await server.ended(), 0)
})

test('a scrape answers for all workers, and its counts do not fall when a worker dies', async (t) => {
  const server = await start(t)
  const url = await server.ready()
  const [, second = 0] = await workers(server, 2)
  const key = await keyOf(server)
  const counter = 'tacho_events_total{verdict="accepted"}'
  for (let n = 0; n < 10; n++) await record(url, key, [event()])
  // An event is answered before it is counted.
  await eventually(async () => (await metric(url, counter)) >= 10, '10 counted events')
  assert.equal(await metric(url, counter), 10)
  await eventually(async () => (await metric(url, 'tacho_nodes')) === 2, '2 nodes')
  process.kill(second, 'SIGKILL')
  await workers(server, 3)
  assert.equal(await metric(url, counter), 10)
  await record(url, key, [event()])
  await eventually(async () => (await metric(url, counter)) >= 11, '11 counted events')
})

test('a killed worker is replaced, the others keep serving, and no acknowledged event is lost', async (t) => {
  const server = await start(t)
  const url = await server.ready()
  const [first = 0] = await workers(server, 2)
  const key = await keyOf(server)
  const acknowledged: string[] = []
  let going = true
  const clients = Array.from({ length: 4 }, async (_, name) => {
    while (going) {
      const events = Array.from({ length: 5 }, () => event({ runId: `run ${name}` }))
      const answer = await record(url, key, events).catch(() => null)
      if (answer?.accepted === 5) acknowledged.push(...events.map(({ eventId }) => String(eventId)))
    }
  })
  await eventually(() => acknowledged.length >= 100, '100 acknowledgements')
  process.kill(first, 'SIGKILL')
  const [, , third = 0] = await workers(server, 3)
  const soFar = acknowledged.length
  await eventually(() => acknowledged.length >= soFar + 100, '100 more acknowledgements')
  going = false
  await Promise.all(clients)
  assert.ok(isAlive(third))
  const stored = new Set<string>()
  for (let name = 0; name < 4; name++) {
    let after = ''
    do {
      const page = await fetch(`${url}/openapi/v1/runs/run%20${name}/events?limit=200${after}`, {
        headers: { 'x-api-key': key },
      })
      const { items, nextCursor } = (await page.json()) as { items: { eventId: string }[]; nextCursor: string | null }
      for (const { eventId } of items) stored.add(eventId)
      after = nextCursor === null ? '' : `&cursor=${nextCursor}`
    } while (after !== '')
  }
  assert.deepEqual(
    acknowledged.filter((id) => !stored.has(id)),
    [],
  )
})

test('a signal drains every worker; a second one ends them at once', async (t) => {
  const server = await start(t, { TACHO_DRAIN_TIMEOUT: '10m' })
  const url = await server.ready()
  const [pids, key] = [await workers(server, 2), await keyOf(server)]
  // An unfinished request keeps its worker from ending.
  const { socket } = await heldRequest(url, key)
  socket.on('error', () => undefined)
  server.signal('SIGTERM')
  await eventually(() => lines(server).filter(({ msg }) => msg === 'draining').length >= 3, 'all processes draining')
  // A process says that it drains just before it stops listening.
  const refusesConnections = () =>
    fetch(`${url}/readyz`).then(
      () => false,
      () => true,
    )
  await eventually(refusesConnections, 'no new connections')
  await wait(1_100)
  server.signal('SIGTERM')
  assert.equal(await server.ended(), 143)
  await eventually(() => !pids.some(isAlive), 'the end of all workers')
})

test('workers end when their parent is killed', async (t) => {
  const server = await start(t)
  await server.ready()
  const pids = await workers(server, 2)
  server.signal('SIGKILL')
  await server.ended()
  await eventually(() => !pids.some(isAlive), 'the end of all workers')
})

test('an error that stops the first worker from starting is printed once and ends the service', async (t) => {
  const variables = { TACHO_DATABASE_URL: 'mysql://host/db', TACHO_WORKERS: '3' }
  const server = startProcess(t, temporaryDirectory(t), variables)
  assert.equal(await server.ended(), 1)
  assert.equal(server.stderr().match(/tacho: The database URL/g)?.length, 1)
})

test('workers that die repeatedly soon after their start end the service with a clear sentence', async (t) => {
  const server = await start(t)
  await server.ready()
  // Wait for this line: before it, the service ends if its first worker ends.
  await eventually(() => lines(server).some(({ msg }) => msg === 'starting workers'), 'the start of more workers')
  const end = server.ended()
  let hasEnded = false
  void end.then(() => (hasEnded = true))
  for (const killed = new Set<number>(); !hasEnded; await wait(20)) {
    const newest = lines(server).findLast(({ msg, worker }) => msg === 'ready' && worker !== undefined)?.pid ?? 0
    if (killed.has(newest) || newest === 0) continue
    killed.add(newest)
    if (isAlive(newest)) process.kill(newest, 'SIGKILL')
  }
  assert.equal(await end, 1)
  assert.match(
    server.stderr(),
    /tacho: 5 workers in a row ended within 8 s of their start; the last ended with SIGKILL/,
  )
})
