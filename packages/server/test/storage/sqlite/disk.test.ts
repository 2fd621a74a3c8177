import assert from 'node:assert/strict'
import path from 'node:path'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import { batchAppender } from '../../../src/storage/sql/record/append.ts'
import { sqliteAppendEngine } from '../../../src/storage/sqlite/append.ts'
import { watchDisk } from '../../../src/storage/sqlite/files.ts'
import { migrate } from '../../../src/storage/sqlite/migrate.ts'
import { sqliteSql } from '../../../src/storage/sqlite/database.ts'
import { StorageError } from '../../../src/storage/engine/store.ts'
import { append, batch, event, newId, runOf } from '../suite/sample.ts'
import { openStore, temporaryDirectory } from './temporary.ts'
import { eventually } from '../../setup/eventually.ts'

const storageFull = (error: unknown) => error instanceof StorageError && error.code === 'storage_full'

test('with a nearly full disk events are refused, while reads and control continue', async (t) => {
  const directory = temporaryDirectory(t)
  const env = newId()
  const before = await openStore(t, { directory })
  await append(before, env, event())
  await before.close()
  const storage = await openStore(t, { directory, minFreeDiskBytes: Number.MAX_SAFE_INTEGER })
  assert.equal(storage.writesRefused(), 'storage_full')
  await assert.rejects(append(storage, env, event()), storageFull)
  assert.equal((await runOf(storage, env)).eventCount, 1)
  await storage.ping()
  assert.equal(await storage.createWorkspace({ id: 'w', name: 'w', createdAt: 1 }, []), 'created')
  const disk = (await storage.inspect()).find(({ name }) => name === 'disk')
  assert.equal(disk?.ok, false)
})

test('with enough free disk space nothing is refused', async (t) => {
  const storage = await openStore(t, { minFreeDiskBytes: 1 })
  assert.equal(storage.writesRefused(), null)
  assert.ok((storage.gauges().diskFreeBytes ?? 0) > 1)
})

test('after a write that found the disk full, writes are refused until the next check', async (t) => {
  const directory = temporaryDirectory(t)
  const disk = await watchDisk(directory, path.join(directory, 'none'), 1, assert.fail)
  t.after(disk.close)
  assert.equal(disk.nearlyFull(), false)
  disk.reportFull()
  assert.equal(disk.nearlyFull(), true)
  await eventually(() => !disk.nearlyFull(), 'the next check of the disk')
})

test('a shared commit that fails is reported, and its batches are stored alone', async () => {
  const db = new Database(':memory:')
  migrate(db)
  db.exec(
    "CREATE TRIGGER fail BEFORE INSERT ON runs WHEN NEW.run_id = 'bad' BEGIN SELECT RAISE(ABORT, 'on purpose'); END",
  )
  const warnings: string[] = []
  const commit = batchAppender(sqliteAppendEngine(db, sqliteSql(db)), (what, error) => {
    warnings.push(`${what}: ${String(error)}`)
  })
  const env = newId()
  const batches = [batch(env, [event()]), batch(env, [event({ runId: 'bad' })])]
  assert.deepEqual(await commit(batches), [{ verdicts: ['stored'] }, { verdicts: ['unstorable'] }])
  assert.equal(warnings.length, 1)
  assert.match(warnings[0] ?? '', /^a commit of several batches failed.*on purpose/)
  db.close()
})

test('a full disk fails every batch of a commit with storage_full and stores nothing; later writes work', async () => {
  const db = new Database(':memory:')
  migrate(db)
  const commit = batchAppender(sqliteAppendEngine(db, sqliteSql(db)))
  const env = newId()
  const large = event({ payload: JSON.stringify({ text: 'x'.repeat(200_000) }) })
  const batches = [batch(env, [event(), large]), batch(env, [event({ runId: 'other' }), large])]
  const pages = db.pragma('page_count', { simple: true }) as number
  db.pragma(`max_page_count = ${pages + 20}`)
  for (const outcome of await commit(batches)) assert.ok('error' in outcome && storageFull(outcome.error))
  assert.equal(db.prepare('SELECT count(*) FROM events').pluck().get(), 0)
  assert.equal(db.prepare('SELECT count(*) FROM runs').pluck().get(), 0)
  db.pragma('max_page_count = 4294967294')
  assert.deepEqual(await commit(batches), [{ verdicts: ['stored', 'stored'] }, { verdicts: ['stored', 'duplicate'] }])
  assert.equal(db.prepare('SELECT sum(event_count) FROM runs').pluck().get(), 3)
  db.close()
})
