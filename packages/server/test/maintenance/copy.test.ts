import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import Database from 'better-sqlite3'
import pg from 'pg'
import { copy, StoreRefused, migrateStore } from '../../src/maintenance/copy.ts'
import { COPIED_TABLES, TABLES } from '../../src/storage/engine/tables.ts'
import { openPostgresStorage } from '../../src/storage/postgres/open.ts'
import { openSqliteStorage } from '../../src/storage/sqlite/open.ts'
import type { Storage } from '../../src/storage/storage.ts'
import { fillEveryTable } from './copy-sample.ts'
import { testDatabases, type TestDatabases } from '../setup/postgres-server.ts'
import { issueRecord, reviewed, newFailure } from '../storage/suite/issues/issue-sample.ts'
import {
  append,
  batch,
  event,
  llmCall,
  newId,
  NOON,
  outcome,
  runOf,
  sampleFailure,
  timelineOf,
} from '../storage/suite/sample.ts'

let databases: TestDatabases
before(async () => {
  databases = await testDatabases()
})
after(() => databases.close())

function directory(t: TestContext): string {
  const made = mkdtempSync(path.join(os.tmpdir(), 'tacho-copy-'))
  t.after(() => rmSync(made, { recursive: true }))
  return made
}

/** The address of an empty database. */
async function database(t: TestContext): Promise<string> {
  const { url, drop } = await databases.create()
  t.after(drop)
  return url
}

const openSqlite = (at: string): Promise<Storage> =>
  openSqliteStorage({ directory: at, minFreeDiskBytes: 0, readers: 1, onTrouble: () => undefined })

/** Opens a store, works on it, and closes it. */
async function using<Result>(opened: Promise<Storage>, work: (storage: Storage) => Promise<Result>): Promise<Result> {
  const storage = await opened
  try {
    return await work(storage)
  } finally {
    await storage.close()
  }
}

const inDatabase = async <Result>(url: string, work: (client: pg.Client) => Promise<Result>): Promise<Result> => {
  const client = new pg.Client(url)
  await client.connect()
  try {
    await client.query('SET search_path = tacho')
    return await work(client)
  } finally {
    await client.end()
  }
}

/** All rows of a store, except what may differ in a copy: the numbers of events and the secret of cursors. */
function contents(at: string): Record<string, unknown[]> {
  const db = new Database(path.join(at, 'tacho.db'), { readonly: true })
  const all = COPIED_TABLES.map(({ name, key }) => {
    const text =
      name === 'events'
        ? `SELECT e.*, n.environment_id FROM events e JOIN environment_numbers n ON n.number = e.environment_id
            ORDER BY n.environment_id, run, event_id`
        : `SELECT * FROM ${name} ORDER BY ${key.join(', ')}`
    const rows = db.prepare<[], Record<string, unknown>>(text).all()
    return [name, rows.map(({ seq: _seq, closing_seq: _closing, ...row }) => row)] as const
  })
  db.close()
  return Object.fromEntries(all)
}

test('every table of both engines is copied, or listed as not copied', async (t) => {
  const [at, url] = [directory(t), await database(t)]
  await using(openSqlite(at), async () => undefined)
  await migrateStore({ databaseUrl: url })
  const db = new Database(path.join(at, 'tacho.db'), { readonly: true })
  const text =
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'search_words%'"
  const embedded = db.prepare<[], string>(text).pluck().all()
  db.close()
  const known: string[] = TABLES.map(({ name }) => name)
  assert.deepEqual(
    embedded.filter((name) => !known.includes(name)),
    [],
  )
  await inDatabase(url, async (client) => {
    const { rows } = await client.query("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'tacho'")
    assert.deepEqual(
      rows.map(({ name }: { name: string }) => name).filter((name) => !known.includes(name)),
      [],
    )
    // The copy sets these past what it copied.
    const sequences = await client.query("SELECT sequencename AS name FROM pg_sequences WHERE schemaname = 'tacho'")
    assert.deepEqual(sequences.rows, [{ name: 'numbers' }])
  })
})

