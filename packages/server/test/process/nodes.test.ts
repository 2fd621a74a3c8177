/** Two nodes as separate processes, on one database that syncs its disk. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test, type TestContext } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { newApiKey, newOperatorToken } from '../../src/domain/people/credential.ts'
import { eventually } from '../setup/eventually.ts'
import { databasesOf, startPostgres, type PostgresServer, type TestDatabases } from '../setup/postgres-server.ts'
import { startProcess, temporaryDirectory, type ServerProcess } from '../setup/process.ts'

/** Advisory lock that a node holds while it migrates. */
const MIGRATION_LOCK = 0x54_41_43_48

const apiKey = newApiKey(randomBytes).text
const operatorToken = newOperatorToken(randomBytes).text

let server: PostgresServer
let databases: TestDatabases
before(async () => {
  server = await startPostgres({ durable: true })
  databases = databasesOf(server.url())
})
after(() => server.close())

interface Node {
  url: string
  process: ServerProcess
}

interface Nodes {
  databaseUrl: string
  start(): Promise<Node>
}

async function newDatabase(t: TestContext): Promise<Nodes> {
  const { url, drop } = await databases.create()
  const directory = temporaryDirectory(t)
  t.after(drop)
  const variables = {
    TACHO_DATABASE_URL: url,
    TACHO_DATABASE_POOL: '4',
    TACHO_INIT_API_KEY: apiKey,
    TACHO_INIT_OPERATOR_TOKEN: operatorToken,
  }
  return {
    databaseUrl: url,
    async start() {
      const process = startProcess(t, directory, variables)
      return { url: await process.ready(), process }
    },
  }
}

async function call<Body>(url: string, headers: Record<string, string>, body?: unknown): Promise<[number, Body]> {
  const reply = await fetch(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(30_000),
  })
  return [reply.status, (await reply.json()) as Body]
}

const api = <Body>({ url }: Node, path: string, body?: unknown, key = apiKey) =>
  call<Body>(`${url}/openapi/v1${path}`, { 'x-api-key': key, 'x-service-client-id': 'client' }, body)
const operator = <Body>({ url }: Node, path: string, body?: unknown) =>
  call<Body>(`${url}/operator/v1${path}`, { authorization: `Bearer ${operatorToken}` }, body)

async function environmentOf(node: Node): Promise<string> {
  type Page = { items: { id: string }[] }
  const [, { items: workspaces }] = await operator<Page>(node, '/workspaces')
  const [, { items }] = await operator<Page>(node, `/workspaces/${workspaces[0]?.id}/environments`)
  return items[0]?.id ?? ''
}

interface Verdicts {
  accepted: number
  retryableEventIds: string[]
}

const RUNS = 5
const TOKENS = 7

/** A client that repeats each batch, on alternating nodes, until all of it is accepted. It sends some events twice. */
async function client(name: string, nodes: () => Node[], isOver: () => boolean, acknowledge: (ids: string[]) => void) {
  let sent: Record<string, unknown>[] = []
  for (let batch = 0; !isOver(); batch++) {
    const fresh = Array.from({ length: 10 }, (_, n) => ({
      eventId: `${name} ${batch} ${n}`,
      clientId: name,
      runId: `run ${n % RUNS}`,
      agentId: 'agent',
      agentName: 'agent',
      eventType: 'LLM_CALL',
      label: 'model',
      timestamp: Date.now() - n * 1000,
      payload: { model: 'm', usage: { totalTokens: TOKENS } },
    }))
    // Some events of the previous batch again, and everything in another order.
    const events = [...fresh, ...sent.slice(0, 4)].toReversed()
    for (let tries = 0; ; tries++) {
      const all = nodes()
      const node = all[(batch + tries) % all.length]
      const answer = node ? await api<Verdicts>(node, '/events/batch', events).catch(() => null) : null
      if (answer?.[0] === 200 && answer[1].retryableEventIds.length === 0) {
        assert.equal(answer[1].accepted, events.length)
        acknowledge(fresh.map(({ eventId }) => eventId))
        break
      }
      await wait(20)
    }
    sent = fresh
  }
}

/** Every acknowledged event is stored once, and the sums match the events. */
async function verify(databaseUrl: string, node: Node, acknowledged: string[]): Promise<void> {
  const database = new pg.Client(databaseUrl)
  await database.connect()
  const { rows: stored } = await database.query<{ id: string }>('SELECT event_id AS id FROM tacho.events')
  const { rows: hours } = await database.query<{ events: string; tokens: string }>(
    'SELECT sum(events) AS events, sum(total_tokens) AS tokens FROM tacho.usage_hours',
  )
  await database.end()
  const ids = new Set(stored.map(({ id }) => id))
  assert.equal(ids.size, stored.length, 'none twice')
  assert.deepEqual(
    acknowledged.filter((id) => !ids.has(id)),
    [],
    'none lost',
  )
  assert.deepEqual([Number(hours[0]?.events), Number(hours[0]?.tokens)], [ids.size, ids.size * TOKENS])
  const [, runs] = await api<{ items: { usage: { totalTokens: number } }[] }>(node, '/runs')
  assert.equal(runs.items.length, RUNS)
  assert.equal(
    runs.items.reduce((sum, { usage }) => sum + usage.totalTokens, 0),
    ids.size * TOKENS,
  )
}

