import assert from 'node:assert/strict'
import { test } from 'node:test'
import { columnOf, memberOf } from '../../../../src/storage/data/exports.ts'
import { insertRows, withJson } from '../../../../src/storage/sql/engine/rows.ts'
import { positional, selectList, type NamedParams, type Sql } from '../../../../src/storage/sql/engine/sql.ts'

test('every column and its member name each other, and a list may be in words', () => {
  for (const column of ['id', 'created_at', 'except_critical']) assert.equal(columnOf(memberOf(column)), column)
  assert.equal(memberOf('except_critical'), 'exceptCritical')
  assert.equal(selectList('id\n  created_at', 'r.'), 'r.id AS "id", r.created_at AS "createdAt"')
  assert.equal(selectList(['event_id']), 'event_id AS "eventId"')
})

test('rows become columns, JSON and numbers, in few statements', async () => {
  const run: [text: string, values: readonly unknown[]][] = []
  const sql = {
    run: (text: string, params: NamedParams) => {
      const [statement, values] = positional(text, params)
      run.push([statement.trim(), values])
      return Promise.resolve(1)
    },
  } as unknown as Sql
  const rows = [{ id: 'a', showsInput: true, events: ['x'], createdAt: 1, bytes: new Uint8Array([1]) }]
  await insertRows(sql, 'run_views', rows)
  const columns = '(id, shows_input, events, created_at, bytes)'
  const expected = `INSERT INTO run_views ${columns} VALUES (?, ?, ?, ?, ?)`
  assert.deepEqual(run, [[expected, ['a', 1, '["x"]', 1, new Uint8Array([1])]]])
  run.length = 0
  const many = Array.from({ length: 112 }, (_, id) => ({ id, name: undefined }))
  await insertRows(sql, 'agents', many)
  const sizes = run.map(([, values]) => values.length / 2)
  assert.deepEqual(sizes, [100, 10, 1, 1])
})

test('a member that is no name is refused, because it would be part of the statement', async () => {
  const sql = { run: () => assert.fail('It ran') } as unknown as Sql
  await assert.rejects(insertRows(sql, 'agents', [{ 'id) VALUES (1); --': 1 }]), /names no column/)
})

test('JSON members are read, and null stays null', () => {
  const toRow = withJson<{ id: string; actor: { name: string } | null; detail: object }>('actor', 'detail')
  assert.deepEqual(toRow({ id: 'a', actor: null, detail: '{}' }), { id: 'a', actor: null, detail: {} })
})
