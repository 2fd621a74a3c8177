/** Every table of the schema files is described in tables.ts. Other tests compare these files with the real schemas. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import path from 'node:path'
import Database from 'better-sqlite3'
import { columnsOf, EXPORTED_TABLES } from '../../../src/storage/data/exports.ts'
import { TABLES, type NamedTable } from '../../../src/storage/engine/tables.ts'
import { openStore, temporaryDirectory } from '../sqlite/temporary.ts'
import { auditEntry } from '../suite/issues/issue-sample.ts'
import { newId, NOON } from '../suite/sample.ts'

const DESCRIBED = new Map<string, NamedTable>(TABLES.map((table) => [table.name, table]))

const SCHEMAS = {
  sqlite: { file: '../sqlite/schema.sql', table: /^CREATE TABLE "?(\w+)/gm },
  postgres: { file: '../postgres/schema.txt', table: /^(\w+)$/gm },
}

const STALE = 'If a migration makes them, the snapshot is stale: TACHO_WRITE_SNAPSHOTS=1 npm test -- sqlite/migrate'

const tablesOf = (engine: keyof typeof SCHEMAS): string[] => {
  const { file, table } = SCHEMAS[engine]
  const text = readFileSync(new URL(file, import.meta.url), 'utf8')
  return [...text.matchAll(table)].map(([, name = '']) => name)
}

test('tables.ts has every table of both engines', () => {
  for (const engine of ['sqlite', 'postgres'] as const) {
    const tables = tablesOf(engine)
    assert.ok(tables.length > 30, `${tables.length} tables of ${engine}`)
    assert.deepEqual(
      tables.filter((table) => !DESCRIBED.has(table)),
      [],
      `${engine}: describe these tables in storage/engine/tables.ts`,
    )
  }
})

test('no declared table is missing from the schemas', () => {
  const known = new Set([...tablesOf('sqlite'), ...tablesOf('postgres'), 'copies'])
  assert.deepEqual(
    [...DESCRIBED.keys()].filter((table) => !known.has(table)),
    [],
  )
})

test('a table with an environment is removed with it, except the audit log', () => {
  const text = readFileSync(new URL(SCHEMAS.sqlite.file, import.meta.url), 'utf8')
  const withEnvironment = [...text.matchAll(/^CREATE TABLE "?(\w+)[^;]*?^ {2}environment_id /gm)].map(
    ([, name = '']) => name,
  )
  assert.deepEqual(
    withEnvironment.filter((table) => DESCRIBED.get(table)?.environment === 'stays'),
    ['audit_log'],
  )
})

test('a deleted environment leaves no row in any table, and every row of others stays', async (t) => {
  const directory = temporaryDirectory(t)
  const file = path.join(directory, 'tacho.db')
  const [workspaceId, gone, kept] = [newId(), newId(), newId()]
  const first = await openStore(t, { directory })
  await first.createWorkspace({ id: workspaceId, name: 'acme', createdAt: NOON }, [])
  for (const id of [gone, kept]) await first.createEnvironment({ id, workspaceId, name: id, createdAt: NOON }, [])
  await first.changeEnvironment(gone, { archivedAt: NOON }, [])
  await first.close()
  fillTables(file, [gone, kept])

  const storage = await openStore(t, { directory })
  await storage.orderDeletion(gone, NOON, { ...auditEntry(gone, 'environment.delete'), workspaceId })
  for (let table: number | null = 0; table !== null;) {
    table = await storage.deleteFromEnvironment(gone, { table, most: 2 }, NOON)
  }
  await storage.close()
  const rowsOf = (environmentId: string) => [...countRows(file, environmentId)].filter(([, rows]) => rows > 0)
  assert.deepEqual(
    rowsOf(gone).map(([table]) => table),
    ['audit_log'],
  )
  const all = [...tablesWithEnvironments(file).keys()]
  assert.ok(all.length > 40, `${all.length} tables`)
  assert.deepEqual(
    rowsOf(kept).map(([table]) => table),
    all,
  )
})

type Columns = { name: string; type: string; pk: number }[]

function tablesWithEnvironments(file: string): Map<string, Columns> {
  const db = new Database(file, { readonly: true })
  const names = db.prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").pluck()
  const tables = names.all().map((name): [string, Columns] => {
    return [name, db.prepare<[], Columns[number]>(`SELECT name, type, pk FROM pragma_table_info('${name}')`).all()]
  })
  db.close()
  return new Map(tables.filter(([, columns]) => columns.some(({ name }) => name === 'environment_id')))
}

/** On SQLite, events have the number of their environment. */
const NUMBER = '(SELECT number FROM environment_numbers WHERE environment_id = ?)'
const idOf = (table: string) => (table === 'events' ? NUMBER : '?')

