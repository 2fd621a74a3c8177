/** What nodes do when the database does not do its part. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { after, before } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { openPostgresStorage, type PostgresOptions } from '../../../src/storage/postgres/open.ts'
import { StorageError, StoreRefused, type Storage } from '../../../src/storage/storage.ts'
import { describe, test } from '../../setup/citus-skips.ts'
import { testDatabases, type TestDatabase, type TestDatabases } from '../../setup/postgres-server.ts'
import { append, batch, event, llmCall, newId, NOON, runOf } from '../suite/sample.ts'

let databases: TestDatabases
let database: TestDatabase
let outsider: pg.Client
before(async () => {
  databases = await testDatabases()
  database = await databases.create()
  outsider = new pg.Client(database.url)
  await outsider.connect()
})
after(async () => {
  await outsider.end()
  await database.drop()
  await databases.close()
})

const refusal = (code: StorageError['code']) => (error: unknown) => error instanceof StorageError && error.code === code

async function withStorage(options: Partial<PostgresOptions>, work: (storage: Storage) => Promise<void>) {
  const storage = await openPostgresStorage({ url: database.url, ...options })
  try {
    await work(storage)
  } finally {
    await storage.close()
  }
}

/** Nobody can read or write the table meanwhile. */
async function whileLocked(table: string, work: () => Promise<void>) {
  await outsider.query(`BEGIN; LOCK TABLE tacho.${table} IN ACCESS EXCLUSIVE MODE`)
  try {
    await work()
  } finally {
    await outsider.query('ROLLBACK')
  }
}

/** Every insert into the table fails meanwhile, or of those rows that `of` describes. */
async function whileFailing(table: string, condition: string, work: () => Promise<void>, of = 'true') {
  await outsider.query(`CREATE FUNCTION tacho.fail() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'on purpose' USING ERRCODE = '${condition}'; END $$`)
  await outsider.query(`CREATE TRIGGER fail BEFORE INSERT ON tacho.${table}
    ${of === 'true' ? '' : `FOR EACH ROW WHEN (${of})`} EXECUTE FUNCTION tacho.fail()`)
  try {
    await work()
  } finally {
    await outsider.query('DROP FUNCTION tacho.fail CASCADE')
  }
}

