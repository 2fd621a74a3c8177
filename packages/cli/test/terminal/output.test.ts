import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { printableJson } from '@tacho/contract/engine/shown-text.ts'
import { anyCharacter } from '../../../contract/test/any-character.ts'
import { printable, spokenBytes, spokenNumber } from '../../src/engine/output.ts'

test('text of clients cannot control a terminal', () => {
  assert.equal(printable('a\u001b[2Jb\nc\u0007\u009b\u202e'), 'a\\u001b[2Jb\\nc\\u0007\\u009b\\u202e')
  assert.equal(printable('plain, ünïcode, 日本, 👍'), 'plain, ünïcode, 日本, 👍')
  fc.assert(
    fc.property(
      fc.string({ unit: anyCharacter }),
      (text) => !/[\p{Cc}\u2028\u2029\u202a-\u202e]/u.test(printable(text)),
    ),
  )
})

test('JSON cannot control a terminal either, and keeps its value', () => {
  const C1_AND_DIRECTIONS = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/u
  const hostile = fc.string({
    unit: fc.constantFrom('a', '\\', '"', '\n', '\u001b', '\u007f', '\u009b', '\u202e', '\u2069'),
  })
  const any = fc.oneof(hostile, fc.string({ unit: anyCharacter }))
  fc.assert(
    fc.property(fc.dictionary(any, fc.oneof(any, fc.jsonValue())), fc.constantFrom(0, 2, '\t'), (value, indent) => {
      const sent = JSON.stringify(value, null, indent)
      const printed = printableJson(sent)
      assert.doesNotMatch(printed, C1_AND_DIRECTIONS)
      assert.deepEqual(JSON.parse(printed), JSON.parse(sent))
    }),
  )
})

test('numbers and sizes are the same in every locale', () => {
  assert.deepEqual([0, 1234567, 0.000000001].map(spokenNumber), ['0', '1,234,567', '0.000000001'])
  const byIntl = (value: number) => value.toLocaleString('en-US', { maximumFractionDigits: 9 })
  const unsigned = (text: string) => text.replace(/^-0$/, '0')
  const numbers = fc.oneof(
    fc.double(),
    fc.maxSafeInteger(),
    fc.double({ min: -100, max: 1e7 }),
    fc.tuple(fc.nat(10_000), fc.nat(12)).map(([digits, power]) => digits / 10 ** power),
    fc.nat(20_000).map((count) => count * 0.0031),
  )
  fc.assert(
    fc.property(numbers, (value) => unsigned(spokenNumber(value)) === unsigned(byIntl(value))),
    { numRuns: 20_000 },
  )
  assert.deepEqual([0, 1023, 1024, 5 * 1024 ** 3].map(spokenBytes), ['0 B', '1023 B', '1.0 KiB', '5.0 GiB'])
})
