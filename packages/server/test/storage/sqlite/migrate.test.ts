import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import Database from 'better-sqlite3'
import { newestVersion } from '../../../src/storage/sql/engine/migrations.ts'
import { knownMigrations, migrate } from '../../../src/storage/sqlite/migrate.ts'
import { StoreRefused } from '../../../src/storage/engine/store.ts'
import { assertMadeHere, assertTenantsFirst, type UniqueKey } from '../unique-keys.ts'
import { openStore, temporaryDirectory } from './temporary.ts'

/** A store that was opened and closed, then changed by hand. */
async function changedStore(t: TestContext, change: (db: Database.Database) => void): Promise<string> {
  const directory = temporaryDirectory(t)
  await (await openStore(t, { directory })).close()
  const db = new Database(path.join(directory, 'tacho.db'))
  change(db)
  db.close()
  return directory
}

const refused = (message: RegExp) => (error: unknown) => error instanceof StoreRefused && message.test(error.message)

test('a store of a newer version is refused', async (t) => {
  const newest = newestVersion(knownMigrations()) + 1
  const directory = await changedStore(t, (db) => {
    db.prepare('INSERT INTO migrations VALUES (?, ?, ?, ?)').run(newest, 'newer.sql', 'ab', 1)
  })
  await assert.rejects(
    openStore(t, { directory }),
    refused(new RegExp(`has schema ${newest}, .* newer version of Tacho`)),
  )
})

test('a store of another build is refused and keeps its rows', async (t) => {
  const directory = await changedStore(t, (db) => {
    db.exec("INSERT INTO workspaces (id, name, created_at) VALUES ('w', 'kept', 1)")
    db.exec("UPDATE migrations SET sha256 = 'x' || sha256 WHERE version = 1")
    // Pretend that a build with many more migrations wrote this store.
    db.exec("INSERT INTO migrations VALUES (41, '041_last.sql', 'x', 1)")
  })
  await assert.rejects(
    openStore(t, { directory }),
    refused(/^Another build of Tacho made this store: its migration 001_schema.sql is not the one of this version. /),
  )
  const db = new Database(path.join(directory, 'tacho.db'))
  db.exec('DELETE FROM migrations WHERE version = 41')
  db.exec('UPDATE migrations SET sha256 = substr(sha256, 2) WHERE version = 1')
  db.close()
  const storage = await openStore(t, { directory })
  assert.equal((await storage.findWorkspace('w'))?.name, 'kept')
})

test('a store whose migrations have a gap is refused', async (t) => {
  const directory = await changedStore(t, (db) => {
    db.exec('DELETE FROM migrations WHERE version = 1')
    db.exec("INSERT OR IGNORE INTO migrations VALUES (2, '002', '', 1)")
  })
  await assert.rejects(openStore(t, { directory }), refused(/gap before migration 2/))
})

test('every unique key begins with a tenant, except in tables that are exempt by name', async (t) => {
  const directory = await changedStore(t, () => undefined)
  const db = new Database(path.join(directory, 'tacho.db'))
  t.after(() => db.close())
  const keys = db
    .prepare<[], UniqueKey>(
      `SELECT m.name AS "table", (SELECT i.name FROM pragma_index_info(x.name) i WHERE i.seqno = 0) AS first
        FROM sqlite_schema m, pragma_index_list(m.name) x WHERE m.type = 'table' AND x."unique" = 1`,
    )
    .all()
  assert.ok(keys.length > 50)
  assertTenantsFirst(keys)
  assertMadeHere()
})

test('a database of another program is refused and unchanged', async (t) => {
  const directory = temporaryDirectory(t)
  const file = path.join(directory, 'tacho.db')
  const other = new Database(file)
  other.exec('CREATE TABLE theirs (a)')
  other.close()
  await assert.rejects(openStore(t, { directory }), refused(/another program.s database/))
  const db = new Database(file)
  t.after(() => db.close())
  assert.deepEqual(db.prepare('SELECT name FROM sqlite_schema').pluck().all(), ['theirs'])
})

test('a file that is not a database is refused', async (t) => {
  const directory = temporaryDirectory(t)
  writeFileSync(path.join(directory, 'tacho.db'), 'This is a text. '.repeat(1000))
  await assert.rejects(openStore(t, { directory }), refused(/cannot be opened: file is not a database/))
})

test('a failed migration leaves no changes', () => {
  const db = new Database(':memory:')
  const broken = [...knownMigrations()]
  broken.push({
    version: newestVersion(broken) + 1,
    name: 'broken.sql',
    sha256: '',
    text: 'CREATE TABLE half (a); SELECT nothing',
  })
  assert.throws(() => migrate(db, broken))
  assert.deepEqual(db.prepare('SELECT name FROM sqlite_schema').all(), [])
  db.close()
})

test('opening a store again applies no migration twice', () => {
  const db = new Database(':memory:')
  migrate(db)
  const applied = db.prepare('SELECT * FROM migrations').all()
  migrate(db)
  assert.deepEqual(db.prepare('SELECT * FROM migrations').all(), applied)
  db.close()
})

test('the next migration changes a store that has rows, and older versions then refuse it', () => {
  const db = new Database(':memory:')
  migrate(db)
  db.exec("INSERT INTO workspaces (id, name, created_at) VALUES ('w', 'kept', 1)")
  const text = "ALTER TABLE workspaces ADD COLUMN colour TEXT; UPDATE workspaces SET colour = 'red';"
  const next = { version: newestVersion(knownMigrations()) + 1, name: 'next.sql', sha256: 'ab', text }
  for (let starts = 1; starts <= 2; starts++) {
    migrate(db, [...knownMigrations(), next])
    assert.deepEqual(db.prepare('SELECT name, colour FROM workspaces').raw().all(), [['kept', 'red']])
  }
  assert.throws(() => migrate(db), refused(/Use the newer version/))
  db.close()
})

// To renew the file after a new migration: TACHO_WRITE_SNAPSHOTS=1 npm test -- sqlite/migrate
test('the schema is the one in schema.sql', () => {
  const db = new Database(':memory:')
  migrate(db)
  const objects = db.prepare<[], string>(
    "SELECT sql || ';' FROM sqlite_schema WHERE sql IS NOT NULL AND tbl_name NOT LIKE 'sqlite%' ORDER BY name",
  )
  const statistics = db.prepare<[], string>("SELECT tbl || ' ' || idx || ': ' || stat FROM sqlite_stat1 ORDER BY idx")
  const schema = `${objects.pluck().all().join('\n\n')}\n\n-- ${statistics.pluck().all().join('\n-- ')}\n`
  db.close()
  const file = path.join(import.meta.dirname, 'schema.sql')
  if (process.env['TACHO_WRITE_SNAPSHOTS'] === '1') writeFileSync(file, schema)
  // One sentence is enough: the two texts fill a screen, and git shows the difference.
  assert.ok(schema === readFileSync(file, 'utf8'), 'The schema has changed: renew the file as told above this test')
})
