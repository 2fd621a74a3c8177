/** Search in a JSON value, and the paths of its hits. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { searchJson } from '../src/web/text/json-search.ts'

const paths = (value: unknown, text: string) => searchJson(value, text).hits.map(({ path }) => path)

test('names and values are found in order, with paths that JavaScript reads', () => {
  const value = { input: { items: [{ id: 'W-118' }, { id: 7, 'a b': 'w-118' }] }, id: null, W: { '0': true } }
  assert.deepEqual(paths(value, ' w-118 '), ['input.items[0].id', 'input.items[1]["a b"]'])
  assert.deepEqual(paths(value, 'id'), ['input.items[0].id', 'input.items[1].id', 'id'])
  assert.deepEqual(paths(value, 'true'), ['W["0"]'])
  assert.deepEqual(paths(['x'], 'x'), ['[0]'])
  assert.deepEqual(paths(value, 'nothing of it'), [])
})

test('a hostile value costs a bounded search', () => {
  const deep: unknown = JSON.parse(`${'['.repeat(5_000)}1${']'.repeat(5_000)}`)
  assert.equal(searchJson(deep, '1').hits.length, 1)
  const wide = Array.from({ length: 200_000 }, (_, n) => n)
  const { hits, isCut } = searchJson(wide, '199999')
  assert.deepEqual([hits, isCut], [[], true])
  const many = searchJson(
    Array.from({ length: 100 }, () => 'same'),
    'same',
  )
  assert.deepEqual([many.hits.length, many.isCut], [50, true])
})