/** Runs four clients until `trouble` is over and more events are acknowledged after it. */
async function inLoad(nodes: () => Node[], trouble: (acknowledged: string[]) => Promise<void>): Promise<string[]> {
  const acknowledged: string[] = []
  let isOver = false
  const clients = ['a', 'b', 'c', 'd'].map((name) =>
    client(
      name,
      nodes,
      () => isOver,
      (some) => acknowledged.push(...some),
    ),
  )
  const more = async (count: number) => {
    const wanted = acknowledged.length + count
    await eventually(() => acknowledged.length >= wanted, `${count} more acknowledgements`)
  }
  await more(200)
  await trouble(acknowledged)
  await more(200)
  isOver = true
  await Promise.all(clients)
  return acknowledged
}

test('kill -9 of a node under load loses nothing and counts nothing twice, and another node replaces it', async (t) => {
  const nodes = await newDatabase(t)
  const living = [await nodes.start(), await nodes.start()]
  const acknowledged = await inLoad(
    () => living,
    async () => {
      living[1]?.process.signal('SIGKILL')
      await living[1]?.process.ended()
      living.pop()
      living.push(await nodes.start())
    },
  )
  await verify(nodes.databaseUrl, living[1] ?? assert.fail(), acknowledged)
})

test('kill -9 of the database under load loses nothing and counts nothing twice; the nodes survive and recover', async (t) => {
  const nodes = await newDatabase(t)
  const living = [await nodes.start(), await nodes.start()]
  const acknowledged = await inLoad(
    () => living,
    async () => {
      await server.stop('kill')
      const isReady = async ({ url }: Node) => (await fetch(`${url}/readyz`)).status === 200
      for (const node of living) await eventually(async () => !(await isReady(node)), 'a node that is not ready')
      for (const node of living) assert.equal((await fetch(`${node.url}/healthz`)).status, 200)
      await server.start()
      for (const node of living) await eventually(() => isReady(node), 'a ready node')
    },
  )
  await verify(nodes.databaseUrl, living[0] ?? assert.fail(), acknowledged)
})

test('a node follows the other: revoked keys, decisions, and records that a killed node had taken', async (t) => {
  const nodes = await newDatabase(t)
  const [one, two] = [await nodes.start(), await nodes.start()]
  const environment = await environmentOf(one)

  const made = await operator<{ id: string; key: string }>(one, `/environments/${environment}/keys`, {
    name: 'k',
    scopes: ['usage:read'],
  })
  assert.equal(made[0], 201)
  const { id, key } = made[1]
  for (const node of [one, two]) assert.equal((await api(node, '/runs', undefined, key))[0], 200)
  await operator(one, `/environments/${environment}/keys/${id}/revoke`, {})
  const isRevoked = async () => (await api(two, '/runs', undefined, key))[0] === 401
  await eventually(isRevoked, 'the revocation on the other node', 5_000)

  const [, { id: approvalId }] = await api<{ id: string }>(two, '/firewall-approvals', {
    clientRequestId: 'c',
    toolName: 'pay',
    inputHash: 'ab'.repeat(32),
  })
  const waiting = api<{ status: string }>(two, `/firewall-approvals/${approvalId}?wait=30`)
  const [decided] = await operator(one, `/environments/${environment}/approvals/${approvalId}/decision`, {
    decision: 'APPROVED',
  })
  assert.equal(decided, 200)
  const decidedAt = performance.now()
  assert.equal((await waiting)[1].status, 'APPROVED')
  // The service promises one second; a machine that is busy with other tests gets more. The poll itself ends after 30.
  assert.ok(performance.now() - decidedAt < 20_000)

  // When the lease of a dead node's work ends, a live node takes the work.
  two.process.signal('SIGSTOP')
  const database = new pg.Client(nodes.databaseUrl)
  await database.connect()
  const [status, { recordId }] = await api<{ recordId: string }>(one, '/issue-records', {
    sdkInstanceId: 's',
    clientRecordId: 'r',
    recordKind: 'DETECTION',
    detectionType: 'TOOL_BLOCKED',
    agentId: 'a',
    detectedAt: Date.now(),
  })
  assert.equal(status, 202)
  const record = `/environments/${environment}/issue-records/${recordId}`
  const isDecided = async (node: Node) => (await operator<{ status: string }>(node, record))[1].status === 'DECIDED'
  await eventually(() => isDecided(one), 'a decided record')
  await database.query(
    `UPDATE tacho.issue_records SET status = 'EVALUATING', fingerprint = NULL WHERE environment_id = $1 AND id = $2`,
    [environment, recordId],
  )
  await database.query(
    `INSERT INTO tacho.work (kind, subject_id, environment_id, due_at, attempts, lease_owner)
      VALUES ('review_issue_record', $2, $1, $3, 1, 'a node that was killed')
      ON CONFLICT (environment_id, kind, subject_id) DO UPDATE SET due_at = excluded.due_at, lease_owner = excluded.lease_owner`,
    [environment, recordId, Date.now() + 2_000],
  )
  await database.end()
  one.process.signal('SIGKILL')
  two.process.signal('SIGCONT')
  await eventually(() => isDecided(two), 'a decision by the other node')
})

test('a signal ends a process that waits for its database for ever, after the drain timeout', async (t) => {
  const { url: databaseUrl, drop } = await databases.createEmpty()
  t.after(drop)
  const other = new pg.Client(databaseUrl)
  await other.connect()
  // Hold the lock, as another node that hangs during a migration would.
  await other.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK])
  const directory = temporaryDirectory(t)
  const waiting = startProcess(t, directory, { TACHO_DATABASE_URL: databaseUrl, TACHO_DRAIN_TIMEOUT: '100ms' })
  const sessions = 'SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()'
  await eventually(async () => (await other.query(sessions)).rowCount === 1, 'a process that waits')
  waiting.signal('SIGTERM')
  assert.equal(await waiting.ended(), 1)
  assert.match(waiting.stderr(), /did not stop in time/)
  await other.end()
})
