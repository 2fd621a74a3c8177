import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fieldsOf } from '../src/compile.ts'
import { condition } from './condition.ts'

const of = (source: string) => fieldsOf(condition(source))

test('every variable that a condition names is told once', () => {
  assert.deepEqual(of('tool.name == "a" && (tool.name != agent.id || run.cost > 1.0) && now > timestamp(0)'), {
    variables: ['tool.name', 'agent.id', 'run.cost', 'now'],
    inputPaths: [],
  })
  assert.deepEqual(of('true'), { variables: [], inputPaths: [] })
})

test('paths of tool.input are told as far as they are spelt out', () => {
  for (const [source, ...inputPaths] of [
    ['tool.input.cart[0].price > 1.0', ['cart', 0, 'price']],
    ['tool.input["cart"]["a b"] == 1', ['cart', 'a b']],
    ['has(tool.input.a.b)', ['a', 'b']],
    ['"note" in tool.input && "x" in tool.input.tags', ['note'], ['tags', 'x']],
    ['tool.input.a == tool.input.b || tool.input.a == 1', ['a'], ['b']],
    ['tool.input.items.exists(i, i.price > tool.input.limit)', ['items'], ['limit']],
    ['tool.input.items.filter(i, i.a == 1).size() > 0', ['items']],
    ['tool.input.cart[tool.name].price == 1', ['cart']],
  ] as const) {
    assert.deepEqual(of(source).inputPaths, inputPaths, source)
    assert.ok(of(source).variables.includes('tool.input'))
  }
  assert.deepEqual(of('tool.input == {}'), { variables: ['tool.input'], inputPaths: [] })
  assert.deepEqual(of('tool.input[agent.id] == 1'), { variables: ['tool.input', 'agent.id'], inputPaths: [] })
})

test('loop variables are not variables of the profile', () => {
  assert.deepEqual(of('[{"name": "a"}].exists(t, t.name == "a" && t in [{"name": tool.name}])').variables, [
    'tool.name',
  ])
})