/** Forwards to the database, until a connection sends the text: of what comes then it forwards a little, and falls silent. */
async function proxyFallingSilentAt(text: string) {
  const target = new URL(database.url)
  const sockets: Socket[] = []
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname)
    for (const socket of [client, upstream]) sockets.push(socket.on('error', () => undefined))
    upstream.pipe(client)
    let isSilent = false
    client.on('data', (chunk: Buffer) => {
      const at = isSilent ? -1 : chunk.indexOf(text)
      if (!isSilent) upstream.write(at < 0 ? chunk : chunk.subarray(0, at + text.length + 200))
      isSilent ||= at >= 0
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = new URL(database.url)
  url.port = String((server.address() as AddressInfo).port)
  return {
    url: url.href,
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

describe('a node that falls silent in the middle of its rows', () => {
  test('holds up others for as long as a silent transaction may', async () => {
    const proxy = await proxyFallingSilentAt('COPY events')
    const timeouts = { statementMs: 2_000, lockMs: 500, idleInTransactionMs: 1_000 }
    const env = newId()
    const inSameRun = () => event({ runId: 'silent', payload: JSON.stringify('x'.repeat(10_000)) })
    try {
      await withStorage({ timeouts }, async (storage) => {
        await append(storage, env, inSameRun())
        const other = await openPostgresStorage({ url: proxy.url, timeouts })
        const failing = assert.rejects(append(other, env, inSameRun()), refusal('storage_unavailable'))
        await sleep(300)
        await assert.rejects(append(storage, env, inSameRun()), refusal('storage_unavailable'))
        assert.deepEqual(await retried(() => append(storage, env, inSameRun())), ['stored'])
        proxy.close()
        await failing
        await other.close()
      })
    } finally {
      proxy.close()
    }
  })
})

describe('a database in trouble', () => {
  for (const timeouts of [{ statementMs: 200 }, { lockMs: 200 }]) {
    test(`that takes longer than ${Object.keys(timeouts).join()} fails the act, not the node`, async () => {
      await withStorage({ timeouts }, async (storage) => {
        const env = newId()
        const sent = event()
        await whileLocked('events', async () => {
          await assert.rejects(append(storage, env, sent), refusal('storage_unavailable'))
        })
        await whileLocked('runs', async () => {
          await assert.rejects(storage.findRun(env, 'run'), refusal('storage_unavailable'))
        })
        assert.equal(await storage.findRun(env, 'run'), null)
        assert.deepEqual(await append(storage, env, sent), ['stored'])
      })
    })
  }

  test('that ends connections, used and unused, is connected to again', async () => {
    await withStorage({ poolSize: 4 }, async (storage) => {
      const env = newId()
      await Promise.all(Array.from({ length: 8 }, () => storage.findRun(env, 'run')))
      await endConnections()
      for (let tries = 0; tries < 6; tries++) await storage.findRun(env, 'run').catch(() => undefined)
      assert.equal(await storage.findRun(env, 'run'), null)
      const writing = Promise.allSettled(
        Array.from({ length: 200 }, (_, n) => append(storage, env, event({ runId: `run ${n % 5}` }))),
      )
      await endConnections()
      const answers = await writing
      const failed = answers.filter(({ status }) => status === 'rejected')
      assert.ok(failed.every((answer) => answer.status === 'rejected' && answer.reason instanceof StorageError))
      assert.deepEqual(await retried(() => append(storage, env, event())), ['stored'])
      await retried(() => storage.ping())
      assert.equal(storage.writesRefused(), null)
    })
  })

  test('is not blamed for a bug: its error stays what it is, and the node goes on', async () => {
    await withStorage({}, async (storage) => {
      // A value that the driver cannot send makes it throw a plain Error, as a broken invariant of ours does.
      const name = { toPostgres: () => name } as unknown as string
      const creating = storage.createWorkspace({ id: newId(), name, createdAt: NOON }, [])
      await assert.rejects(creating, (error: unknown) => !(error instanceof StorageError) && error instanceof Error)
      await whileFailing('webhooks', 'internal_error', async () => {
        const [workspaceId, environmentId] = [newId(), newId()]
        await storage.createWorkspace({ id: workspaceId, name: workspaceId, createdAt: NOON }, [])
        await storage.createEnvironment({ id: environmentId, workspaceId, name: 'one', createdAt: NOON }, [])
        const nothing = { previousSecret: null, previousUntil: null, disabledAt: null, disabledReason: null }
        const said = {
          url: 'https://example.com',
          description: '',
          format: 'standard' as const,
          events: [],
          secret: '',
        }
        const webhook = { id: newId(), environmentId, ...said, ...nothing, createdAt: NOON, droppedDeliveries: 0 }
        await assert.rejects(storage.createWebhook(webhook, []), (error: unknown) => !(error instanceof StorageError))
      })
      assert.equal(storage.writesRefused(), null)
      assert.deepEqual(await append(storage, newId(), event()), ['stored'])
    })
  })

  test('whose connection is cut in the middle of a statement cannot be reached', async () => {
    const proxy = await proxyFallingSilentAt('INSERT INTO workspaces')
    try {
      const storage = await openPostgresStorage({ url: proxy.url })
      const creating = storage.createWorkspace({ id: newId(), name: newId(), createdAt: NOON }, [])
      const failed = assert.rejects(creating, refusal('storage_unavailable'))
      await sleep(100)
      proxy.close()
      await failed
      await storage.close()
    } finally {
      proxy.close()
    }
  })

  for (const table of ['runs', 'events', 'models', 'usage_hours', 'rejections', 'agents']) {
    test(`that fails while ${table} are written stores nothing of the batch, and all of it when it comes again`, async () => {
      await withStorage({}, async (storage) => {
        const env = newId()
        const sent = batch(env, [llmCall({ model: newId() })], {
          rejections: [{ runId: 'run', eventId: 'refused', code: 'empty', rejectedAt: NOON }],
        })
        await whileFailing(table, 'io_error', async () => {
          await assert.rejects(storage.appendEvents(sent), refusal('storage_unavailable'))
        })
        assert.equal(await storage.findRun(env, 'run'), null)
        assert.equal(await storage.findRejection(env, 'run', 'refused'), null)
        assert.deepEqual(await storage.appendEvents(sent), ['stored'])
        assert.equal((await storage.readUsage(env, 0, 2 * NOON, { limit: 9, after: null })).rows[0]?.events, 1)
      })
    })
  }

  test('that fails for one run of a batch stores nothing of the other runs either', async () => {
    await withStorage({}, async (storage) => {
      const env = newId()
      const sent = Array.from({ length: 20 }, (_, n) => event({ runId: `run ${n}` }))
      const work = () => assert.rejects(append(storage, env, ...sent), refusal('storage_unavailable'))
      await whileFailing('runs', 'io_error', work, "NEW.run_id = 'run 7'")
      assert.deepEqual((await storage.listRuns(env, {}, { limit: 100, after: null })).rows, [])
      assert.deepEqual(new Set(await append(storage, env, ...sent)), new Set(['stored']))
    })
  })

  test('that takes no heartbeats is reported, and heartbeats go on afterwards', async () => {
    const warned = Promise.withResolvers<string>()
    await withStorage({ onWarning: (what) => warned.resolve(what) }, async (storage) => {
      await outsider.query('ALTER TABLE tacho.nodes RENAME TO no_nodes')
      try {
        assert.equal(await warned.promise, 'a heartbeat of this node failed')
      } finally {
        await outsider.query('ALTER TABLE tacho.no_nodes RENAME TO nodes')
      }
      assert.ok(storage.nodes() >= 1)
    })
  })

  test('whose disk is full makes writes be refused for a moment, as a full disk', async () => {
    await withStorage({}, async (storage) => {
      await whileFailing('events', 'disk_full', async () => {
        await assert.rejects(append(storage, newId(), event()), refusal('storage_full'))
      })
      assert.equal(storage.writesRefused(), 'storage_full')
      await storage.ping()
    })
  })

  test('that does not keep up fills the queue, which then refuses at once and holds what it has taken', async () => {
    await withStorage({ queueBytes: 20_000, poolSize: 2 }, async (storage) => {
      const env = newId()
      const sized = (bytes: number) => event({ payload: JSON.stringify({ text: 'x'.repeat(bytes) }) })
      const writing: Promise<unknown>[] = []
      await whileLocked('events', async () => {
        writing.push(append(storage, env, sized(9_000)), append(storage, env, sized(9_000)))
        await assert.rejects(append(storage, env, sized(9_000)), refusal('overloaded'))
        assert.ok(storage.gauges().queuedBytes > 18_000)
        assert.equal(storage.writesRefused(), null)
      })
      assert.deepEqual((await Promise.all(writing)).flat(), ['stored', 'stored'])
      assert.equal(storage.gauges().queuedBytes, 0)
      // One that is larger than the whole queue is taken when nothing else waits.
      await whileLocked('events', async () => {
        writing.push(append(storage, env, sized(100_000)))
        assert.equal(storage.writesRefused(), 'overloaded')
      })
      assert.deepEqual(await writing.at(-1), ['stored'])
      assert.equal(storage.writesRefused(), null)
    })
  })

  test('is never kept waiting for a turn of the event loop while rows are locked', async (t) => {
    await withStorage({}, async (storage) => {
      const env = newId()
      await append(storage, env, event())
      let isOpen = false
      let turns = 0
      const send = pg.Client.prototype.query as (this: pg.Client, ...args: unknown[]) => unknown
      t.mock.method(pg.Client.prototype, 'query', function (this: pg.Client, ...args: unknown[]) {
        if (args[0] === 'BEGIN') isOpen = true
        if (args[0] === 'COMMIT') isOpen = false
        return send.apply(this, args)
      })
      const later = globalThis.setImmediate
      t.mock.method(globalThis, 'setImmediate', ((...args: Parameters<typeof setImmediate>) => {
        if (isOpen) turns++
        return later(...args)
      }) as typeof setImmediate)
      const known = event()
      assert.deepEqual(await append(storage, env, known, event({ runId: 'new' })), ['stored', 'stored'])
      assert.deepEqual(await append(storage, env, known, event()), ['duplicate', 'stored'])
      assert.equal(turns, 0)
    })
  })

  test('closing waits for the writes under way', async () => {
    const env = newId()
    const storage = await openPostgresStorage({ url: database.url })
    const writing = Promise.all(
      Array.from({ length: 30 }, (_, n) => append(storage, env, event({ runId: `run ${n}` }))),
    )
    await storage.close()
    assert.deepEqual(new Set((await writing).flat()), new Set(['stored']))
  })
})

describe('what a node says of its database', () => {
  test('commits are durable whatever the database is set to', async () => {
    const name = new URL(database.url).pathname.slice(1)
    await outsider.query(`ALTER DATABASE ${name} SET synchronous_commit = off`)
    await withStorage({}, async (storage) => {
      const durability = (await storage.inspect()).find((check) => check.name === 'durability')
      assert.match(durability?.detail ?? '', /synchronous_commit on/)
    })
    await outsider.query(`ALTER DATABASE ${name} RESET synchronous_commit`)
  })

  test('its checks tell a setting that may lose data, and too little room for connections', async () => {
    await withStorage({ poolSize: 10_000 }, async (storage) => {
      const checks = Object.fromEntries((await storage.inspect()).map(({ name, ok, detail }) => [name, { ok, detail }]))
      const { rows } = await outsider.query("SELECT current_setting('fsync') = 'on' AS safe")
      assert.equal(checks['durability']?.ok, rows[0]?.safe)
      assert.deepEqual([checks['connections']?.ok, checks['clock']?.ok, checks['schema']?.ok], [false, true, true])
      assert.match(checks['database']?.detail ?? '', /^PostgreSQL \d+/)
    })
  })

  test('its gauges count commits and bytes; a backup is not its work', async () => {
    await withStorage({}, async (storage) => {
      await append(storage, newId(), event(), event())
      const { commits, committedEvents, storeBytes, diskFreeBytes } = storage.gauges()
      assert.deepEqual([commits, committedEvents, diskFreeBytes], [1, 2, null])
      assert.ok((storeBytes ?? 0) > 1_000_000)
      assert.deepEqual(await storage.backup('/nowhere'), { ok: false, reason: 'unsupported' })
    })
  })

  test('long texts that no index would take are stored and found', async () => {
    await withStorage({}, async (storage) => {
      const env = newId()
      const long = 'x'.repeat(200_000)
      const sent = event({ sessionId: long, agentId: long, agentName: long, schemaVersion: long })
      assert.deepEqual(await append(storage, env, sent, event({ runId: 'other', agentName: `${long}y` })), [
        'stored',
        'stored',
      ])
      assert.deepEqual(await append(storage, env, { ...sent, agentName: `${long}z` }), ['duplicate'])
      const run = await runOf(storage, env)
      assert.deepEqual([run.sessionId, run.agentName, run.differingRetries], [long, long, 1])
      assert.deepEqual((await storage.listRuns(env, { sessionId: long }, { limit: 2, after: null })).rows, [run])
      const [hour] = (await storage.readUsage(env, 0, 2 * NOON, { limit: 9, after: null })).rows
      assert.ok(hour)
    })
  })
})

describe('a node does not start, and says why in one sentence,', () => {
  const refused = (url: string, expected: RegExp) =>
    assert.rejects(openPostgresStorage({ url, waitMs: 300 }), (error: unknown) => {
      assert.ok(error instanceof StoreRefused, String(error))
      assert.match(error.message, expected)
      const password = URL.parse(url)?.password ?? ''
      assert.ok(password === '' || !error.message.includes(password))
      return true
    })
  const changed = (change: (url: URL) => void) => {
    const url = new URL(database.url)
    change(url)
    return url.href
  }

  test('without an address that it understands', async () => {
    await refused('localhost:5432/tacho', /must have the form postgres:/)
    await refused('mysql://localhost/tacho', /must have the form postgres:/)
    await refused(
      changed((url) => url.searchParams.set('sslmode', 'prefer')),
      /sslmode must be/,
    )
    await refused(
      changed((url) => url.searchParams.set('sslmode', 'verify-ca')),
      /sslrootcert/,
    )
    await refused(
      changed((url) => url.searchParams.set('sslmode', 'verify-full&sslrootcert=/nowhere')),
      /sslmode must be/,
    )
    await refused(`${database.url}?sslmode=verify-full&sslrootcert=/nowhere`, /cannot be read \(ENOENT\)/)
    await refused(`${database.url}?target_session_attrs=primary`, /parameter target_session_attrs/)
  })

  test('without a server, a database or the right password', async () => {
    await refused(
      changed((url) => (url.port = '1')),
      /cannot be used: .*ECONNREFUSED/,
    )
    await refused(
      changed((url) => (url.pathname = '/nothing_here')),
      /nothing_here" does not exist/,
    )
    if (new URL(database.url).password)
      await refused(
        changed((url) => (url.password = 'wrong-one')),
        /password/,
      )
  })

  test('on a database with another encoding', async () => {
    const name = `${new URL(database.url).pathname.slice(1)}_latin`
    await outsider.query(`CREATE DATABASE ${name} ENCODING LATIN1 LOCALE 'C' LOCALE_PROVIDER libc TEMPLATE template0`)
    await refused(
      changed((url) => (url.pathname = `/${name}`)),
      /encoding LATIN1/,
    )
    await outsider.query(`DROP DATABASE ${name}`)
  })

  test('on a store of a newer version, or with another history', async () => {
    await withStorage({}, async () => undefined)
    await outsider.query("INSERT INTO tacho.migrations VALUES (900, '900_future.sql', 'x', 0)")
    await refused(database.url, /Use the newer version/)
    await outsider.query('DELETE FROM tacho.migrations WHERE version = 900')
    await outsider.query("UPDATE tacho.migrations SET sha256 = 'x' || sha256 WHERE version = 1")
    await refused(database.url, /Migration 001_first_tables.sql of the store differs from/)
    await outsider.query('UPDATE tacho.migrations SET sha256 = substr(sha256, 2) WHERE version = 1')
    await withStorage({}, async () => undefined)
  })

  test('where it may not make its tables', async () => {
    const name = new URL(database.url).pathname.slice(1)
    await outsider.query(`CREATE ROLE ${name}_guest LOGIN PASSWORD 'guest'`)
    const empty = await databases.create()
    const url = new URL(empty.url)
    url.username = `${name}_guest`
    url.password = 'guest'
    await refused(url.href, /Tacho may not create its tables in this database: permission denied/)
    await empty.drop()
    await outsider.query(`DROP ROLE ${name}_guest`)
  })
})

async function endConnections(): Promise<void> {
  await outsider.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'tacho'",
  )
}

async function retried<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries++) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof StorageError) || tries === 50) throw error
      await sleep(20)
    }
  }
}
