import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { payloadSlices, valuesAt } from '../../../src/domain/record/json-slices.ts'

const payloadsOf = (text: string): (string | null)[] => {
  JSON.parse(text)
  return payloadSlices(text).map((slice) => slice && text.slice(slice.start, slice.end))
}

test('a payload is found as the exact text sent', () => {
  const texts = [
    '{"a":9007199254740993,"b":1.0,"c":-0,"10":1,"2":2}',
    '{"__proto__":{"x":1},"a":1,"a":2}',
    '{ "s" : "\\u0041\\n\\\\\\" }{][,:" , "n" : [ ] }',
    '{}',
    'null',
    '[1,2]',
    '"text"',
    '1e300',
    'true',
  ]
  for (const payload of texts) {
    assert.deepEqual(payloadsOf(`[{"eventId":"x","payload":${payload},"label":"l"}]`), [payload])
    assert.deepEqual(payloadsOf(` [ { "payload" : ${payload} } , { "payload":${payload}\n} ]`), [payload, payload])
  }
})

test('only the top level of an item is searched, and only for that key', () => {
  assert.deepEqual(payloadsOf('[{"a":{"payload":{"x":1}},"payloads":{},"xpayload":1}]'), [null])
  assert.deepEqual(payloadsOf('[{"a":"\\"payload\\":{}","b":["payload",{"payload":1}]}]'), [null])
  assert.deepEqual(payloadsOf('[1,"payload",null,[{"payload":{}}],{}]'), [null, null, null, null, null])
  assert.deepEqual(payloadsOf('[]'), [])
})

test('of duplicate keys the last one counts, escaped ones too, as in JSON.parse', () => {
  assert.deepEqual(payloadsOf('[{"payload":{"a":1},"payload":{"b":2}}]'), ['{"b":2}'])
  assert.deepEqual(payloadsOf('[{"payload":{"a":1},"p\\u0061yload":{"b":2}}]'), ['{"b":2}'])
  assert.deepEqual(payloadsOf('[{"p\\u0061yloax":{"a":1}}]'), [null])
})

test('the nesting of a payload is counted, however deep', () => {
  const levels = (payload: string) => payloadSlices(`[{"payload":${payload}}]`)[0]?.levels
  assert.equal(levels('1'), 0)
  assert.equal(levels('{}'), 1)
  assert.equal(levels('{"a":[],"b":{"c":[1]}}'), 3)
  assert.equal(levels('{"a":'.repeat(50_000) + '1' + '}'.repeat(50_000)), 50_000)
})

test('any JSON, with any spacing, gives what JSON.parse gives', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ before: fc.jsonValue(), payload: fc.jsonValue(), after: fc.jsonValue() })),
      fc.constantFrom(undefined, 1, 2, '\t'),
      (items, space) => {
        const text = JSON.stringify(items, null, space)
        const found = payloadsOf(text).map((payload): unknown => JSON.parse(payload ?? 'null'))
        assert.deepEqual(
          found,
          (JSON.parse(text) as typeof items).map((item) => item.payload),
        )
      },
    ),
  )
})

test('values are found under keys, through lists, and under every duplicate key', () => {
  const at = (text: string, ...keys: string[]) => valuesAt(text, keys).toSorted()
  assert.deepEqual(at('{"user":{"id":"a"},"user":{"id":1.0,"id":"b"}}', 'user', 'id'), ['"a"', '"b"', '1.0'])
  assert.deepEqual(at(' { "us\\u0065r" : [ { "id" : [ [ 1 ] , 2 ] } , 3 , {"id":{}} ] } ', 'user', 'id'), [
    '1',
    '2',
    '{}',
  ])
  assert.deepEqual(at('{"a":{"user":{"id":"a"}},"user":"b","user":null}', 'user', 'id'), [])
  assert.deepEqual(at('{}', 'user'), [])
  // A key of six characters, and the escape of another key that is written like it.
  assert.deepEqual(at('{"\\u0041":1,"\\\\u0041":2,"A":3}', '\\u0041'), ['2'])
})

test('values under keys are those that JSON.parse finds, if no key is twice in an object', () => {
  const expected = (value: unknown, [key, ...rest]: string[]): unknown[] => {
    if (Array.isArray(value)) return value.flatMap((item) => expected(item, key === undefined ? [] : [key, ...rest]))
    if (key === undefined) return [value]
    const isObject = typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    return isObject ? expected((value as Record<string, unknown>)[key], rest) : []
  }
  const tree = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 5, withCrossShrink: true },
      fc.constantFrom('x', '"', 1, null),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('a', 'b', '"'), tie('value'), { maxKeys: 3 }),
    ),
  })).value
  fc.assert(
    fc.property(tree, fc.array(fc.constantFrom('a', 'b', '"'), { minLength: 1, maxLength: 3 }), (value, keys) => {
      const found = valuesAt(JSON.stringify(value, null, 1), keys).map((text) => JSON.stringify(JSON.parse(text)))
      const sought = expected(value, keys).map((one) => JSON.stringify(one))
      assert.deepEqual(found.toSorted(), sought.toSorted())
    }),
  )
})
