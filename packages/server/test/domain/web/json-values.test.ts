import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasMoreValues } from '../../../src/domain/web/json-body.ts'

test('lists, objects, names and commas count before a text is parsed, and what is inside texts does not', () => {
  const cases: [text: string, most: number][] = [
    ['[[],[],[]]', 7],
    ['[{},{}]', 5],
    ['[1,2,3,4]', 5],
    ['{"a":1,"b":{"c":2}}', 7],
    [String.raw`["[,{\"[,{","\\",3]`, 4],
  ]
  for (const [text, most] of cases) {
    assert.doesNotThrow(() => JSON.parse(text))
    // The shortest texts are never too many, so spaces make them longer.
    const bytes = Buffer.from(text + ' '.repeat(100))
    assert.equal(hasMoreValues(bytes, most), false, text)
    assert.equal(hasMoreValues(bytes, most - 1), true, text)
  }
})

test('names do not count where each item has the same ones', () => {
  const bytes = Buffer.from(`[${'{"key":"a","value":1},'.repeat(10)}0]`)
  assert.equal(hasMoreValues(bytes, 32, { names: false }), false)
  assert.equal(hasMoreValues(bytes, 51), true)
})
