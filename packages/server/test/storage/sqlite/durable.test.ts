import assert from 'node:assert/strict'
import path from 'node:path'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { openDatabase, STORE_FILE, assertDurable, durability } from '../../../src/storage/sqlite/database.ts'
import { migrate } from '../../../src/storage/sqlite/migrate.ts'
import { openSqliteStorage } from '../../../src/storage/sqlite/open.ts'
import { temporaryDirectory } from './temporary.ts'

test('a connection whose commits may not reach the disk is refused, whatever the cause', (t) => {
  const db = openDatabase(path.join(temporaryDirectory(t), STORE_FILE))
  t.after(() => db.close())
  migrate(db)
  assert.doesNotThrow(() => assertDurable(db))
  assert.deepEqual(durability(db), { synchronous: 2, mode: 'wal' })
  for (const synchronous of ['OFF', 'NORMAL']) {
    db.pragma(`synchronous = ${synchronous}`)
    assert.throws(() => assertDurable(db), /would not be durable: synchronous=[01], journal_mode=wal/)
  }
  db.pragma('synchronous = FULL')
  for (const mode of ['MEMORY', 'DELETE']) {
    db.pragma(`journal_mode = ${mode}`)
    assert.throws(() => assertDurable(db), new RegExp(`synchronous=2, journal_mode=${mode.toLowerCase()}`))
  }
  db.pragma('journal_mode = WAL')
  assert.doesNotThrow(() => assertDurable(db))
})

test('the writer thread checks durability when it starts; a store that fails the check does not open', async (t) => {
  const directory = temporaryDirectory(t)
  const db = openDatabase(path.join(directory, STORE_FILE))
  migrate(db)
  // Only the durability check updates a revision to the same value.
  db.exec(`CREATE TRIGGER refuse_proof BEFORE UPDATE OF revision ON control WHEN new.revision = old.revision
    BEGIN SELECT RAISE(ABORT, 'the proof failed'); END`)
  db.close()
  const onTrouble = (): void => undefined
  const opening = openSqliteStorage({ directory, minFreeDiskBytes: 0, onTrouble }).then((storage) => storage.close())
  await assert.rejects(opening, (error: Error) => /SQLITE_CONSTRAINT_TRIGGER/.test(inspect(error.cause)))
})
