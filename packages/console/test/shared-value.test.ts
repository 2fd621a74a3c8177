/** The earlier result that an approval's input depends on. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { innerJson, plainValue, sharedValue } from '../src/approvals/input-values.ts'

const shared = (input: unknown, result: unknown) => sharedValue(JSON.stringify(input), JSON.stringify(result))

test('the longest whole value that the result has too is named', () => {
  assert.equal(shared({ order: 'A-4711', customer: 'ana.silva' }, { id: 'A-4711', by: 'ana.silva' }), 'ana.silva')
  assert.equal(shared({ amount: 120.5, order: 4711 }, { total: 120.5 }), '120.5')
  assert.equal(shared({ to: 'a "b" c' }, 'said: a "b" c.'), String.raw`a \"b\" c`)
})

test('parts of words, short values and names of fields are not shared', () => {
  assert.equal(shared({ order: '4711' }, { id: '14711', other: '47112' }), null)
  assert.equal(shared({ amount: 500 }, { total: 500 }), null)
  assert.equal(shared({ customer: true }, { customer: true }), null)
})

test('a result that is JSON in a text is read as its JSON; other texts stay, to the last digit', () => {
  assert.equal(innerJson(JSON.stringify('{"total": 917.0, "id": "A-1"}')), '{"total": 917.0, "id": "A-1"}')
  assert.equal(innerJson(JSON.stringify(' [1, 2]\n')), '[1, 2]')
  for (const json of ['{"a":1}', '"917"', '"He said \\"no\\""', '"{not JSON}"', '"{\\"a\\":1', '12'])
    assert.equal(innerJson(json), json)
  assert.equal(innerJson(null), null)
  assert.equal(plainValue(String.raw`a \"b\" c`), 'a "b" c')
  assert.equal(plainValue(String.raw`cut \u00`), String.raw`cut \u00`)
})

test('texts that are cut off are searched as far as they go', () => {
  assert.equal(sharedValue('{"a":"ORDER-1","b":"cut', '{"id":"ORDER-1","x":"cu'), 'ORDER-1')
})

test('many values and long results take time in proportion', () => {
  const values = Array.from({ length: 5_000 }, (_, at) => `value-${at}`)
  const started = performance.now()
  assert.equal(shared(values, 'x'.repeat(65_000)), null)
  assert.ok(performance.now() - started < 10_000)
})
