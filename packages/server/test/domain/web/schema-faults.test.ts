import assert from 'node:assert/strict'
import { test } from 'node:test'
import Type, { type TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { FAULTS_MAX, faultLine, schemaFaults, sizeFaults } from '../../../src/domain/web/schema-faults.ts'

const faultsOf = (schema: TSchema, value: unknown) => schemaFaults(schema, Compile(schema).Errors(value))
const lineOf = (schema: TSchema, value: unknown) => faultLine(faultsOf(Type.Object({ a: schema }), { a: value }))

test('each kind of fault is a sentence with its limits', () => {
  const nullableNumber = Type.Unsafe({ type: ['integer', 'null'], minimum: 2, maximum: 5 })
  for (const [schema, value, sentence] of [
    [Type.Enum(['RED', 'GREEN']), 'BLUE', 'a must be one of RED, GREEN'],
    [Type.Integer({ minimum: 1, maximum: 100 }), 101, 'a must be a whole number between 1 and 100'],
    [Type.Integer({ minimum: 1, maximum: 100 }), 'text', 'a must be a whole number between 1 and 100'],
    [nullableNumber, 1, 'a must be a whole number between 2 and 5'],
    [Type.Number({ minimum: 0 }), -1, 'a must be a number of at least 0'],
    [Type.Number({ maximum: 9 }), 10, 'a must be a number of at most 9'],
    [Type.String({ minLength: 1 }), '', 'a must not be empty'],
    [Type.String({ minLength: 2, maxLength: 3 }), 'text', 'a must have 2 to 3 characters'],
    [Type.String({ maxLength: 3 }), 'text', 'a must have at most 3 characters'],
    [Type.Array(Type.String(), { maxItems: 1 }), ['x', 'y'], 'a must have at most 1 items'],
    [
      Type.String({ pattern: '^x$', description: 'The letter x' }),
      'y',
      'a does not match its description: The letter x',
    ],
    [Type.String({ format: 'uuid' }), 'y', 'a must be a UUID'],
    [Type.Unsafe({ type: ['string', 'null'] }), 1, 'a must be a string or null'],
    [Type.Object({ b: Type.Boolean() }), { b: 1 }, 'a/b must be true or false'],
    [Type.Object({ b: Type.Boolean() }), {}, 'a/b is missing'],
  ] as const) {
    assert.equal(lineOf(schema, value), sentence)
  }
})

test('a fault contains no value and no name from the request', () => {
  const schema = Type.Object({ a: Type.Optional(Type.Enum(['x'])) }, { additionalProperties: false })
  const faults = faultsOf(schema, { a: 'secret', secret: 1, password: 2 })
  assert.doesNotMatch(JSON.stringify(faults), /secret|password/)
  assert.equal(faultLine(faults), 'The body must have no fields other than a; a must be one of x')
})

test('a field has at most one fault, and the number of faults is limited', () => {
  const names = Array.from({ length: FAULTS_MAX + 1 }, (_, index) => `f${index}`)
  const schema = Type.Object(Object.fromEntries(names.map((name) => [name, Type.Integer()])))
  for (const value of [{}, Object.fromEntries(names.map((name) => [name, 'text']))]) {
    const faults = faultsOf(schema, value)
    assert.equal(faults.length, FAULTS_MAX)
    assert.equal(new Set(faults.map(({ path }) => path)).size, FAULTS_MAX)
  }
})

test('too many items and too many unknown names are told without looking at each', () => {
  const lines = Type.Array(Type.Enum(['x']), { maxItems: 4, uniqueItems: true })
  const schema = Type.Object({ lines, of: Type.Array(Type.Object({ lines })) }, { additionalProperties: false })
  const many = Array.from({ length: 30_000 }, (_, index) => index)
  const names = Object.fromEntries(many.map((index) => [`n${index}`, 0]))
  for (const [value, sentence] of [
    [{ lines: many }, 'lines must have at most 4 items'],
    [{ lines: ['x'], of: [{ lines: [] }, { lines: many }] }, 'of/1/lines must have at most 4 items'],
    [{ ...names, lines: ['x'] }, 'The body must have no fields other than lines, of'],
    [{ lines: ['x', 'y'], of: null, beside: 1 }, ''],
    ['text', ''],
  ] as const) {
    assert.equal(faultLine(sizeFaults(schema, value)), sentence)
  }
})
