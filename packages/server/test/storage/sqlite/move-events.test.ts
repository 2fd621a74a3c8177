/** Stores of versions before migration 010. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import Database from 'better-sqlite3'
import { openDatabase, STORE_FILE } from '../../../src/storage/sqlite/database.ts'
import { restoreSqlite } from '../../../src/storage/sqlite/restore.ts'
import { knownMigrations, migrate, migrating } from '../../../src/storage/sqlite/migrate.ts'
import type { MovedRows } from '../../../src/storage/sql/migrations.ts'
import { oldRows, readSample, recordSample, type OldRows } from '../suite/old-store.ts'
import { append, batch, event } from '../suite/sample.ts'
import { openStore, temporaryDirectory } from './temporary.ts'

const BEFORE = 9
const MIGRATOR = path.join(import.meta.dirname, 'migrator.ts')

/** Fills a directory with a store of migration 009, and says what clients read of it. */
async function oldStore(t: TestContext) {
  const storage = await openStore(t)
  const recorded = await recordSample(storage)
  const expected = await readSample(storage, recorded)
  const rows = await oldRows(storage, recorded)
  const hours = expected.flatMap(({ usage }) => usage)
  const directory = temporaryDirectory(t)
  const file = path.join(directory, STORE_FILE)
  const db = openDatabase(file)
  migrate(db, knownMigrations().slice(0, BEFORE))
  fill(db, rows)
  db.close()
  assert.ok(hours.length > 0)
  // The hours and their models are in tables that stay as they are.
  return { directory, file, recorded, expected: expected.map(({ usage: _, ...rest }) => rest) }
}

function fill(db: Database.Database, rows: OldRows): void {
  for (const [table, ofTable] of Object.entries(rows)) {
    for (const row of ofTable) {
      const names = Object.keys(row)
      const places = names.map((name) => `@${name}`)
      db.prepare(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${places.join(', ')})`).run(row)
    }
  }
}

test('a store of the old tables is read like a new one, and goes on', async (t) => {
  const { directory, file, recorded, expected } = await oldStore(t)
  const steps: MovedRows[] = []
  const storage = await openStore(t, { directory, onMoved: (moved) => steps.push(moved) })
  assert.deepEqual(withoutUsage(await readSample(storage, recorded)), expected)
  const { rows = 0, total = 0 } = steps.at(-1) ?? {}
  assert.ok(rows === total && rows > 100)

  const [environment = ''] = recorded.environments
  const events = recorded.events.get(environment) ?? []
  const envelopes = () => count(file, 'envelopes')
  const before = envelopes()
  assert.deepEqual(new Set(await storage.appendEvents(batch(environment, events))), new Set(['duplicate']))
  const { rows: runs } = await storage.listRuns(environment, {}, { limit: 1_000, after: null })
  assert.ok(
    runs.every(({ errorCount, traits }) => errorCount === null && traits === null),
    'nobody counted them',
  )
  assert.ok(runs.every(({ differingRetries }) => differingRetries === 0))
  assert.deepEqual(await append(storage, environment, event({ runId: 'a', clientId: 'client 0' })), ['stored'])
  assert.deepEqual(await append(storage, environment, event({ runId: 'new', clientId: 'client 0' })), ['stored'])
  assert.equal(envelopes(), before, 'an envelope that was moved is used again')
})

test('a backup of the old tables is restored beside a new store, with every row, sum and id', async (t) => {
  const { directory, file, recorded, expected } = await oldStore(t)
  const backup = path.join(directory, 'backup.db')
  const db = openDatabase(file)
  const sums = 'SELECT count(*), sum(seq), sum(received_at), sum(length(payload)) FROM'
  const ids = 'SELECT group_concat(event_id ORDER BY seq) FROM'
  const before = [`${sums} events`, `${ids} events`].map((query) => db.prepare(query).get())
  db.prepare('VACUUM INTO ?').run(backup)
  db.close()
  const target = temporaryDirectory(t)
  const newer = await openStore(t, { directory: target })
  await append(newer, recorded.environments[0] ?? '', event({ runId: 'newer' }))
  await newer.close()
  assert.notEqual(restoreSqlite({ from: backup, directory: target, replace: true }).replaced, null)
  const restored = await openStore(t, { directory: target })
  assert.deepEqual(withoutUsage(await readSample(restored, recorded)), expected)
  assert.ok((await restored.inspect()).every(({ ok }) => ok))
  const after = new Database(path.join(target, STORE_FILE), { readonly: true })
  t.after(() => after.close())
  assert.deepEqual(
    [`${sums} events`, `${ids} events`].map((query) => after.prepare(query).get()),
    before,
  )
})

test('a migration that is killed again and again goes on where it was', async (t) => {
  const { directory, file, recorded, expected } = await oldStore(t)
  const left: number[] = []
  for (const steps of [1, 3, 6]) {
    const { signal, stderr } = spawnSync(process.execPath, [MIGRATOR, file, String(steps)], { encoding: 'utf8' })
    assert.equal(signal, 'SIGKILL', stderr)
    left.push(count(file, 'old_runs') + count(file, 'old_events'))
  }
  assert.ok(left.every((rows, index) => rows > 0 && rows < (left[index - 1] ?? Infinity)))
  const storage = await openStore(t, { directory })
  assert.deepEqual(withoutUsage(await readSample(storage, recorded)), expected)
})

test('a transaction of large payloads ends before its number of rows, and has at least one', async (t) => {
  const { file } = await oldStore(t)
  const db = openDatabase(file)
  t.after(() => db.close())
  db.exec("UPDATE events SET payload = '\"' || hex(zeroblob(9000000)) || '\"' WHERE seq IN (2, 3)")
  const rows = count(file, 'events')
  const steps = Array.from(migrating(db), (moved) => moved.rows)
  const runs = steps[0] ?? 0
  assert.deepEqual(
    steps.slice(1).map((moved) => moved - runs),
    [1, 2, 3, rows],
  )
})

const withoutUsage = <Read extends { usage: unknown }>(read: Read[]) => read.map(({ usage: _, ...rest }) => rest)

function count(file: string, table: string): number {
  const db = new Database(file)
  try {
    return db.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get() ?? 0
  } finally {
    db.close()
  }
}
