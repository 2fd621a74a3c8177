import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileCondition } from '@tacho/policy/compile.ts'
import { fieldsOf } from '@tacho/policy/language/fields.ts'
import { fieldCensus } from '../../../src/domain/policies/field-census.ts'

test('a field is found where the condition finds it, and nowhere else', () => {
  const inputPaths = [['a', 'b'], ['list', 0, 'price'], ['odd key'], ['toString'], ['__proto__']]
  const census = fieldCensus({ variables: ['tool.input'], inputPaths, inputTypes: [], toolNames: [] })
  const inputs = [
    '{"a":{"b":1},"list":[{"price":2.5}],"odd key":true,"toString":"x","__proto__":null}',
    '{"a":{"b":null},"list":[{}],"odd key":[]}',
    '{"a":"b","list":{"0":{"price":1}}}',
    '{"a":["b"],"list":"x"}',
    '"b"',
    '[{"b":1}]',
    'null',
  ]
  for (const text of inputs) census.count(JSON.parse(text) ?? undefined)
  assert.deepEqual(census.fields(), [
    { field: 'tool.input.a.b', recorded: 2, types: { double: 1, null: 1 } },
    { field: 'tool.input.list[0].price', recorded: 1, types: { double: 1 } },
    { field: 'tool.input["odd key"]', recorded: 2, types: { bool: 1, list: 1 } },
    { field: 'tool.input.toString', recorded: 1, types: { string: 1 } },
    { field: 'tool.input.__proto__', recorded: 1, types: { null: 1 } },
  ])
})

test('fields inside of loops are compared with the elements of the recorded lists', () => {
  const warned = (source: string, ...inputs: object[]) => {
    const compiled = compileCondition(source)
    assert.ok(compiled.ok, source)
    const census = fieldCensus(fieldsOf(compiled.condition))
    for (const input of inputs) census.count(input)
    return census.warnings().map(({ message }) => message)
  }
  const inputs = [{ items: [{ price: 2 }, { price: 3, tags: ['a'] }] }, { items: [{ price: 'x' }] }, { items: [] }]
  assert.deepEqual(warned('tool.input.items.exists(i, i.prize > 1.0)', ...inputs), [
    'None of the 3 recorded calls has tool.input.items[].prize; tool.input.items[].price is in 2 of 3',
  ])
  assert.deepEqual(warned('tool.input.items.filter(i, i.price > 1).size() > 1', ...inputs), [
    'tool.input.items[].price is string, not double, in 1 of the 2 calls that have it',
  ])
  assert.deepEqual(warned('tool.input.items.exists(i, i.tags.exists(t, t == "a"))', ...inputs), [])
  assert.deepEqual(warned('tool.input.itms.exists(i, i.prize > 1)', ...inputs), [
    'None of the 3 recorded calls has tool.input.itms; tool.input.items is in 3 of 3',
  ])
  assert.deepEqual(warned('tool.input.headers.exists(k, k == "x")', { headers: { x: 1 } }), [])
  const large = { items: Array.from({ length: 50_000 }, () => ({ price: 1 })) }
  assert.deepEqual(warned('tool.input.items.all(i, i.price > 1)', ...Array.from({ length: 100 }, () => large)), [])
})

test('there is no warning without calls, or for an input that the condition does not read', () => {
  const census = fieldCensus({ variables: ['tool.input'], inputPaths: [['a']], inputTypes: [], toolNames: [] })
  assert.deepEqual(census.warnings(), [])
  const none = fieldCensus({ variables: [], inputPaths: [], inputTypes: [], toolNames: [] })
  none.count(undefined)
  assert.deepEqual(none.warnings(), [])
})

test('large counts are written with separators', () => {
  const census = fieldCensus({ variables: ['tool.input'], inputPaths: [['a']], inputTypes: [], toolNames: [] })
  for (let call = 0; call < 3_385; call++) census.count(call < 1_200 ? undefined : { b: 1 })
  assert.deepEqual(
    census.warnings().map(({ message }) => message),
    ['None of the 3,385 recorded calls has tool.input.a', '1,200 of 3,385 calls were recorded without their input'],
  )
})