test('the copy pages each table by a key that is unique on both engines', async (t) => {
  const [at, url] = [directory(t), await database(t)]
  await using(openSqlite(at), async () => undefined)
  await migrateStore({ databaseUrl: url })
  const db = new Database(path.join(at, 'tacho.db'), { readonly: true })
  const unique = db.prepare<[string], string>(
    `SELECT group_concat(c.name) FROM pragma_index_list(?) AS l, pragma_index_info(l.name) AS c
      WHERE l."unique" AND NOT l.partial GROUP BY l.name`,
  )
  const primary = db.prepare<[string], string>('SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk')
  await inDatabase(url, async (client) => {
    for (const { name, key, scanKey } of COPIED_TABLES) {
      const order = scanKey?.sqlite ?? key
      const keys = [...unique.pluck().all(name), primary.pluck().all(name).join(',')]
      assert.ok(keys.includes(order.join(',')), `${name}: ${order.join()} in ${keys.join(' ')}`)
      const { rows } = await client.query<{ columns: string }>(
        `SELECT (SELECT string_agg(a.attname, ',' ORDER BY k.place) FROM unnest(i.indkey::int[]) WITH ORDINALITY AS k (number, place)
          JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number) AS columns
          FROM pg_index i WHERE i.indrelid = to_regclass($1) AND i.indpred IS NULL`,
        [`tacho.${name}`],
      )
      const wanted = (scanKey?.postgres ?? key).join(',')
      assert.ok(
        rows.some(({ columns }) => columns === wanted),
        `${name}: ${wanted}`,
      )
    }
  })
  db.close()
})

test('a store with rows in every table arrives byte for byte in a database, and back in a file', async (t) => {
  const [first, last, url] = [directory(t), directory(t), await database(t)]
  await using(openSqlite(first), async () => undefined)
  await migrateStore({ databaseUrl: url })
  await fillEveryTable(first, url)
  const report = await copy({ from: `sqlite:${first}`, to: url, rowsPerBatch: 2 })
  assert.equal(report.outcome, 'copied')
  assert.ok(report.tables.every(({ rows }) => rows > 0))
  const back = await copy({ from: url, to: `sqlite:${last}`, rowsPerBatch: 2 })
  assert.equal(back.rows, report.rows)
  const [before, after] = [contents(first), contents(last)]
  assert.deepEqual(Object.keys(after), Object.keys(before))
  for (const table of Object.keys(before)) assert.deepEqual(after[table], before[table], table)
})

const DROPS = JSON.stringify([{ reason: 'queue_full', count: 1, lastAt: NOON }])

/** Runs of two environments with interleaved events, out of order and with an outcome in between. */
async function record(storage: Storage): Promise<string[]> {
  const environments = [newId(), newId()]
  for (let round = 0; round < 6; round++) {
    for (const environment of environments) {
      const events = ['a', 'b', 'c'].flatMap((runId) => [
        event({ runId, time: NOON + ((round * 7) % 5), payload: `{"n": ${round}.0, "text": "ü\\u00fc"}` }),
        llmCall({ promptTokens: round, costNanos: 7 }, { runId, time: NOON - round, agentId: 'agent' }),
        ...(round === 3 ? [outcome('FAILED', { runId, time: NOON, failure: sampleFailure() })] : []),
        ...(round === 4 ? [event({ runId, eventId: `late ${runId}`, number: 'abcde3', drops: DROPS })] : []),
      ])
      const rejections = [{ runId: 'a', eventId: `bad ${round}`, code: 'empty' as const, rejectedAt: NOON + round }]
      await storage.appendEvents(batch(environment, events, { rejections, receivedAt: NOON + round }))
    }
  }
  for (const environment of environments) {
    await storage.recordFailures(environment, 'a', [newFailure({ eventId: 'f' })], NOON)
    const reported = issueRecord(environment, { runId: 'a', eventId: 'f', detectionType: 'TOOL_FAILED' })
    await reviewed(storage, reported)
  }
  return environments
}

