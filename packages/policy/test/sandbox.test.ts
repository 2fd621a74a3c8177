import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { compileCondition } from '../src/compile.ts'
import { evaluate } from '../src/evaluate.ts'
import { resultOf } from './condition.ts'
import { run } from './run-expression.ts'

const HOST_NAMES = [
  ...new Set(
    [Object, Array, String, Number, BigInt, Boolean, Map, Date, Function].flatMap((host) =>
      Object.getOwnPropertyNames(host.prototype),
    ),
  ),
]
const ROOTS = [
  'tool.input',
  'tool.input.list',
  'tool.input.text',
  'tool.input.fields',
  'tool.name',
  'now',
  'risk.signals',
  '[1]',
  '{"a": 1}',
  '"a"',
  '1',
  '1.5',
  'null',
  'type(1)',
]
const input = () => ({ list: [1], text: 'a', fields: { a: 1 } })

test('no property of a host object can be read', () => {
  for (const root of ROOTS) {
    for (const name of HOST_NAMES) {
      const isName = /^[A-Za-z_]\w*$/.test(name)
      const reads = isName
        ? [`${root}.${name} == ${root}.${name}`, `has(${root}.${name})`, `${root}.${name}() == 1`]
        : []
      for (const source of [...reads, `${root}["${name}"] == null`, `"${name}" in ${root}`]) {
        const compiled = compileCondition(source)
        if (!compiled.ok) continue
        const result = evaluate(compiled.condition, { tool: { name: 'x', input: input() }, now: 0 })
        // CEL methods with the name of a JavaScript method keep the CEL behaviour.
        const isOfCel = /\.(size|trim|split|startsWith|endsWith|get[A-Z]\w+)\(\)/.test(source)
        assert.ok(!result.ok || !result.matched || isOfCel, source)
      }
    }
  }
})

test('names are never looked up in the host', () => {
  const ofTheHost = ['globalThis', 'process', 'require', 'Function', 'eval', 'this', 'arguments', 'self']
  const ofCel = ['map', 'size']
  for (const name of [...HOST_NAMES.filter((host) => !ofCel.includes(host)), ...ofTheHost]) {
    assert.equal(compileCondition(`${name} == ${name}`).ok, false, name)
    assert.equal(compileCondition(`${name}("a") == 1`).ok, false, name)
    assert.equal(compileCondition(`now.getHours("${name}") == now.getHours()`).ok, false, name)
    assert.equal(compileCondition(`tool.${name} == "a"`).ok, name === 'name', name)
    assert.equal(compileCondition(`now.${name} == 1 || tool.\`${name}\` == 1`).ok, false, name)
    const loop = compileCondition(`[1].exists(${name}, ${name} == 2)`)
    if (loop.ok)
      assert.deepEqual(evaluate(loop.condition, { tool: { name: '' }, now: 0 }), { ok: true, matched: false })
  }
})

test('constructor and __proto__ are ordinary keys', () => {
  const hostile = JSON.parse(
    '{"constructor": "a", "__proto__": {"isAdmin": true}, "toString": 1, "length": 2, "prototype": null}',
  ) as unknown
  assert.equal(resultOf('tool.input.constructor == "a" && tool.input["__proto__"].isAdmin == true', hostile), true)
  assert.equal(
    resultOf('tool.input.toString == 1 && tool.input.length == 2 && has(tool.input.constructor)', hostile),
    true,
  )
  assert.equal(resultOf('tool.input.all(k, k != "isAdmin") && size(tool.input) == 5', hostile), true)
  assert.match(String(resultOf('tool.input.isAdmin == true', hostile)), /missing key "isAdmin"/)
  assert.equal(resultOf('{"constructor": 1, "__proto__": 2} == {"__proto__": 2, "constructor": 1}'), true)
})

test('results of expressions have only types of this package', () => {
  const own = /^(Map|Array|Timestamp|Duration|TypeName|String|Number|BigInt|Boolean)$/
  for (const source of [
    'tool.input',
    'tool.input.list',
    '{"a": [1]}',
    'now',
    'now - now',
    'type(1)',
    '[tool.input.fields]',
    'tool.input.fields.map(k, k)',
  ]) {
    const value = run(source, { tool: { name: 'x', input: input() }, now: 0 })
    assert.match(Object(value).constructor.name as string, own)
  }
})

test('host objects are rejected as inputs, and errors of their getters and traps never escape', () => {
  class Account {
    balance = 1
  }
  const cases: [unknown, RegExp | boolean][] = [
    [{ a: new Date() }, /is a Date, not plain JSON/],
    [{ a: new Map() }, /is a Map, not plain JSON/],
    [{ a: new Account() }, /is a Account, not plain JSON/],
    [{ a: () => 1 }, /is function, not plain JSON/],
    [{ a: Symbol('a') }, /is symbol, not plain JSON/],
    [{ a: 1n }, /is bigint, not plain JSON/],
    [{ a: [undefined] }, /is undefined, not plain JSON/],
    [{ a: [, 1] }, /is undefined, not plain JSON/], // oxlint-disable-line no-sparse-arrays
    [{ a: NaN }, /is NaN, which JSON does not have/],
    [{ a: Infinity }, /is Infinity, which JSON does not have/],
    [new Account(), /is a Account, not plain JSON/],
    [
      {
        get a(): never {
          throw new Error('no')
        },
      },
      /cannot be read/,
    ],
    [
      new Proxy(
        {},
        {
          ownKeys: () => {
            throw new Error('no')
          },
        },
      ),
      /cannot be read/,
    ],
    [Object.assign(Object.create(null) as object, { a: 1 }), true],
  ]
  for (const [hostile, expected] of cases) {
    const result = resultOf('has(tool.input.a)', hostile)
    if (typeof expected === 'boolean') assert.equal(result, expected)
    else assert.match(String(result), expected)
    assert.equal(resultOf('tool.name == "refund"', hostile), true)
  }
})

test('evaluating never changes the facts', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const before = JSON.stringify(value)
      resultOf('tool.input.a.map(x, x + x) + [1.0] == tool.input.b || tool.input == {}', { a: value, b: value })
      assert.equal(JSON.stringify(value), before)
    }),
  )
})