/** Three rows of each environment in each table, or one where it is the whole key. Runs have the events of their number. */
function fillTables(file: string, environmentIds: string[]): void {
  const tables = tablesWithEnvironments(file)
  const db = new Database(file)
  db.pragma('foreign_keys = OFF')
  const inOrder = [...tables].toSorted(
    ([a], [b]) => Number(b === 'environment_numbers') - Number(a === 'environment_numbers'),
  )
  for (const [table, columns] of inOrder) {
    for (const [n, environmentId] of environmentIds.entries()) {
      for (let row = 1; row <= 3; row++) {
        const values = columns.map(({ name, type }) => {
          if (name === 'environment_id') return environmentId
          // The removal of runs parses this text.
          if (name === 'result') return '{"hitRuns":[]}'
          // Rows of `removed_runs` are of earlier runs, so they have other numbers.
          const number = 10 * n + row + (table === 'removed_runs' ? 5 : 0)
          return type === 'INTEGER' || type === 'REAL'
            ? number
            : type === 'BLOB'
              ? Buffer.from([number])
              : `${name} ${number}`
        })
        const places = columns.map(({ name }) => (name === 'environment_id' ? idOf(table) : '?'))
        db.prepare(`INSERT OR IGNORE INTO ${table} VALUES (${places.join(', ')})`).run(values)
      }
    }
  }
  db.close()
}

function countRows(file: string, environmentId: string): Map<string, number> {
  const tables = tablesWithEnvironments(file)
  const db = new Database(file, { readonly: true })
  const counts = [...tables.keys()].map((table): [string, number] => {
    const text = `SELECT count(*) FROM ${table} WHERE environment_id = ${idOf(table)}`
    return [table, db.prepare<[string], number>(text).pluck().get(environmentId) ?? 0]
  })
  db.close()
  return new Map(counts)
}

test('tables.ts has every column of the tables that it describes, and knows which are numbers and which can be null', () => {
  const db = new Database(':memory:')
  const schema = readFileSync(new URL(SCHEMAS.sqlite.file, import.meta.url), 'utf8')
  for (const { name, columns, numbers, nullable } of Object.values(EXPORTED_TABLES)) {
    db.exec(schema.match(new RegExp(`^CREATE TABLE "?${name}"? [^]*?^\\)[^;]*;`, 'm'))?.[0] ?? assert.fail(name))
    const text = 'SELECT name, type, "notnull" AS required, pk FROM pragma_table_info(?)'
    const all = db.prepare<[string], { name: string; type: string; required: 0 | 1; pk: number }>(text).all(name)
    const named = (some: typeof all) => some.map((column) => column.name).toSorted()
    const exported = all.filter((column) => columns.includes(column.name))
    const table = DESCRIBED.get(name) ?? assert.fail(name)
    const { read, computed } = columnsOf(table)
    const known = ['environment_id', 'workspace_id', ...read, ...computed, ...(table.only?.sqlite ?? [])]
    const forgotten = all.filter((column) => !known.includes(column.name))
    assert.deepEqual(
      named(forgotten),
      [],
      `${name}: say in storage/engine/tables.ts whether an export has these columns`,
    )
    const missing = columns.filter((column) => !all.some((one) => one.name === column))
    assert.deepEqual(missing, [], `${name}: the snapshot ${SCHEMAS.sqlite.file} has no such columns. ${STALE}`)
    assert.deepEqual(
      named(exported.filter(({ type }) => type === 'INTEGER' || type === 'REAL')),
      numbers.toSorted(),
      name,
    )
    assert.deepEqual(
      named(exported.filter(({ required, pk }) => required === 0 && pk === 0)),
      nullable.toSorted(),
      name,
    )
  }
  db.close()
})
