import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fieldsOf } from '../src/language/fields.ts'
import { condition } from './condition.ts'

const of = (source: string) => fieldsOf(condition(source))

test('every variable of a condition is listed once', () => {
  assert.deepEqual(of('tool.name == "a" && (tool.name != agent.id || run.cost > 1.0) && now > timestamp(0)'), {
    variables: ['tool.name', 'agent.id', 'run.cost', 'now'],
    inputPaths: [],
    toolNames: ['a'],
    inputTypes: [],
  })
  assert.deepEqual(of('true'), { variables: [], inputPaths: [], toolNames: [], inputTypes: [] })
})

test('the tools of a condition are those that it can match, if it says so', () => {
  for (const [source, ...toolNames] of [
    ['"a" == tool.name && true', 'a'],
    ['run.cost > 1.0 && (tool.name in ["a", "b"] || tool.name == "c")', 'a', 'b', 'c'],
    ['tool.name == "a" || run.cost > 1.0'],
    ['!(tool.name == "a")'],
    ['tool.name != "a"'],
    ['tool.name in ["a", agent.id]'],
    ['tool.name.startsWith("a")'],
  ] as const) {
    assert.deepEqual(of(source).toolNames, toolNames, source)
  }
})

test('paths of tool.input are listed as far as they are literal', () => {
  for (const [source, ...inputPaths] of [
    ['tool.input.cart[0].price > 1.0', ['cart', 0, 'price']],
    ['tool.input["cart"]["a b"] == 1', ['cart', 'a b']],
    ['has(tool.input.a.b)', ['a', 'b']],
    ['"note" in tool.input && "x" in tool.input.tags', ['note'], ['tags', 'x']],
    ['tool.input.a == tool.input.b || tool.input.a == 1', ['a'], ['b']],
    ['tool.input.items.exists(i, i.price > tool.input.limit)', ['items'], ['items', null, 'price'], ['limit']],
    ['tool.input.items.filter(i, i.a == 1).size() > 0', ['items'], ['items', null, 'a']],
    ['tool.input.a.all(x, x.b.exists(y, y == x.c))', ['a'], ['a', null, 'b'], ['a', null, 'b', null], ['a', null, 'c']],
    ['tool.input.a.filter(x, true).exists(x, x.b == 1)', ['a'], ['a', null, 'b']],
    ['tool.input.a.map(x, x.b).exists(y, y.c == 1)', ['a'], ['a', null, 'b'], ['a', null, 'b', 'c']],
    ['tool.input.a.map(x, has(x.d), x.b).exists(y, y == 1)', ['a'], ['a', null, 'd'], ['a', null, 'b']],
    ['tool.input.a.exists(x, [{"b": 1}].exists(x, x.b == 1) || "c" in x)', ['a'], ['a', null, 'c']],
    ['tool.input.a[0].exists(x, x["b c"] == 1)', ['a', 0], ['a', 0, null, 'b c']],
    ['tool.input.cart[tool.name].price == 1', ['cart']],
  ] as const) {
    assert.deepEqual(of(source).inputPaths, inputPaths, source)
    assert.ok(of(source).variables.includes('tool.input'))
  }
  assert.deepEqual(of('tool.input == {}').inputPaths, [])
  assert.deepEqual(of('tool.input[agent.id] == 1').inputPaths, [])
  assert.deepEqual(of('tool.input[agent.id] == 1').variables, ['tool.input', 'agent.id'])
})

test('a path gets the type of the literal beside it', () => {
  for (const [source, ...types] of [
    ['tool.input.a == "x" && tool.input["a"] != "y"', 'a string'],
    ['100.0 < tool.input.a.b || tool.input.c >= -1', 'a.b double', 'c double'],
    ['tool.input.a == true', 'a bool'],
    ['tool.input.a in ["x", "y"] || tool.input.a == 1', 'a string', 'a double'],
    ['tool.input.a.exists(x, x.b > 1 || "y" == x.c)', 'a..b double', 'a..c string'],
    ['tool.input.a.startsWith("x") || tool.input.b.matches("y")', 'a string', 'b string'],
    ['tool.input.a == null || tool.input.a == tool.name || "k" in tool.input.a || has(tool.input.a)'],
    ['tool.input == {} || tool.input[agent.id] == 1 || size(tool.input.a) == 1'],
  ] as const) {
    const told = of(source).inputTypes.map(({ path, type }) => `${path.join('.')} ${type}`)
    assert.deepEqual(told, types, source)
  }
})

test('loop variables are not variables of the profile', () => {
  assert.deepEqual(of('[{"name": "a"}].exists(t, t.name == "a" && t in [{"name": tool.name}])').variables, [
    'tool.name',
  ])
})