/** What clients can read: runs with their events by time and by arrival, usage, and the event that closed a run. */
async function readAll(storage: Storage, environments: string[]) {
  const page = { limit: 1000, after: null }
  const withoutSeq = <Event extends { seq: number }>({ seq: _seq, ...rest }: Event) => rest
  return Promise.all(
    environments.map(async (environment) => {
      const { rows: runs } = await storage.listRuns(environment, {}, page)
      const events = await Promise.all(
        runs.map(async (run) => {
          const byTime = await timelineOf(storage, environment, run.runId)
          const byArrival = await storage.listEventRows(environment, run.id, { ...page, order: 'arrival' })
          const found = await Promise.all(
            byTime.map(({ eventId }) => storage.findEvent(environment, run.runId, eventId)),
          )
          const closing = found.filter((one) => one?.closedRun).map((one) => one?.event.eventId)
          return { byTime: byTime.map(withoutSeq), byArrival: byArrival.rows.map(withoutSeq), closing }
        }),
      )
      const { rows: withGaps } = await storage.listRuns(environment, { completeness: 'GAPS' }, page)
      const records = await storage.listIssueRecords(environment, {}, { limit: 10, after: null })
      return {
        runs,
        events,
        withGaps,
        records: records.rows,
        usage: (await storage.readUsage(environment, 0, 2 * NOON, { limit: 1_000, after: null })).rows,
      }
    }),
  )
}

test('after a copy into a database clients read the same, and new events come after all others', async (t) => {
  const [at, url] = [directory(t), await database(t)]
  const environments = await using(openSqlite(at), record)
  const before = await using(openSqlite(at), (storage) => readAll(storage, environments))
  for (const { withGaps, records } of before) {
    assert.deepEqual(
      withGaps.map(({ runId, failure, recorders }) => [runId, failure !== null, recorders !== null]),
      [
        ['c', true, true],
        ['b', true, true],
        ['a', true, true],
      ],
    )
    const [late, counted] = records
    assert.deepEqual([counted?.origin, late?.origin, late?.sameAs], ['SERVICE', 'CLIENT', counted?.id])
  }
  await copy({ from: `sqlite:${at}`, to: url, rowsPerBatch: 5 })
  await using(openPostgresStorage({ url }), async (storage) => {
    assert.deepEqual(await readAll(storage, environments), before)
    await addLater(storage, environments[0] ?? '')
  })
})

test('after a copy into a file clients read the same, and new events come after all others', async (t) => {
  const [at, url] = [directory(t), await database(t)]
  const environments = await using(openPostgresStorage({ url }), record)
  const before = await using(openPostgresStorage({ url }), (storage) => readAll(storage, environments))
  await copy({ from: url, to: `sqlite:${at}`, rowsPerBatch: 5 })
  await using(openSqlite(at), async (storage) => {
    assert.deepEqual(await readAll(storage, environments), before)
    await addLater(storage, environments[0] ?? '')
  })
})

async function addLater(storage: Storage, environment: string): Promise<void> {
  const [late, again] = [event({ runId: 'b', time: NOON - 1000 }), event({ runId: 'b', eventId: 'twice' })]
  assert.deepEqual(await append(storage, environment, late, again, again), ['stored', 'stored', 'duplicate'])
  const { id } = await runOf(storage, environment, 'b')
  const { rows } = await storage.listEventRows(environment, id, { limit: 100, order: 'arrival', after: null })
  assert.deepEqual(
    rows.slice(-2).map(({ eventId }) => eventId),
    [late.eventId, 'twice'],
  )
  // Numbers that the copied rows do not have.
  assert.deepEqual(await append(storage, environment, event({ runId: 'new', clientId: 'new' })), ['stored'])
  assert.deepEqual(
    (await timelineOf(storage, environment, 'new')).map(({ clientId }) => clientId),
    ['new'],
  )
}

