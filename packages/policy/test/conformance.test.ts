import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import type { SerializedIncrementalTestSuite } from '@bufbuild/cel-spec/testdata/tests.js'
import { tests } from '@bufbuild/cel-spec/testdata/conformance.js'
import { Failure, TypeName, type Value } from '../src/evaluation/value.ts'
import { run } from './run-expression.ts'

type Expected = Record<string, unknown>
type Case = { name?: string; expr: string; value?: Expected; evalError?: unknown; typedResult?: unknown }

function casesOf(suite: SerializedIncrementalTestSuite): Case[] {
  const own = (suite.tests ?? []).map(({ original }) => original as Case)
  return [...own, ...(suite.suites ?? []).flatMap(casesOf)]
}

/** Compares with the JSON form of cel.expr.Value. */
function isExpected(actual: Value, expected: Expected): boolean {
  const [[kind, value] = ['', undefined]] = Object.entries(expected)
  switch (kind) {
    case 'int64Value':
      return actual === BigInt(value as string)
    case 'doubleValue':
      return Object.is(actual, Number(value)) || actual === Number(value)
    case 'listValue': {
      const { values = [] } = value as { values?: Expected[] }
      return (
        Array.isArray(actual) &&
        actual.length === values.length &&
        values.every((one, i) => isExpected(actual[i] as Value, one))
      )
    }
    case 'mapValue': {
      const { entries = [] } = value as { entries?: { key: { stringValue: string }; value: Expected }[] }
      if (!(actual instanceof Map) || actual.size !== entries.length) return false
      return entries.every((entry) => isExpected(actual.get(entry.key.stringValue) as Value, entry.value))
    }
    case 'typeValue':
      return actual instanceof TypeName && actual.name === value
    default:
      return actual === value
  }
}

test("the profile's part of CEL's conformance suite gives the expected results", () => {
  let taken = 0
  for (const { name, expr, value, evalError, typedResult } of casesOf(tests)) {
    if (typedResult) continue // only the type of the result is tested
    const actual = run(expr)
    if (actual === undefined) continue // not part of the profile: bytes, uints, messages, optionals, keys that are not texts
    taken++
    const isRight =
      actual instanceof Failure ? evalError !== undefined : isExpected(actual, value ?? { boolValue: true })
    assert.ok(isRight, `${name}: ${expr} gave ${actual instanceof Failure ? actual.message : inspect(actual)}`)
  }
  assert.ok(taken >= 625, `only ${taken} cases were taken`)
})
