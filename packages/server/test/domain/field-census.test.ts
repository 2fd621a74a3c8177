import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fieldCensus } from '../../src/domain/field-census.ts'

test('a field is found where the condition would find it, and nowhere else', () => {
  const census = fieldCensus([['a', 'b'], ['list', 0, 'price'], ['odd key'], ['toString'], ['__proto__']], true)
  const inputs = [
    '{"a":{"b":1},"list":[{"price":2.5}],"odd key":true,"toString":"x","__proto__":null}',
    '{"a":{"b":null},"list":[{}],"odd key":[]}',
    '{"a":"b","list":{"0":{"price":1}}}',
    '{"a":["b"],"list":"x"}',
    '"b"',
    '[{"b":1}]',
    'null',
  ]
  for (const text of inputs) census.count(JSON.parse(text) ?? undefined)
  assert.deepEqual(census.fields(), [
    { field: 'tool.input.a.b', recorded: 2, types: { double: 1, null: 1 } },
    { field: 'tool.input.list[0].price', recorded: 1, types: { double: 1 } },
    { field: 'tool.input["odd key"]', recorded: 2, types: { bool: 1, list: 1 } },
    { field: 'tool.input.toString', recorded: 1, types: { string: 1 } },
    { field: 'tool.input.__proto__', recorded: 1, types: { null: 1 } },
  ])
})

test('nothing is warned of without calls, nor of an input that the condition does not read', () => {
  const census = fieldCensus([['a']], true)
  assert.deepEqual(census.warnings(), [])
  const none = fieldCensus([], false)
  none.count(undefined)
  assert.deepEqual(none.warnings(), [])
})
