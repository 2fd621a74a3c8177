import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkTypes } from '../src/language/check.ts'
import { parse } from '../src/language/parse.ts'
import { FUNCTION_SIGNATURES, METHOD_SIGNATURES, OPERATOR_SIGNATURES } from '../src/language/signatures.ts'
import { showType } from '../src/language/types.ts'
import { Failure, noOverload, typeOf, type Value } from '../src/evaluation/value.ts'
import { run } from './run-expression.ts'

/** An expression of each type. The texts are numbers, so that they can be converted. */
const SAMPLES = new Map([
  ['bool', 'true'],
  ['int', '7'],
  ['double', '1.5'],
  ['string', '"1"'],
  ['null', 'null'],
  ['timestamp', 'now'],
  ['duration', 'duration("1h")'],
  ['type', 'type(1)'],
  ['list', '[1]'],
  ['map', '{"a": 1}'],
])

/** The same value in a form whose type the checker does not know. */
const hidden = (sample: string) => `[${sample}, null, 1, "a"][0]`

function checkedType(source: string): string | undefined {
  let isRefused = false
  const type = checkTypes(parse(source), () => (isRefused = true))
  return isRefused ? undefined : showType(type).replace(/<.*/, '')
}

function isUnknownOperation(value: Value | Failure | undefined): boolean {
  if (value === undefined) throw new Error('the profile refuses it')
  return (
    value instanceof Failure &&
    (value.message === noOverload.reason || /^only a|^a loop needs|^this must be true or false/.test(value.message))
  )
}

const SHORT_NAMES = new Map([
  ['google.protobuf.Timestamp', 'timestamp'],
  ['google.protobuf.Duration', 'duration'],
  ['null_type', 'null'],
])

/** The checker accepts an operation on known types exactly if the evaluator supports it. */
function assertAgreed(write: (operands: readonly string[]) => string, operands: readonly string[]): void {
  const source = write(operands)
  const type = checkedType(source)
  const value = run(write(operands.map(hidden)))
  assert.equal(isUnknownOperation(value), type === undefined, source)
  if (type === undefined || value instanceof Failure) return
  const actual = typeOf(value as Value)
  assert.equal(type, SHORT_NAMES.get(actual) ?? actual, source)
}

test('the checker rejects exactly the operators that the evaluator does not have', () => {
  for (const key of OPERATOR_SIGNATURES.keys()) {
    const operator = key.slice(0, -2)
    for (const left of SAMPLES.values()) {
      if (key.endsWith('/1')) assertAgreed(([only]) => `${operator}${only}`, [left])
      // Combine it with `false`, because `true || x` is true for every x.
      else if (operator === '||') assertAgreed(([a, b]) => `${a} || ${b}`, ['false', left])
      else if (operator === '&&') assertAgreed(([a, b]) => `${a} && ${b}`, ['true', left])
      else for (const right of SAMPLES.values()) assertAgreed(([a, b]) => `${a} ${operator} ${b}`, [left, right])
    }
  }
})

test('the checker rejects exactly the functions and methods that the evaluator does not have', () => {
  for (const key of FUNCTION_SIGNATURES.keys()) {
    const [name] = key.split('/')
    for (const sample of SAMPLES.values()) assertAgreed(([value]) => `${name}(${value})`, [sample])
  }
  for (const key of METHOD_SIGNATURES.keys()) {
    const [name = '', count] = key.split('/')
    for (const sample of SAMPLES.values()) {
      if (count === '0') assertAgreed(([receiver]) => `${receiver}.${name}()`, [sample])
      // Patterns and zones are literals.
      else if (name === 'matches') assertAgreed(([receiver]) => `${receiver}.matches("1")`, [sample])
      else if (name.startsWith('get')) assertAgreed(([receiver]) => `${receiver}.${name}("UTC")`, [sample])
      else {
        for (const other of SAMPLES.values())
          assertAgreed(([receiver, value]) => `${receiver}.${name}(${value})`, [sample, other])
      }
    }
  }
})

test('the checker rejects exactly the loops, keys and conditions that the evaluator does not have', () => {
  for (const sample of SAMPLES.values()) {
    assertAgreed(([receiver]) => `${receiver}.all(x, true)`, [sample])
    assertAgreed(([body]) => `[1].map(x, ${body}, x)`, [sample])
    assertAgreed(([body]) => `[1].exists(x, ${body})`, [sample])
    assertAgreed(([condition]) => `${condition} ? 1 : 2`, [sample])
    assertAgreed(([receiver]) => `has(${receiver}.a)`, [sample])
    assertAgreed(([key]) => `{"a": 1}[${key}]`, [sample])
    // A whole double from tool.input is a valid index, because it has no ints. A double literal is a mistake.
    if (sample !== '1.5') assertAgreed(([key]) => `[1, 2][${key}]`, [sample])
  }
})