test('a field recorded with another type than the condition expects causes a warning', () => {
  const warned = (source: string, ...inputs: object[]) => {
    const compiled = compileCondition(source)
    assert.ok(compiled.ok)
    const census = fieldCensus(fieldsOf(compiled.condition))
    for (const input of inputs) census.count(input)
    return census.warnings().map(({ code, message }) => `${code}: ${message}`)
  }
  assert.deepEqual(warned('tool.input.id == 3', { id: 'a' }, { id: 'b' }), [
    'other_type: tool.input.id is string, not double, in 2 of the 2 calls that have it',
  ])
  assert.deepEqual(warned('tool.input.id.startsWith("a")', { id: 1 }, { id: 2 }, { id: 'a' }), [
    'other_type: tool.input.id is double, not string, in 2 of the 3 calls that have it',
  ])
  assert.deepEqual(warned('tool.input.id == "3" || tool.input.id == 3', { id: 1 }, { id: '3' }, { id: null }), [
    'other_type: tool.input.id is null, not string or double, in 1 of the 3 calls that have it',
  ])
  assert.deepEqual(warned('tool.input.id == agent.id', { id: 1 }, { id: 'a' }, { id: 'b' }), [
    'other_type: tool.input.id is double, not string, in 1 of the 3 calls that have it',
  ])
  assert.deepEqual(warned('tool.input.amount > 3', { amount: 1 }, {}), [])
})

test('a misspelled field is compared with what the tools of the condition recorded, and a misspelled tool with the recorded ones', () => {
  const censusOf = (source: string) => {
    const compiled = compileCondition(source)
    assert.ok(compiled.ok)
    const census = fieldCensus(fieldsOf(compiled.condition))
    for (let call = 0; call < 701; call++) census.count({ amount: 5, to: { iban: 'x' } }, ['refund_payment'])
    census.count({ amout: 1 }, ['other'])
    return census.warnings().map(({ code, message }) => `${code} ${message}`)
  }
  const near = 'No recorded call of refund_payment has tool.input.amout; tool.input.amount is in 701 of 701'
  assert.deepEqual(censusOf('tool.name == "refund_payment" && tool.input.amout > 500.0'), [`never_recorded ${near}`])
  assert.deepEqual(censusOf('tool.input.amout > 1.0 && (tool.name in ["refund_payment"] || "x" == tool.name)'), [
    `never_recorded ${near.replace('payment has', 'payment, x has')}`,
  ])
  // These conditions can match other tools too, and one of those has the field.
  assert.deepEqual(censusOf('tool.name == "refund_payment" || tool.input.amout > 500.0'), [])
  assert.deepEqual(censusOf('!(tool.name in ["refund_payment"]) && tool.input.amout > 500.0'), [])
  const misspelt = 'unknown_tool No recorded call is of otherr; did you mean other?'
  assert.deepEqual(censusOf('tool.name in ["refund_payment", "otherr"]'), [misspelt])
  assert.deepEqual(censusOf('tool.name in ["refund_payment", "new_tool", "refund_payments"]'), [])
  assert.deepEqual(censusOf('tool.name == "refund_paymnet" && tool.input.amount > 1.0'), [
    'unknown_tool No recorded call is of refund_paymnet; did you mean refund_payment?',
  ])
  assert.deepEqual(censusOf('tool.name == "refund_payment" && tool.input.to.ibn == "x"'), [
    'never_recorded No recorded call of refund_payment has tool.input.to.ibn; tool.input.to.iban is in 701 of 701',
  ])
  assert.deepEqual(censusOf('tool.name == "refund_payment" && tool.input.zzz == 1.0'), [
    'never_recorded No recorded call of refund_payment has tool.input.zzz',
  ])
})
