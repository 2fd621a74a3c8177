import assert from 'node:assert/strict'
import { test } from 'node:test'
import { movedOf, newsOf, steadyRows } from '../src/web/ui/steady-rows.ts'

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

test('a row that moves to the front counts as moved, and the rows that it passes do not', () => {
  assert.equal(movedOf(rows('a', 'b', 'c'), rows('c', 'a', 'b')), 1)
  assert.equal(movedOf(rows('a', 'b', 'c'), rows('c', 'b', 'a')), 2)
  assert.equal(movedOf(rows('a', 'b', 'c'), rows('x', 'a', 'c', 'z')), 0)
})

test('a steady list takes no new row, no other order and no disappearance, and counts them', () => {
  const shown = rows('a', 'b', 'c')
  const ended = { id: 'c', status: 'COMPLETED' }
  const { items, changed } = steadyRows(shown, [...rows('x'), ended, ...rows('a')], new Set())
  assert.deepEqual(items, [...rows('a', 'b'), ended])
  // x is new, b is gone, and c moved.
  assert.equal(changed, 3)
  assert.deepEqual(steadyRows(shown, rows('a', 'b', 'c', 'older'), new Set()), {
    items: rows('a', 'b', 'c', 'older'),
    changed: 0,
  })
})

test('what the person took from a steady list leaves it at once, and comes back to its place', () => {
  const shown = rows('a', 'b', 'c')
  const removed = new Set(['b'])
  assert.deepEqual(steadyRows(shown, rows('a', 'c'), removed), { items: rows('a', 'c'), changed: 0 })
  assert.deepEqual(steadyRows(shown, rows('a', 'b', 'c'), removed), { items: shown, changed: 0 })
  assert.deepEqual(steadyRows(shown, rows('x', 'y'), new Set(['a', 'b', 'c'])), { items: rows('x', 'y'), changed: 0 })
})