for (const [name, from, to] of [
  ['a database', 'file', 'database'],
  ['a file', 'database', 'file'],
] as const) {
  test(`an interrupted copy into ${name} continues where it was, and no server opens the partial copy`, async (t) => {
    const [at, url] = [directory(t), await database(t)]
    const places = { file: `sqlite:${at}`, database: url }
    const open = { file: () => openSqlite(at), database: () => openPostgresStorage({ url }) }
    const environments = await using(open[from](), record)
    const before = await using(open[from](), (storage) => readAll(storage, environments))
    for (const last of [3, 20, 44]) {
      const broken = copy({
        from: places[from],
        to: places[to],
        rowsPerBatch: 5,
        onProgress(phase, rows) {
          if (phase === 'copy' && rows >= last) throw new Error('pulled the plug')
        },
      })
      await assert.rejects(broken, /pulled the plug/)
      await assert.rejects(
        open[to](),
        (error) => error instanceof StoreRefused && /has not finished/.test(error.message),
      )
    }
    const { outcome: how } = await copy({ from: places[from], to: places[to], rowsPerBatch: 7 })
    assert.equal(how, 'resumed')
    const again = await copy({ from: places[from], to: places[to] })
    assert.equal(again.outcome, 'already_copied')
    assert.deepEqual(await using(open[to](), (storage) => readAll(storage, environments)), before)
  })
}

const refused = (sentence: RegExp) => (error: unknown) => {
  assert.ok(error instanceof StoreRefused, String(error))
  assert.match(error.message, sentence)
  return true
}

test('a target that is not empty, or contains a copy of another store, is refused', async (t) => {
  const [at, other, url] = [directory(t), directory(t), await database(t)]
  await using(openSqlite(at), async (storage) => {
    await record(storage)
    await storage.secret('cursors', 'one')
  })
  await using(openPostgresStorage({ url }), record)
  await assert.rejects(copy({ from: `sqlite:${at}`, to: url }), refused(/is not empty: it has rows in secrets/))
  const empty = await database(t)
  await copy({ from: `sqlite:${at}`, to: empty })
  await using(openSqlite(other), (storage) => storage.secret('cursors', 'two'))
  await assert.rejects(copy({ from: `sqlite:${other}`, to: empty }), refused(/holds a copy of another store/))
  await assert.rejects(copy({ from: `sqlite:${at}`, to: `sqlite:${at}/.` }), refused(/must be different stores/))
  await assert.rejects(copy({ from: `sqlite:${at}/nothing`, to: empty }), refused(/There is no store in/))
  await assert.rejects(copy({ from: 'mysql://x', to: empty }), refused(/sqlite:<directory> or postgres:/))
})

test('a source that changes during an interrupted copy is refused', async (t) => {
  const [at, url] = [directory(t), await database(t)]
  const [environment = ''] = await using(openSqlite(at), record)
  await assert.rejects(
    copy({
      from: `sqlite:${at}`,
      to: url,
      onProgress() {
        throw new Error('pulled the plug')
      },
    }),
  )
  await using(openSqlite(at), (storage) => append(storage, environment, event({ runId: 'a' })))
  await assert.rejects(copy({ from: `sqlite:${at}`, to: url }), refused(/has changed since the copy began: events has/))
})

test('the final comparison finds any row that differs', async (t) => {
  const [at, url] = [directory(t), await database(t)]
  await using(openSqlite(at), record)
  await copy({ from: `sqlite:${at}`, to: url })
  await inDatabase(url, (client) =>
    client.query("UPDATE events SET payload = payload || ' ' WHERE event_id = (SELECT min(event_id) FROM events)"),
  )
  await assert.rejects(copy({ from: `sqlite:${at}`, to: url }), refused(/differs from its source in events:/))
})

