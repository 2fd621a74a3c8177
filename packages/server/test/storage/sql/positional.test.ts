import assert from 'node:assert/strict'
import { test } from 'node:test'
import { positional } from '../../../src/storage/sql/sql.ts'

test('a value that is named twice is given twice, and a cast is no name', () => {
  const text = 'SELECT :seq::bigint FROM e WHERE env = :env AND (run = :run OR :run IS NULL)'
  assert.deepEqual(positional(text, { env: 'e', run: null, seq: 5, absent: undefined }), [
    'SELECT ?::bigint FROM e WHERE env = ? AND (run = ? OR ? IS NULL)',
    [5, 'e', null, null],
  ])
})

test('a statement with a list stays as it is', () => {
  const given = ["SELECT ':a' WHERE x = ?", [1]] as const
  assert.deepEqual(positional(...given), given)
})

test('a list by name has a place for each value, however many there are', () => {
  const text = 'SELECT id FROM e WHERE id IN (:ids) AND env = :env'
  for (const [ids, places] of [
    [['a', 'b'], '?, ?'],
    [['c'], '?'],
  ] as const) {
    const expected = [`SELECT id FROM e WHERE id IN (${places}) AND env = ?`, [...ids, 'e']]
    assert.deepEqual(positional(text, { env: 'e', ids }), expected)
  }
})

test('a name without a value is refused, also one that every object has', () => {
  assert.throws(() => positional('SELECT :run', {}), /no value for :run/)
  assert.throws(() => positional('SELECT :run', { run: undefined }), /no value for :run/)
  assert.throws(() => positional('SELECT :constructor', {}), /no value for :constructor/)
})

test('a value that the statement does not use is refused: it may be the environment', () => {
  assert.throws(() => positional('SELECT :run', { run: 1, env: 'e' }), /does not use :env/)
  assert.deepEqual(positional('SELECT :run', { run: 1 }), ['SELECT ?', [1]])
})
