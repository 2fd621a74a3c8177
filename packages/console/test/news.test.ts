import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newsOf } from '../src/runs/list/queries.ts'

const rows = (...ids: string[]) => ids.map((id) => ({ id, status: 'RUNNING' }))

test('rows stay in their places and follow their runs; what has come since is counted', () => {
  const ended = { id: 'b', status: 'COMPLETED' }
  const { items, news, gone } = newsOf(rows('a', 'b'), [...rows('z', 'a'), ended])
  assert.deepEqual(items, [...rows('a'), ended])
  assert.deepEqual([news, gone], [1, 0])
})

test('rows that new ones pushed off the page are not gone, and older rows are not new', () => {
  const pushed = newsOf(rows('a', 'b', 'c'), rows('y', 'z', 'a'))
  assert.deepEqual([pushed.news, pushed.gone], [2, 0])
  const replaced = newsOf(rows('a', 'b'), rows('x', 'y', 'z'))
  assert.deepEqual([replaced.news, replaced.gone], [3, 0])
  const older = newsOf(rows('a', 'b'), rows('a', 'b', 'c'))
  assert.deepEqual([older.news, older.gone], [0, 0])
})

test('rows that no longer match are counted while they stay', () => {
  const { items, news, gone } = newsOf(rows('a', 'b', 'c'), rows('a', 'c'))
  assert.deepEqual([items.length, news, gone], [3, 0, 1])
  assert.deepEqual(newsOf([], rows('a')), { items: [], news: 1, gone: 0 })
})