test('a database in use is copied only with --while-running, in its state at the start', async (t) => {
  const [at, url] = [directory(t), await database(t)]
  const storage = await openPostgresStorage({ url })
  const [environment = ''] = await record(storage)
  await assert.rejects(copy({ from: url, to: `sqlite:${at}` }), refused(/1 processes of Tacho serve from/))
  const empty = directory(t)
  let isAdded = false
  await copy({
    from: url,
    to: `sqlite:${empty}`,
    whileRunning: true,
    rowsPerBatch: 5,
    onProgress() {
      if (!isAdded) void append(storage, environment, event({ runId: 'late' }))
      isAdded = true
    },
  })
  await storage.close()
  await using(openSqlite(empty), async (copied) => {
    assert.equal(await copied.findRun(environment, 'late'), null)
    assert.equal((await copied.listRuns(environment, {}, { limit: 10, after: null })).rows.length, 3)
  })
})

test('a database in use cannot be the target', async (t) => {
  const [at, url] = [directory(t), await database(t)]
  await using(openSqlite(at), record)
  await using(openPostgresStorage({ url }), () =>
    assert.rejects(copy({ from: `sqlite:${at}`, to: url }), refused(/serve from .*Stop them first/)),
  )
})

test('an embedded store that a server has open can be neither source nor target', async (t) => {
  const [at, url] = [directory(t), await database(t)]
  await using(openSqlite(at), async () => {
    await assert.rejects(copy({ from: `sqlite:${at}`, to: url }), refused(/is open in another process/))
    await migrateStore({ databaseUrl: url })
    await assert.rejects(copy({ from: url, to: `sqlite:${at}` }), refused(/is open in another process/))
  })
})

test('after a copy into a file, older cursors are rejected instead of misread', async (t) => {
  const [at, url] = [directory(t), await database(t)]
  await using(openPostgresStorage({ url }), async (storage) => {
    await record(storage)
    await storage.secret('cursors', 'old')
    await storage.secret('other', 'kept')
  })
  await copy({ from: url, to: `sqlite:${at}` })
  await using(openSqlite(at), async (storage) => {
    assert.equal(await storage.secret('cursors', 'new'), 'new')
    assert.equal(await storage.secret('other', 'new'), 'kept')
  })
})

test('a statement on a large store may take as long as it needs', async (t) => {
  const [at, url] = [directory(t), await database(t)]
  await using(openSqlite(at), record)
  await migrateStore({ databaseUrl: url })
  const report = await inDatabase(url, async (client) => {
    await client.query('BEGIN; LOCK TABLE prices IN ACCESS EXCLUSIVE MODE')
    const copied = copy({ from: `sqlite:${at}`, to: url })
    // Longer than the answers of a silent database are waited for.
    await wait(6_000)
    await client.query('COMMIT')
    return copied
  })
  assert.equal(report.outcome, 'copied')
})

test('a file that another build made, with fewer and other columns, is copied as far as both schemas agree', async (t) => {
  const [first, last] = [directory(t), directory(t)]
  const env = newId()
  await using(openSqlite(first), async (storage) => {
    const workspaceId = newId()
    await storage.createWorkspace({ id: workspaceId, name: 'moved', createdAt: NOON }, [])
    await storage.createEnvironment({ id: env, workspaceId, name: 'e', createdAt: NOON }, [])
    await append(storage, env, event())
  })
  const db = new Database(path.join(first, 'tacho.db'))
  db.exec("UPDATE migrations SET sha256 = 'another build'")
  db.exec("ALTER TABLE workspaces ADD COLUMN colour TEXT DEFAULT 'red'; DROP TABLE slack_links")
  db.close()
  const [from, to] = [`sqlite:${first}`, `sqlite:${last}`]
  await assert.rejects(copy({ from, to }), /Another build of Tacho made this store/)
  const report = await copy({ from, to, otherBuild: true })
  assert.deepEqual(report.left, ['workspaces.colour'])
  await using(openSqlite(last), async (storage) => {
    assert.equal((await runOf(storage, env)).eventCount, 1)
    assert.deepEqual(
      (await storage.listWorkspaces({ limit: 10, after: null })).rows.map(({ name }) => name),
      ['moved'],
    )
  })
})
