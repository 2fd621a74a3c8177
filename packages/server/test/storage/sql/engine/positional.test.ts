import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conditionsGiven, positional } from '../../../../src/storage/sql/engine/sql.ts'

test('a value that is named twice is given twice, and neither a cast nor JSON is a name', () => {
  const text = 'SELECT :seq::bigint, \'{"erased":true}\' FROM e WHERE env = :env AND (run = :run OR :run IS NULL)'
  assert.deepEqual(positional(text, { env: 'e', run: null, seq: 5, absent: undefined }), [
    'SELECT ?::bigint, \'{"erased":true}\' FROM e WHERE env = ? AND (run = ? OR ? IS NULL)',
    [5, 'e', null, null],
  ])
})

test('rows by name are the rows of VALUES', () => {
  const rows = [
    ['a', 1],
    ['b', 2],
  ]
  const bound = positional('SELECT * FROM (VALUES :rows) AS r WHERE env = :env', { rows, env: 'e' })
  assert.deepEqual(bound, ['SELECT * FROM (VALUES (?, ?), (?, ?)) AS r WHERE env = ?', ['a', 1, 'b', 2, 'e']])
})

test('only the conditions whose values are given are kept', () => {
  const filters = ['env = :env', 'state = :state', '(at, id) > (:at, :id)', 'removed IS NULL']
  assert.equal(conditionsGiven(filters, { env: 'e', at: 0, id: null }), 'env = :env AND removed IS NULL')
  assert.equal(conditionsGiven(filters, { env: 'e', state: '', at: 0, id: 'x' }), filters.join(' AND '))
  assert.equal(conditionsGiven(['state = :state'], { state: undefined }), 'true')
})

test('a statement without values stays as it is', () => {
  assert.deepEqual(positional('SELECT 1', {}), ['SELECT 1', []])
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
