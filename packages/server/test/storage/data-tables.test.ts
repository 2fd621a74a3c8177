/** Every table says how its rows are removed. The schemas are the reviewed ones, which other tests compare with the real. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { DATA_TABLES } from '../../src/storage/sql/data-tables.ts'

const SCHEMAS = {
  sqlite: { file: 'sqlite/schema.sql', table: /^CREATE TABLE "?(\w+)/gm },
  postgres: { file: 'postgres/schema.txt', table: /^(\w+)$/gm },
}

const tablesOf = (engine: keyof typeof SCHEMAS): string[] => {
  const { file, table } = SCHEMAS[engine]
  const text = readFileSync(new URL(file, import.meta.url), 'utf8')
  return [...text.matchAll(table)].map(([, name = '']) => name)
}

test('every table of both engines says how its rows are removed with a run and with an environment', () => {
  for (const engine of ['sqlite', 'postgres'] as const) {
    const tables = tablesOf(engine)
    assert.ok(tables.length > 30, `${tables.length} tables of ${engine}`)
    assert.deepEqual(
      tables.filter((table) => !Object.hasOwn(DATA_TABLES, table)),
      [],
      `${engine}: declare these tables in storage/sql/data-tables.ts`,
    )
  }
})

test('no declared table is missing from the schemas', () => {
  const known = new Set([...tablesOf('sqlite'), ...tablesOf('postgres'), 'copies'])
  assert.deepEqual(
    Object.keys(DATA_TABLES).filter((table) => !known.has(table)),
    [],
  )
})

test('a table with an environment is removed with it, except the audit log', () => {
  const text = readFileSync(new URL(SCHEMAS.sqlite.file, import.meta.url), 'utf8')
  const withEnvironment = [...text.matchAll(/^CREATE TABLE "?(\w+)[^;]*?^ {2}environment_id /gm)].map(
    ([, name = '']) => name,
  )
  assert.deepEqual(
    withEnvironment.filter((table) => DATA_TABLES[table]?.environment === 'stays'),
    ['audit_log'],
  )
})
