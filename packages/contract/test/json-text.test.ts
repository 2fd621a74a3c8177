import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { anyCharacter } from './any-character.ts'
import { indented, memberText } from '../src/record/json-text.ts'

test('a member keeps its exact text', () => {
  const payload = '{ "big":9007199254740993, "one":1.0,"a":1,"a":2,"10":[],"2":"\\u00e9 } \\" ]"}'
  const text = `{"id":"payload","x":{"payload":1},"payload":${payload},"last":null}`
  assert.equal(memberText(text, 'payload'), payload)
  assert.equal(memberText(text, 'last'), 'null')
  assert.equal(memberText(text, 'absent'), null)
  assert.equal(memberText('{}', 'payload'), null)
  assert.equal(memberText('{"payload":1,"payload":[2,{"a":3}]}', 'payload'), '[2,{"a":3}]')
})

test('any member of any object is found, and indenting changes no value', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: anyCharacter }), fc.jsonValue()), (value) => {
      for (const text of [JSON.stringify(value), JSON.stringify(value, null, 1)]) {
        assert.equal(JSON.stringify(JSON.parse(indented(text))), JSON.stringify(value))
        for (const [key, member] of Object.entries(value)) {
          assert.equal(JSON.stringify(JSON.parse(memberText(text, key) ?? '')), JSON.stringify(member))
        }
      }
    }),
  )
})

test('numbers keep every digit when indented', () => {
  assert.equal(indented('{"a":[1.0,-0,1e400],"b":{}}'), '{\n  "a": [\n    1.0,\n    -0,\n    1e400\n  ],\n  "b": {}\n}')
})

test('a deep text that would become too long when indented stays as it is', () => {
  const deep = '['.repeat(200) + '1,'.repeat(10_000) + '1' + ']'.repeat(200)
  assert.equal(indented(deep, 100_000), deep)
  assert.ok(indented(deep).length > 4_000_000)
  assert.equal(indented('[1]', 7), '[\n  1\n]')
})
