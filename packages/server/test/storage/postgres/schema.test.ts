/**
 * The schema that all migrations make together, as PostgreSQL sees it. After you add a migration, run:
 *   node_modules/.bin/node --test --test-update-snapshots packages/server/test/storage/postgres/schema.test.ts
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { dataTables, distribution, knownMigrations } from '../../../src/storage/postgres/migrate.ts'
import { openPostgresStorage } from '../../../src/storage/postgres/open.ts'
import { assertConflictsOfTenants, assertTenantsFirst, type UniqueKey } from '../unique-keys.ts'
import { testDatabases, type TestDatabase, type TestDatabases } from '../../setup/postgres-server.ts'

const SNAPSHOT = fileURLToPath(new URL('schema.txt', import.meta.url))

const COLUMNS = `SELECT c.relname AS "table", concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod),
    CASE WHEN l.collname <> 'default' THEN 'COLLATE "' || l.collname || '"' END,
    CASE WHEN a.attnotnull THEN 'NOT NULL' END, CASE a.attgenerated WHEN '' THEN 'DEFAULT ' ELSE 'GENERATED ' END
      || btrim(regexp_replace(pg_get_expr(d.adbin, d.adrelid), '[[:space:]]+', ' ', 'g'))) AS line
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_collation l ON l.oid = a.attcollation LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
  WHERE c.relnamespace = 'tacho'::regnamespace AND c.relkind = 'r' ORDER BY c.relname, a.attnum`
const CONSTRAINTS = `SELECT c.relname AS "table", pg_get_constraintdef(o.oid) AS line
  FROM pg_constraint o JOIN pg_class c ON c.oid = o.conrelid
  WHERE o.connamespace = 'tacho'::regnamespace AND o.contype <> 'n' ORDER BY c.relname, o.contype, o.conname`
const INDEXES = `SELECT tablename AS "table", regexp_replace(indexdef, 'tacho\\.', '') AS line FROM pg_indexes
  WHERE schemaname = 'tacho' ORDER BY tablename, indexname`
const OPTIONS = `SELECT relname AS "table", 'WITH (' || array_to_string(reloptions, ', ') || ')' AS line FROM pg_class
  WHERE relnamespace = 'tacho'::regnamespace AND relkind = 'r' AND reloptions IS NOT NULL ORDER BY relname`

describe('the schema on PostgreSQL', () => {
  let databases: TestDatabases
  let database: TestDatabase
  let client: pg.Client
  before(async () => {
    databases = await testDatabases()
    database = await databases.create()
    await (await openPostgresStorage({ url: database.url })).close()
    client = new pg.Client(database.url)
    await client.connect()
  })
  after(async () => {
    await client.end()
    await database.drop()
    await databases.close()
  })

  test('is the one in the reviewed snapshot', async (t) => {
    const lines = new Map<string, string[]>()
    for (const query of [COLUMNS, CONSTRAINTS, INDEXES, OPTIONS]) {
      const { rows } = await client.query<{ table: string; line: string }>(query)
      for (const { table, line } of rows) lines.set(table, [...(lines.get(table) ?? []), `  ${line}`])
    }
    const text = [...lines].map(([table, ofTable]) => [table, ...ofTable].join('\n')).join('\n\n')
    t.assert.fileSnapshot(`${text}\n`, SNAPSHOT, { serializers: [(value: string) => value] })
  })

  test('has the environment first in every primary and unique key of a data table', async () => {
    const { rows } = await client.query<{ table: string; index: string; first: string }>(
      `SELECT t.relname AS "table", i.relname AS index, a.attname AS first FROM pg_index x
        JOIN pg_class t ON t.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
        JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = x.indkey[0]
        WHERE t.relnamespace = 'tacho'::regnamespace AND x.indisunique`,
    )
    const tables = await dataTables(client)
    const keys = rows.filter(({ table }) => tables.includes(table))
    assert.deepEqual(new Set(keys.map(({ table }) => table)), new Set(tables))
    assert.deepEqual(
      keys.filter(({ first }) => first !== 'environment_id'),
      [],
    )
  })

  test('has a tenant first in every unique key, except in tables that are exempt by name', async () => {
    const { rows } = await client.query<UniqueKey>(
      `SELECT t.relname AS "table", a.attname AS first FROM pg_index x JOIN pg_class t ON t.oid = x.indrelid
        JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = x.indkey[0]
        WHERE t.relnamespace = 'tacho'::regnamespace AND x.indisunique`,
    )
    assert.ok(rows.length > 50)
    assertTenantsFirst(rows)
    assertConflictsOfTenants()
  })

  test('has no foreign key from or to a data table', async () => {
    const { rows } = await client.query<{ from: string; to: string }>(
      `SELECT conrelid::regclass::text AS from, confrelid::regclass::text AS to FROM pg_constraint
        WHERE contype = 'f' AND connamespace = 'tacho'::regnamespace`,
    )
    const tables = (await dataTables(client)).map((table) => `tacho.${table}`)
    assert.deepEqual(
      rows.filter(({ from, to }) => tables.includes(from) || tables.includes(to)),
      [],
    )
  })

  test('is distributed by tenant, with all data of a tenant on one machine', async () => {
    const [first, ...others] = (await dataTables(client)).map(distribution)
    assert.equal(first, "SELECT create_distributed_table('tacho.runs', 'environment_id', colocate_with => 'none')")
    assert.ok(others.length >= 5)
    assert.ok(others.every((statement) => statement.endsWith("'environment_id', colocate_with => 'tacho.runs')")))
  })

  test('is made by migrations that the database records', async () => {
    const { rows } = await client.query('SELECT version, name, sha256 FROM tacho.migrations ORDER BY version')
    assert.deepEqual(
      rows,
      knownMigrations().map(({ version, name, sha256 }) => ({ version, name, sha256 })),
    )
  })
})
