import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { inputHash } from '../src/input/input-hash.ts'

const byNode = (text: string) => createHash('sha256').update(text).digest('hex')

test('the hash is SHA-256 of UTF-8, at every length', () => {
  const hashOf = (text: string) => byNode(`["tacho-input-1","t",${JSON.stringify(text)}]`)
  const wellFormed = fc.string({ unit: 'grapheme', maxLength: 300 })
  fc.assert(fc.property(wellFormed, (text) => assert.equal(inputHash('t', text), hashOf(text))))
  for (const text of ['', 'x'.repeat(64), 'é😀'.repeat(50_000)]) assert.equal(inputHash('t', text), hashOf(text))
})

test('an input hash covers the RFC 8785 text of version, tool and input, so other languages can compute it', () => {
  const text = '["tacho-input-1","refund",{"amount":1500,"note":null,"tags":["b","a"],"é":"\\u0001"}]'
  const input = { tags: ['b', 'a'], é: '\u0001', note: null, amount: 1500.0 }
  assert.equal(inputHash('refund', input), byNode(text))
  assert.equal(inputHash('refund', {}), byNode('["tacho-input-1","refund",{}]'))
})

test('the hashes in the guide are right', () => {
  const guide = readFileSync(new URL('../../../docs/approvals.md', import.meta.url), 'utf8')
  const rows = [...guide.matchAll(/^\| `(\w+)` \| `(\{.*\})` \| `([0-9a-f]{64})` \|$/gm)]
  assert.equal(rows.length, 2)
  for (const [, tool = '', input = '', hash] of rows) assert.equal(inputHash(tool, JSON.parse(input)), hash)
})

test('a hash does not change between releases: approvals outlive them', () => {
  assert.equal(
    inputHash('refund', { amount: 1500 }),
    'b7bcfdeff374b0f66a2f0c0d22c52a39333a53df25ced52909294fc21f9d8b70',
  )
})

test('key order and absent values do not matter; everything else does', () => {
  assert.equal(inputHash('t', { a: 1, b: { c: 2, d: 3 } }), inputHash('t', { b: { d: 3, c: 2 }, a: 1 }))
  assert.equal(inputHash('t', { a: 1, b: undefined }), inputHash('t', { a: 1 }))
  assert.equal(inputHash('t', undefined), inputHash('t', {}))
  assert.equal(inputHash('t', null), inputHash('t', {}))
  assert.equal(inputHash('t', { a: -0 }), inputHash('t', { a: 0 }))
  const different = [
    inputHash('t', { a: 1 }),
    inputHash('u', { a: 1 }),
    inputHash('t', { a: '1' }),
    inputHash('t', { a: null }),
    inputHash('t', { a: [1] }),
    inputHash('t', { a: { 0: 1 } }),
    inputHash('t","', {}),
    inputHash('t', []),
    inputHash('t', ''),
  ]
  assert.equal(new Set(different).size, different.length)
})

test('every JSON input has one hash, also after a round trip', () => {
  fc.assert(
    fc.property(fc.jsonValue({ depthSize: 'large' }), (value) => {
      assert.equal(inputHash('t', value), inputHash('t', JSON.parse(JSON.stringify(value))))
    }),
  )
})

class Rootless {
  get amount() {
    return 500
  }
}
Object.setPrototypeOf(Rootless.prototype, null)

test('values that are not plain JSON are rejected, with their path', () => {
  const cycle: Record<string, unknown> = {}
  cycle['self'] = cycle
  for (const [input, message] of [
    [{ when: [{ at: new Date() }] }, 'input.when[0].at is a Date, not plain JSON'],
    [{ a: NaN }, 'input.a is NaN, which JSON does not have'],
    [{ a: [1, -Infinity] }, 'input.a[1] is -Infinity, which JSON does not have'],
    [{ a: new Map() }, 'input.a is a Map, not plain JSON'],
    [{ a: Object.create({ amount: 500 }) }, 'input.a is a Object, not plain JSON'],
    [
      { a: Object.create(Object.assign(Object.create(null), { amount: 500 })) },
      'input.a is a host object, not plain JSON',
    ],
    [{ a: Object.create(Rootless.prototype) }, 'input.a is a Rootless, not plain JSON'],
    [{ a: 1n }, 'input.a is bigint, not plain JSON'],
    [{ toJSON: () => 1 }, 'input.toJSON is function, not plain JSON'],
    [{ a: Object.defineProperty({}, 'toJSON', { value: () => 2 }) }, 'input.a has a method toJSON'],
    [{ a: Object.assign([1], { toJSON: () => [2] }) }, 'input.a has a method toJSON'],
    [
      { a: Object.create(Object.create(null, { toJSON: { value: () => 2 } })) as unknown },
      'input.a is a host object, not plain JSON',
    ],
    [[undefined], 'input[0] is undefined, not plain JSON'],
    [Symbol('a'), 'input is symbol, not plain JSON'],
    [cycle, 'input is nested more than 200 levels deep'],
    [{ a: '\ud800' }, 'input or the tool name is not well-formed Unicode'],
    [{ '\ud800': 1 }, 'input or the tool name is not well-formed Unicode'],
  ] as const) {
    assert.throws(() => inputHash('t', input), { name: 'NotPlainJson', message })
  }
  assert.throws(() => inputHash('\ud800', {}), TypeError)
})

test('an input too large for conditions still has a hash', () => {
  assert.match(inputHash('t', { list: Array(50_000).fill(0), text: 'x'.repeat(1_000_000) }), /^[0-9a-f]{64}$/)
})
