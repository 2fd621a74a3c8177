import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasMoreValues } from '../../src/domain/json-values.ts'

test('lists, objects and commas count before a text is parsed, and what is inside texts does not', () => {
  const cases: [text: string, most: number][] = [
    ['[[],[],[]]', 7],
    ['[{},{}]', 5],
    ['[1,2,3,4]', 5],
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
