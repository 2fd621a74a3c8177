/** Databases of versions before migration 010. */
import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import pg from 'pg'
import { distribute } from '../../../src/storage/postgres/citus.ts'
import { SCHEMA } from '../../../src/storage/postgres/connections.ts'
import { knownMigrations, migrate, type MigrateWatch } from '../../../src/storage/postgres/migrate.ts'
import { untilUnused } from '../../../src/storage/postgres/move-events.ts'
import { openPostgresStorage } from '../../../src/storage/postgres/open.ts'
import type { MovedRows } from '../../../src/storage/sql/migrations.ts'
import { StoreRefused, type Storage } from '../../../src/storage/storage.ts'
import { testDatabases, type TestDatabases } from '../../setup/postgres-server.ts'
import { oldRows, readSample, recordSample, type OldRow, type OldRows } from '../suite/old-store.ts'
import * as latencies from '../suite/old-latencies.ts'
import { append, batch, event } from '../suite/sample.ts'

const BEFORE = 9
const CITUS = "SELECT 1 FROM pg_extension WHERE extname = 'citus'"

let databases: TestDatabases
before(async () => {
  databases = await testDatabases()
})
after(() => databases.close())

/** Without tables. */
async function database(t: TestContext): Promise<string> {
  const { url, drop } = await databases.createEmpty()
  t.after(drop)
  return url
}

async function connected<Result>(url: string, work: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client(url)
  client.on('error', () => undefined)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

async function serving<Result>(url: string, work: (storage: Storage) => Promise<Result>): Promise<Result> {
  const storage = await openPostgresStorage({ url })
  try {
    return await work(storage)
  } finally {
    await storage.close()
  }
}

/** On Citus, also distributes the store. */
async function migrateUpTo(client: pg.Client, version: number): Promise<void> {
  await migrate(client, { migrations: knownMigrations().slice(0, version) })
  if ((await client.query(CITUS)).rows.length > 0) await distribute(client)
}

/** A database of migration 009, and what clients read of it. */
async function oldStore(t: TestContext) {
  const { recorded, expected, rows } = await serving(await database(t), async (storage) => {
    const recorded = await recordSample(storage)
    return { recorded, expected: await readSample(storage, recorded), rows: await oldRows(storage, recorded) }
  })
  const url = await database(t)
  await connected(url, async (client) => {
    await migrateUpTo(client, BEFORE)
    await fill(client, rows)
  })
  // The hours and their models are in tables that stay as they are.
  return { url, recorded, expected: withoutUsage(expected) }
}

async function fill(client: pg.Client, { agents, runs, events }: OldRows): Promise<void> {
  const lastSeq = (id: unknown) =>
    Math.max(...events.filter((one) => one['run_id'] === id).map((one) => Number(one['seq'])))
  const numbered = runs.map((run): OldRow => ({ ...run, last_seq: lastSeq(run['id']) }))
  for (const [table, rows] of Object.entries({ agents, runs: numbered, events })) {
    for (const row of rows) {
      const names = Object.keys(row)
      const places = names.map((_, index) => `$${index + 1}`)
      await client.query(
        `INSERT INTO ${SCHEMA}.${table} (${names.join(', ')}) VALUES (${places.join(', ')})`,
        Object.values(row),
      )
    }
  }
}

const withoutUsage = <Read extends { usage: unknown }>(read: Read[]) => read.map(({ usage: _, ...rest }) => rest)

async function count(url: string, table: string): Promise<number> {
  return connected(url, async (client) =>
    Number((await client.query<{ count: string }>(`SELECT count(*) FROM ${SCHEMA}.${table}`)).rows[0]?.count),
  )
}

test('latencies of tool calls move to the hours of tools once, and nothing else changes', async (t) => {
  const found = await connected(await database(t), async (client) => {
    await migrateUpTo(client, latencies.BEFORE)
    for (const text of latencies.FILL) await client.query(text)
    await migrate(client)
    const rows: object[][] = []
    for (const text of latencies.READ) rows.push((await client.query<Record<string, unknown>>(text)).rows)
    return rows.map((some) => some.map((row) => Object.fromEntries(Object.entries(row).map(numbered))))
  })
  assert.deepEqual(found, latencies.FOUND)
})

/** int8 comes as a text. */
const numbered = ([name, value]: [string, unknown]) =>
  [name, typeof value === 'string' && /^-?\d+$/.test(value) ? Number(value) : value] as const

test('a database of the old tables is read like a new one, and goes on', async (t) => {
  const { url, recorded, expected } = await oldStore(t)
  const steps: MovedRows[] = []
  const onMoved: MigrateWatch['onMoved'] = (moved) => steps.push(moved)
  await connected(url, (client) => migrate(client, { onMoved, rowsPerTransaction: 20 }))
  const { rows = 0, total = 0 } = steps.at(-1) ?? {}
  assert.ok(rows === total && rows > 100 && steps.length > 4)

  await serving(url, async (storage) => {
    assert.deepEqual(withoutUsage(await readSample(storage, recorded)), expected)
    const [environment = ''] = recorded.environments
    const sent = recorded.events.get(environment) ?? []
    const before = await count(url, 'envelopes')
    for (let from = 0; from < sent.length; from += 50) {
      const verdicts = await storage.appendEvents(batch(environment, sent.slice(from, from + 50)))
      assert.deepEqual(new Set(verdicts), new Set(['duplicate']))
    }
    const { rows: runs } = await storage.listRuns(environment, {}, { limit: 1_000, after: null })
    assert.ok(
      runs.every(({ errorCount, traits }) => errorCount === null && traits === null),
      'nobody counted them',
    )
    assert.ok(runs.every(({ differingRetries }) => differingRetries === 0))
    assert.deepEqual(await append(storage, environment, event({ runId: 'a', clientId: 'client 0' })), ['stored'])
    assert.deepEqual(await append(storage, environment, event({ runId: 'new', clientId: 'client 0' })), ['stored'])
    assert.deepEqual(await append(storage, environment, event({ runId: 'new', clientId: 'other' })), ['stored'])
    assert.equal(await count(url, 'envelopes'), before + 1, 'an envelope that was moved is used again')
  })
})

test('a migration whose process dies again and again goes on where it was', async (t) => {
  const { url, recorded, expected } = await oldStore(t)
  const total = await count(url, 'events')
  const moved: number[] = []
  for (const steps of [1, 2, 3]) {
    let made = 0
    const dying = connected(url, (client) =>
      migrate(client, {
        rowsPerTransaction: 11,
        onMoved: () => {
          // As kill -9 of the process: its connection is gone in the middle of the next transaction.
          if (++made === steps)
            (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy()
        },
      }),
    )
    await assert.rejects(dying)
    moved.push(await count(url, 'events'))
  }
  assert.ok(
    moved.every((rows, index) => rows > (moved[index - 1] ?? 0) && rows < total),
    String(moved),
  )
  await serving(url, async (storage) => {
    assert.deepEqual(withoutUsage(await readSample(storage, recorded)), expected)
  })
})

test('the events are not moved while older processes serve', async (t) => {
  const url = await database(t)
  await connected(url, (client) => migrate(client))
  await connected(url, async (client) => {
    await client.query(`SET search_path = ${SCHEMA}`)
    await untilUnused(client, 0)
    const alive = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'
    await client.query(`INSERT INTO nodes (slot, node_id, started_at, heartbeat_at) VALUES (1, 'old', 0, ${alive})`)
    await assert.rejects(
      untilUnused(client, 0),
      (error) => error instanceof StoreRefused && /1 older processes of Tacho still serve/.test(error.message),
    )
  })
})
