import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { prefixRange } from '../../../../src/storage/sql/engine/rows.ts'

const before = (one: string, other: string) => Buffer.compare(Buffer.from(one), Buffer.from(other)) < 0

test('a text is within the range of a prefix if and only if it begins with it', () => {
  const character = fc.constantFrom(
    'a',
    'b',
    '%',
    '_',
    '\u007f',
    '\ud7ff',
    '\ue000',
    '\uffff',
    '\u{10000}',
    '\u{10ffff}',
  )
  const texts = fc.string({ unit: character, maxLength: 4 })
  const prefixes = fc.string({ unit: character, minLength: 1, maxLength: 3 })
  const check = (prefix: string, text: string) => {
    const { from, below } = prefixRange(prefix)
    const isWithin = !before(text, from) && (below === null || before(text, below))
    assert.equal(isWithin, text.startsWith(prefix), JSON.stringify([prefix, text]))
  }
  fc.assert(fc.property(prefixes, texts, check), { numRuns: 2_000 })
  fc.assert(
    fc.property(prefixes, texts, (prefix, rest) => check(prefix, prefix + rest)),
    { numRuns: 500 },
  )
})

test('after the largest code point the range ends at the next one of the character before it; after only such there is no end', () => {
  assert.deepEqual(prefixRange('run-1'), { from: 'run-1', below: 'run-2' })
  assert.deepEqual(prefixRange('a\u{10ffff}'), { from: 'a\u{10ffff}', below: 'b' })
  assert.deepEqual(prefixRange('\ud7ff'), { from: '\ud7ff', below: '\ue000' })
  assert.deepEqual(prefixRange('\u{10ffff}\u{10ffff}'), { from: '\u{10ffff}\u{10ffff}', below: null })
})
