/** Each migration is applied once, completely or not at all, even if many nodes start at the same time. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { appliedMigrations, knownMigrations, migrate } from '../../../src/storage/postgres/migrate.ts'
import { newestVersion, type Migration } from '../../../src/storage/sql/engine/migrations.ts'
import { testDatabases, type TestDatabase, type TestDatabases } from '../../setup/postgres-server.ts'

const known = knownMigrations()
const next = (text: string, place = 1): Migration => {
  const version = newestVersion(known) + place
  return { version, name: `next ${place}`, sha256: `${version}`, text }
}

describe('the next migration of a database with rows', () => {
  let databases: TestDatabases
  let database: TestDatabase
  let clients: pg.Client[]
  before(async () => {
    databases = await testDatabases()
    database = await databases.createEmpty()
    clients = Array.from({ length: 3 }, () => new pg.Client(database.url))
    await Promise.all(clients.map((client) => client.connect()))
    assert.deepEqual(
      await migrate(query()),
      known.map(({ name }) => name),
    )
    await query().query("INSERT INTO tacho.workspaces (id, name, created_at) VALUES ('w', 'kept', 1)")
  })
  after(async () => {
    await Promise.all(clients.map((client) => client.end()))
    await database.drop()
    await databases.close()
  })
  const query = () => clients[0] as pg.Client
  const rows = async (text: string) => (await query().query({ text, rowMode: 'array' })).rows as unknown[][]
  const newest = async () => (await appliedMigrations(query())).at(-1)?.name

  test('leaves nothing if one of its statements fails', async () => {
    const broken = next('ALTER TABLE workspaces ADD COLUMN half text;\nSELECT nothing;\n')
    await assert.rejects(migrate(query(), [...known, broken]), /column "nothing" does not exist/)
    assert.equal(await newest(), known.at(-1)?.name)
    assert.deepEqual(await rows("SELECT 1 FROM pg_attribute WHERE attname = 'half'"), [])
  })

  test('is applied once, statement by statement, by one of many nodes', async () => {
    const text = `ALTER TABLE workspaces ADD COLUMN colour text; -- a comment
DO $$
BEGIN
  UPDATE workspaces SET colour = 'red';
END $$;
ALTER TABLE workspaces ALTER COLUMN colour SET NOT NULL;
`
    const applied = await Promise.all(clients.map((client) => migrate(client, [...known, next(text)])))
    assert.deepEqual(applied.flat(), ['next 1'])
    assert.deepEqual(await rows('SELECT name, colour FROM workspaces'), [['kept', 'red']])
  })

  test('can build an index while nodes write', async () => {
    const migrations = [
      ...known,
      next(''),
      next('-- no transaction\nCREATE INDEX CONCURRENTLY workspaces_by_time ON workspaces (created_at);\n', 2),
    ]
    // The index waits for this transaction. The other nodes wait for the index without holding a lock that it needs.
    await query().query('BEGIN')
    await query().query("UPDATE workspaces SET name = 'changed'")
    const others = clients.slice(1).map((client) => migrate(client, migrations))
    await query().query('COMMIT')
    assert.deepEqual((await Promise.all(others)).flat(), ['next 2'])
    assert.deepEqual(await rows("SELECT indisvalid FROM pg_index WHERE indexrelid = 'workspaces_by_time'::regclass"), [
      [true],
    ])
  })

  test('makes older versions refuse the database', async () => {
    await assert.rejects(migrate(query()), /Use the newer version of Tacho/)
  })
})
