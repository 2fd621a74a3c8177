/**
 * Writes a store of the present schema, with rows in each table, for the test of upgrades. Run it before you add a migration:
 *   scripts/node packages/server/test/storage/former/write.ts
 */
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import pg from 'pg'
import { STORE_FILE } from '../../../src/storage/sqlite/database.ts'
import { knownMigrations } from '../../../src/storage/sqlite/migrate.ts'
import { newestVersion } from '../../../src/storage/sql/engine/migrations.ts'
import { testDatabases } from '../../setup/postgres-server.ts'
import { populate } from '../../setup/route-samples.ts'
import { event, startService, type Service } from '../../setup/service.ts'
import { FOLDER, tablesOf, type Engine } from './former-stores.ts'

const schema = String(newestVersion(knownMigrations())).padStart(3, '0')

const COLUMNS = `SELECT c.relname AS table, a.attname AS name, format_type(a.atttypid, NULL) AS type
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
  WHERE c.relnamespace = 'tacho'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
    AND a.attgenerated = '' ORDER BY c.relname, a.attnum`

const databases = await testDatabases()
const { url, drop } = await databases.create()
for (const engine of ['sqlite', 'postgres'] as const) {
  const service = await startService({
    webhookNetworks: 'loopback',
    ...(engine === 'postgres' ? { databaseUrl: url } : {}),
  })
  await use(service)
  await service.stop()
  const statements = engine === 'sqlite' ? fileRows(service.directory) : await databaseRows(url)
  writeFileSync(path.join(FOLDER, `${engine}-${schema}.sql`), `${statements.join('\n')}\n`)
  await service.close()
}
await drop()
await databases.close()

/** Uses the service like an installation, so that tables get rows. */
async function use(service: Service): Promise<void> {
  const { workspaceId, environmentId, apiKey, ids } = await populate(service, 'former')
  const items = [
    { kind: 'policy', id: ids['policyId'], version: '1' },
    { kind: 'prompt', id: ids['promptId'], version: '1' },
  ]
  await done(service.operator(`/environments/${environmentId}/deployments`, { body: { items } }))
  const price = { model: 'gpt-4o', input: 1, output: 2 }
  await done(service.operator(`/workspaces/${workspaceId}/prices/set`, { body: price }))
  const client = { 'x-api-key': apiKey, 'x-service-client-id': 'former' }
  await done(service.api('/runtime-config', { headers: client }))
  const call = {
    usage: { promptTokens: 10, completionTokens: 5 },
    model: 'gpt-4o',
    latencyMs: 12,
    promptVersionId: randomUUID(),
  }
  const runId = 'upgraded'
  const events = [
    event({ runId, eventType: 'LLM_CALL', payload: call }),
    event({ runId, eventType: 'TOOL_CALL', payload: { toolName: 'refund', input: { amount: 5 }, latencyMs: 3 } }),
    event({ runId, eventType: 'SESSION_OUTCOME', payload: { status: 'FAILED', error: { message: 'no refund' } } }),
    event({ runId, timestamp: 1 }),
  ]
  await done(service.record(events, apiKey))
}

async function done(answer: Promise<{ status: number; text: string }>): Promise<void> {
  const { status, text } = await answer
  if (status >= 300) throw new Error(text)
}

function fileRows(directory: string): string[] {
  const db = new Database(path.join(directory, STORE_FILE))
  db.pragma('foreign_keys = OFF')
  const statements = tablesOf(db).flatMap((table) => {
    const columns = db
      .prepare<[string], { name: string; type: string }>(
        'SELECT name, type FROM pragma_table_xinfo(?) WHERE hidden = 0',
      )
      .all(table)
    if (db.prepare(`SELECT 1 FROM ${table}`).get() === undefined) {
      console.log('sqlite: filler rows in', table)
      const values = columns.map(({ name, type }) =>
        type === 'BLOB' ? Buffer.from([1]) : filler('sqlite', name, type),
      )
      db.prepare(`INSERT INTO ${table} VALUES (${columns.map(() => '?').join(', ')})`).run(values)
    }
    const names = columns.map(({ name }) => name)
    const quoted = names.map((name) => `quote(${name})`).join(" || ', ' || ")
    const rows = db.prepare<[], string>(`SELECT ${quoted} FROM ${table}`).pluck().all()
    return rows.map((row) => `INSERT INTO ${table} (${names.join(', ')}) VALUES (${row});`)
  })
  db.close()
  return statements
}

async function databaseRows(address: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: address, options: '-c search_path=tacho' })
  await client.connect()
  await client.query('SET session_replication_role = replica')
  const { rows: columns } = await client.query<{ table: string; name: string; type: string }>(COLUMNS)
  const statements = ['SET search_path = tacho;']
  for (const [table, of] of Map.groupBy(columns, (column) => column.table)) {
    const names = of.map(({ name }) => name).join(', ')
    const { rows: some } = await client.query(`SELECT 1 FROM ${table} LIMIT 1`)
    if (some.length === 0) {
      console.log('postgres: filler rows in', table)
      const values = of.map(({ name, type }) => filler('postgres', name, type))
      await client.query(
        `INSERT INTO ${table} (${names}) VALUES (${values.map((_, n) => `$${n + 1}`).join(', ')})`,
        values,
      )
    }
    const quoted = of.map(({ name }) => `quote_nullable(${name}::text)`).join(", ', ', ")
    const { rows } = await client.query<{ row: string }>(`SELECT concat(${quoted}) AS row FROM ${table}`)
    statements.push(...rows.map(({ row }) => `INSERT INTO ${table} (${names}) VALUES (${row});`))
  }
  const { rows } = await client.query<{ last: number }>("SELECT nextval('numbers') + 100 AS last")
  statements.push(`SELECT setval('numbers', ${rows[0]?.last});`)
  await client.end()
  return statements
}

/** A value for a column in a row of an environment that does not exist. */
function filler(engine: Engine, name: string, type: string): string | number {
  if (/INTEGER|REAL|int|double/.test(type)) return 1
  if (type === 'bytea') return String.raw`\x01`
  if (type === 'uuid' || name.endsWith('_id')) return engine === 'postgres' && type !== 'uuid' ? 'former' : randomUUID()
  return name === 'result' ? '{"hitRuns":[]}' : '{}'
}
