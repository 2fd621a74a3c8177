/** The current build opens stores of every former schema, on both engines, keeps each row, and serves them. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import Database from 'better-sqlite3'
import pg from 'pg'
import { readConfig } from '../../../src/config/config.ts'
import { recover } from '../../../src/maintenance/offline.ts'
import { STORE_FILE } from '../../../src/storage/sqlite/database.ts'
import { openPostgresStorage } from '../../../src/storage/postgres/open.ts'
import { openSqliteStorage } from '../../../src/storage/sqlite/open.ts'
import { testDatabases, type TestDatabases } from '../../setup/postgres-server.ts'
import { event } from '../../setup/service.ts'
import { startServer } from '../../setup/start-server.ts'
import { formerStores, makeDatabase, makeFile, rowCounts, type FormerStore } from './former-stores.ts'

/** Rows of processes and locks, which a start replaces. */
const OWN_ROWS = ['migrations', 'nodes', 'control']

let databases: TestDatabases
before(async () => {
  databases = await testDatabases()
})
after(() => databases.close())

function emptyDirectory(t: TestContext): string {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'tacho-former-'))
  t.after(() => rmSync(directory, { recursive: true }))
  return directory
}

function assertKept(store: FormerStore, count: (table: string) => number | undefined): void {
  const lost = [...rowCounts(store)].filter(([table, rows]) => !OWN_ROWS.includes(table) && (count(table) ?? 0) < rows)
  assert.deepEqual(lost, [])
}

/** Serves the store with new credentials, like an operator who lost theirs. */
async function serve(t: TestContext, place: { dataDir: string; databaseUrl: string | null }): Promise<void> {
  const apiKeyFor = { workspace: 'former', environment: 'production' }
  const { operatorToken, apiKey } = await recover({ ...place, operatorToken: true, apiKeyFor })
  const { dataDir, databaseUrl } = place
  const read = readConfig({ port: '0', logLevel: 'silent', dataDir, ...(databaseUrl && { databaseUrl }) }, {})
  assert.ok(read.ok)
  const server = await startServer(read.config)
  t.after(() => server.close())
  const asClient = { 'x-api-key': apiKey ?? '', 'content-type': 'application/json' }
  async function json<Body>(target: string, headers: Record<string, string>, body?: unknown): Promise<Body> {
    const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) }
    const response = await fetch(server.url + target, init)
    const text = await response.text()
    assert.ok(response.ok, `${target}: ${response.status} ${text}`)
    return JSON.parse(text) as Body
  }
  const asOperator = { authorization: `Bearer ${operatorToken}` }

  const runs = await json<{ items: { runId: string; status: string }[] }>('/openapi/v1/runs', asClient)
  const upgraded = runs.items.find(({ runId }) => runId === 'upgraded')
  assert.equal(upgraded?.status, 'FAILED')
  const timeline = await json<{ items: unknown[] }>('/openapi/v1/runs/upgraded/events', asClient)
  assert.equal(timeline.items.length, 3)
  const configuration = await json<{ policies: unknown[]; prompts: unknown[] }>('/openapi/v1/runtime-config', asClient)
  assert.deepEqual([configuration.policies.length, configuration.prompts.length], [1, 1])
  const verdict = await json<{ accepted: number }>('/openapi/v1/events/batch', asClient, [
    event({ runId: 'upgraded', eventType: 'AGENT_STEP' }),
    event({ runId: 'after the upgrade' }),
  ])
  assert.equal(verdict.accepted, 2)

  const [workspace] = (
    await json<{ items: { id: string; name: string }[] }>('/operator/v1/workspaces', asOperator)
  ).items
    .filter(({ name }) => name === 'former')
    .map(({ id }) => id)
  const people = await json<{ items: unknown[] }>(`/operator/v1/workspaces/${workspace}/operators`, asOperator)
  assert.equal(people.items.length, 1)
  const audit = await json<{ items: unknown[] }>('/operator/v1/audit', asOperator)
  assert.ok(audit.items.length > 5)
  // Ignore the durability check: the PostgreSQL of the tests does not sync its disk.
  const doctor = await json<{ ok: boolean; checks: { name: string; ok: boolean }[] }>('/operator/v1/doctor', asOperator)
  assert.deepEqual(
    doctor.checks.filter(({ ok, name }) => !ok && name !== 'durability'),
    [],
  )
}

for (const store of formerStores('sqlite')) {
  test(`a file of schema ${store.schema} keeps its rows and is served`, async (t) => {
    const directory = emptyDirectory(t)
    makeFile(store, directory)
    await (await openSqliteStorage({ directory, minFreeDiskBytes: 0, onTrouble: assert.fail })).close()
    const db = new Database(path.join(directory, STORE_FILE), { readonly: true })
    assertKept(store, (table) => db.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get())
    db.close()
    await serve(t, { dataDir: directory, databaseUrl: null })
  })
}

for (const store of formerStores('postgres')) {
  test(`a database of schema ${store.schema} keeps its rows and is served`, async (t) => {
    const { url, drop } = await databases.createEmpty()
    t.after(drop)
    await makeDatabase(store, url)
    await (await openPostgresStorage({ url })).close()
    const client = new pg.Client({ connectionString: url, options: '-c search_path=tacho' })
    await client.connect()
    const counts = new Map<string, number>()
    for (const table of rowCounts(store).keys()) {
      const { rows } = await client.query<{ count: number }>(`SELECT count(*)::int AS count FROM ${table}`)
      counts.set(table, rows[0]?.count ?? 0)
    }
    await client.end()
    assertKept(store, (table) => counts.get(table))
    await serve(t, { dataDir: emptyDirectory(t), databaseUrl: url })
  })
}

test('both engines have a store of the first schema, with rows in every table', () => {
  for (const engine of ['sqlite', 'postgres'] as const) {
    const [first] = formerStores(engine)
    assert.ok(first?.schema === 1, engine)
    assert.ok(rowCounts(first).size > 60, `${rowCounts(first).size} tables of ${engine}`)
  }
})
