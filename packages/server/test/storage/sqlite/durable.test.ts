import assert from 'node:assert/strict'
import path from 'node:path'
import { test } from 'node:test'
import { openDatabase, STORE_FILE } from '../../../src/storage/sqlite/database.ts'
import { assertDurable, durability } from '../../../src/storage/sqlite/durable.ts'
import { migrate } from '../../../src/storage/sqlite/migrate.ts'
import { temporaryDirectory } from './temporary.ts'

test('a connection whose commits may not reach the disk is refused, whatever makes it so', (t) => {
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
