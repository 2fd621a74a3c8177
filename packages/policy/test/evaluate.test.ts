import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { compileCondition } from '../src/compile.ts'
import { evaluate } from '../src/evaluate.ts'
import { POLICY_LIMITS } from '../src/limits.ts'
import { parse } from '../src/language/parse.ts'
import { sizeOf } from '../src/language/syntax.ts'
import type { Facts } from '../src/language/variables.ts'
import { condition, resultOf } from './condition.ts'
import { expressions } from './generators.ts'

test('for any facts, evaluating returns a boolean or a message', () => {
  const anything = fc.anything({
    withBigInt: true,
    withDate: true,
    withMap: true,
    withNullPrototype: true,
    withSparseArray: true,
  })
  const facts = fc.oneof(
    anything,
    fc.record({ tool: fc.record({ name: anything, input: anything }), run: anything, risk: anything, now: anything }),
  )
  fc.assert(
    fc.property(expressions, facts, (source, one) => {
      const compiled = compileCondition(source)
      if (!compiled.ok) return
      const result = evaluate(compiled.condition, one as Facts)
      assert.equal(typeof (result.ok ? result.matched : result.message), result.ok ? 'boolean' : 'string')
    }),
    { numRuns: 2000 },
  )
})

test('missing facts have defaults: no condition fails because the session is unknown', () => {
  const bare: Facts = { tool: { name: 'x' }, now: 0 }
  const nulls: Facts = {
    tool: { name: 'x', input: null },
    agent: { id: null },
    run: { id: null, cost: null, totalTokens: null, toolCalls: null },
    session: null,
    risk: { signals: null },
    now: 0,
  }
  const all = [
    'tool.input == {} && agent.id == "" && agent.name == "" && session.id == "" && run.id == ""',
    'run.cost == 0.0 && run.totalTokens == 0 && run.toolCalls == 0 && risk.signals == []',
    'now == timestamp("1970-01-01T00:00:00Z")',
  ].map((part) => `(${part})`)
  for (const facts of [bare, nulls]) {
    assert.deepEqual(evaluate(condition(all.join(' && ')), facts), { ok: true, matched: true })
  }
})

test('facts have their declared types', () => {
  const facts = { run: { id: 'r', cost: 3, totalTokens: 2 ** 53 - 1, toolCalls: 2 }, risk: { signals: ['pii'] } }
  assert.equal(resultOf('run.totalTokens == 9007199254740991 && run.toolCalls % 2 == 0', {}, facts), true)
  assert.equal(resultOf('run.cost / 2.0 == 1.5 && "pii" in risk.signals', {}, facts), true)
})

test('a fact of the wrong type fails only the conditions that need it', () => {
  const broken = { run: { cost: NaN, totalTokens: 1.5, toolCalls: 2 ** 53 }, now: NaN, risk: { signals: [1] as never } }
  assert.equal(resultOf('run.cost > 1.0', {}, broken), 'the fact run.cost has the wrong type')
  assert.equal(resultOf('run.totalTokens > 1', {}, broken), 'the fact run.totalTokens has the wrong type')
  assert.equal(resultOf('run.toolCalls > 1', {}, broken), 'the fact run.toolCalls has the wrong type')
  assert.equal(resultOf('risk.signals == []', {}, broken), 'the fact risk.signals has the wrong type')
  assert.equal(resultOf('now > timestamp(0)', {}, broken), 'the fact now has the wrong type')
  assert.equal(resultOf('tool.name == "refund"', {}, broken), true)
  assert.equal(resultOf('tool.name == "refund" || run.cost > 1.0', {}, broken), true)
  assert.match(
    String(resultOf('risk.signals == []', {}, { risk: { signals: Array(1) as never } })),
    /risk.signals has the wrong type/,
  )
  assert.equal(resultOf('tool.input.a == 1', ['a']), 'the fact tool.input has the wrong type')
})

test('a key whose value is null is present', () => {
  const input = { note: null, nested: { note: null } }
  assert.equal(resultOf('has(tool.input.note) && "note" in tool.input && tool.input.note == null', input), true)
  assert.equal(resultOf('has(tool.input.nested.note) && size(tool.input.nested) == 1', input), true)
  assert.equal(resultOf('type(tool.input.note) == null_type && tool.input.nested == {"note": null}', input), true)
  assert.equal(resultOf('has(tool.input.absent)', { absent: undefined }), false)
})

test('numbers in tool.input are doubles, and equal or compare with ints', () => {
  const input = { amount: 1500, list: [1, 2] }
  assert.equal(
    resultOf('tool.input.amount == 1500 && tool.input.amount > 1000 && tool.input.amount + 0.5 == 1500.5', input),
    true,
  )
  assert.equal(resultOf('1 in tool.input.list && tool.input.list == [1, 2] && tool.input.list[1] == 2', input), true)
  assert.equal(resultOf('int(tool.input.amount) / 7 == 214', input), true)
})

test('an error is ignored if the result does not depend on it', () => {
  const input = { items: [{ price: 5 }, {}] }
  assert.equal(resultOf('tool.input.x == 1 || true', input), true)
  assert.equal(resultOf('tool.input.x == 1 && false', input), false)
  assert.equal(resultOf('tool.input.items.exists(i, i.price > 4)', input), true)
  assert.equal(resultOf('tool.input.items.all(i, i.price > 9)', input), false)
  assert.equal(resultOf('false ? tool.input.x == 1 : true', input), true)
  assert.match(String(resultOf('tool.input.x == 1 || false', input)), /missing key "x"/)
  assert.match(String(resultOf('tool.input.items.exists(i, i.price > 9)', input)), /missing key "price"/)
  assert.match(String(resultOf('tool.input.items.all(i, i.price > 4)', input)), /missing key "price"/)
  assert.match(String(resultOf('tool.input.items.exists_one(i, i.price > 4)', input)), /missing key "price"/)
})

test('a failure has its position in the condition, and nothing from the facts', () => {
  const secret = 'hunter2'
  const input = { [secret]: secret, text: secret, list: [secret], map: { [secret]: 1 } }
  for (const [source, message] of [
    ['true &&\n tool.input.missing == 1', 'line 2, column 2: missing key "missing"'],
    ['int(tool.input.text) > 1', 'line 1, column 1: the text is not a number'],
    ['double(tool.input.text) > 1.0', 'line 1, column 1: the text is not a number'],
    ['bool(tool.input.text)', 'line 1, column 1: the text is not true or false'],
    ['timestamp(tool.input.text) > now', 'line 1, column 1: the text is not a time such as 2026-11-20T09:00:00Z'],
    ['duration(tool.input.text) > duration("1s")', 'line 1, column 1: the text is not a duration such as 1h30m'],
    ['tool.input[tool.input.text + "x"] == 1', 'line 1, column 1: no such key or index'],
    ['tool.input.list[7] == 1', 'line 1, column 1: no such key or index'],
    ['tool.input.list[-1] == 1', 'line 1, column 1: no such key or index'],
    ['tool.input.text.a == 1', 'line 1, column 1: only a map can have the key "a"'],
    ['has(tool.input.text.a)', 'line 1, column 5: only a map can have the key "a"'],
    ['tool.input.text > 1', 'line 1, column 1: this operation does not exist for values of these types'],
    ['tool.input.text || false', 'line 1, column 1: this must be true or false'],
    ['tool.input.text.all(x, x)', 'line 1, column 1: a loop needs a list or a map'],
    ['tool.input.list.all(x, x)', 'line 1, column 24: this must be true or false'],
    ['1 / size(tool.input.list) > 0 && 1 / (size(tool.input.list) - 1) > 0', 'line 1, column 34: division by zero'],
    ['9223372036854775807 + int(size(tool.input.list)) > 0', 'line 1, column 1: the result is out of range'],
  ] as const) {
    assert.equal(resultOf(source, input), message)
    assert.ok(!message.includes(secret))
  }
  assert.equal(
    resultOf('tool.input.text == ""', { text: '', [secret]: new Date() }),
    'a value in tool.input is a Date, not plain JSON',
  )
})

test('the parts of CEL that policies need work', () => {
  const input = { currency: 'EUR', home: 'CHF', items: [{ price: 5 }], 'content-type': 'x', for: 1, none: null }
  for (const source of [
    '![].exists(x, x > 1) && [].all(x, x > 1)',
    'tool.input.currency in ["EUR", tool.input.home] && !("USD" in ["EUR", tool.input.home])',
    '[1, null][1] == null && {"a": 1, "b": "c"} != {} && tool.input.none in [1, null]',
    'has(tool.input.items[0].price) && !has(tool.input.items[0].weight) && has({"a": 1}.a)',
    '-9223372036854775808 < 0 && -9223372036854775808 + 9223372036854775807 == -1',
    '.5 + .5 == 1.0 && -.5 < 0.0 && 0x1F == 31 && 1e3 == 1000.0',
    'timestamp("2026-11-20T09:00:00.1234567891Z") == timestamp("2026-11-20T09:00:00.123456789Z")',
    'int(timestamp("1970-01-01T00:01:00.9Z")) == 60 && int(timestamp("1969-12-31T23:59:59.5Z")) == -1',
    'string(timestamp("2026-11-20T09:00:00.500+01:00")) == "2026-11-20T08:00:00.5Z"',
    'string(duration("1h30m")) == "5400s" && string(duration("-1.5s")) == "-1.5s"',
    'has(tool.input.`content-type`) && tool.input.`content-type` == "x" && tool.input.for == 1',
    '1 == 1 in [true] && 1 < 2 == true && 2 + 3 * 4 - 1 == 13 && 10 - 5 - 3 == 2 && !(true && false) == true',
    '(false ? true : false ? false : true) && (true || false && false)',
    String.raw`r"\" == "\\" && '\x41\u00e9\U0001F600\101' == "Aé😀A" && """a"b""" == "a\"b"`,
    '"""a\r\nb""" == "a\\nb"',
  ]) {
    assert.equal(resultOf(source, input), true, source)
  }
})

test('times and zones do not depend on the host', () => {
  const at = (text: string) => ({ now: Date.parse(text) })
  const hours = 'now.getHours("Europe/Berlin") == 2 && now.getMinutes("Europe/Berlin") == 30'
  // The hour that Berlin has twice in October and skips in March.
  assert.equal(resultOf(hours, {}, at('2026-10-25T00:30:00Z')), true)
  assert.equal(resultOf(hours, {}, at('2026-10-25T01:30:00Z')), true)
  assert.equal(resultOf('now.getHours("Europe/Berlin") == 3', {}, at('2026-03-29T01:30:00Z')), true)
  assert.equal(
    resultOf(
      'now.getDayOfYear() == 181 && now.getDayOfYear("America/New_York") == 181',
      {},
      at('2026-07-01T12:00:00Z'),
    ),
    true,
  )
  assert.equal(
    resultOf('now.getDayOfWeek() == 0 && now.getDayOfWeek("Asia/Tokyo") == 1', {}, at('2026-11-22T20:00:00Z')),
    true,
  )
  assert.equal(
    resultOf(
      'timestamp(tool.input.at) - now == duration("1h30m0.5s")',
      { at: '2026-11-20T11:00:00.5+00:30' },
      at('2026-11-20T09:00:00Z'),
    ),
    true,
  )
  for (const text of [
    '2026-11-20',
    '2026-11-20 09:00:00Z',
    'Nov 20 2026 09:00:00 UTC',
    '2026-02-30T00:00:00Z',
    '2026-11-20T24:00:00Z',
    '2026-11-20T09:00:00',
  ]) {
    assert.match(String(resultOf('timestamp(tool.input.at) < now', { at: text })), /not a time/)
  }
})

test('parts of a second are kept in every zone and before 1970', () => {
  const at = { now: Date.UTC(2026, 0, 1, 0, 0, 0, 999) }
  const zones =
    'now.getMilliseconds("Europe/Berlin") == 999 && now.getMilliseconds() == 999 && now.getSeconds("+01:00") == 0'
  assert.equal(resultOf(zones, {}, at), true)
  assert.equal(resultOf('timestamp("1969-12-31T23:59:59.9999999Z").getMilliseconds() == 999'), true)
  assert.equal(resultOf('timestamp("0001-01-01T00:00:00Z").getFullYear("America/New_York") == 0'), true)
})

test('an inner loop never changes the outer variable, whatever its name', () => {
  assert.equal(resultOf('[1, 2].all(a, [3].exists(b, b == 3) && a < 3)'), true)
  assert.equal(resultOf('[1, 2].all(a, [3].map(a, a + 1) == [4] && a < 3)'), true)
  assert.equal(resultOf('[1, 2].map(a, [10, 20].map(b, a + b)) == [[11, 21], [12, 22]]'), true)
})

test('texts consist of code points, not surrogate halves', () => {
  assert.equal(resultOf('size("é😀") == 2 && "😀".split("") == ["😀"] && "é" > "z" && "😀" > "\uff61"'), true)
  assert.equal(resultOf('"ÀB".lowerAscii() == "Àb" && "àb".upperAscii() == "àB"'), true)
  assert.equal(resultOf('size(tool.input.half) == 1', { half: '\ud83d' }), true)
})

test('evaluations share nothing', () => {
  const several = condition('tool.input.items.exists(i, i == tool.name) && tool.name.matches("^[ab]+$")')
  const one = (name: string, items: unknown[]) => evaluate(several, { tool: { name, input: { items } }, now: 0 })
  for (let round = 0; round < 3; round++) {
    assert.deepEqual(one('ab', ['ab']), { ok: true, matched: true })
    assert.deepEqual(one('ab', ['b']), { ok: true, matched: false })
    assert.deepEqual(one('ab', [...Array(POLICY_LIMITS.inputValues)]).ok, false)
    assert.deepEqual(one('c', ['c']), { ok: true, matched: false })
  }
})

test('an input can have exactly the maximum number of values', () => {
  // The input and the list are values too.
  const list = (elements: number) => ({ list: Array(elements).fill(0) })
  assert.equal(resultOf('size(tool.input.list) > 0', list(POLICY_LIMITS.inputValues - 2)), true)
  assert.equal(
    resultOf('size(tool.input.list) > 0', list(POLICY_LIMITS.inputValues - 1)),
    'a value in tool.input has more than 10000 values',
  )
})

test('an input can be nested exactly to its limit', () => {
  const nested = (levels: number): unknown => (levels === 1 ? {} : { a: nested(levels - 1) })
  assert.equal(resultOf('has(tool.input.a)', nested(POLICY_LIMITS.inputLevels)), true)
  assert.equal(
    resultOf('has(tool.input.a)', nested(POLICY_LIMITS.inputLevels + 1)),
    'a value in tool.input is nested more than 200 levels deep',
  )
  const cycle: Record<string, unknown> = {}
  cycle['a'] = cycle
  assert.equal(resultOf('has(tool.input.a)', cycle), 'a value in tool.input is nested more than 200 levels deep')
})

test('a loop can spend exactly its steps', () => {
  const source = 'tool.input.list.exists(a, tool.input.list.exists(b, false))'
  // An outer turn costs the nodes of its body, which is the inner loop. An inner turn costs one node.
  const cost = (size: number) => size * sizeOf(parse('tool.input.list.exists(b, false)')) + size * size
  let fitting = 1
  while (cost(fitting + 1) <= POLICY_LIMITS.evaluationSteps) fitting++
  assert.equal(resultOf(source, { list: Array(fitting).fill(0) }), false)
  assert.equal(resultOf(source, { list: Array(fitting + 1).fill(0) }), 'the evaluation needs more than 100000 steps')
})

test('unbounded growth runs out of steps', () => {
  const list = Array.from({ length: 3000 }, (_, i) => i)
  const text = 'a'.repeat(200_000)
  for (const source of [
    'tool.input.list.all(a, tool.input.list.all(b, a >= 0.0))',
    'tool.input.list.exists(a, tool.input.list.exists(b, a.x == b.x))',
    `[tool.input.text]${'.map(a, a + a)'.repeat(40)}.size() > 0`,
    `[tool.input.list]${'.map(a, a + a)'.repeat(40)}.size() > 0`,
    'tool.input.list.all(a, tool.input.text.lowerAscii() != "")',
    'tool.input.list.all(a, size(tool.input.text) > 1)',
    'tool.input.list.all(a, tool.input.text <= tool.input.same)',
    'tool.input.list.all(a, tool.input.list == tool.input.list)',
    'tool.input.list.all(a, !(-1 in tool.input.list))',
    'tool.input.list.all(a, !tool.input.text.matches("[ab]*a[ab]{30}c"))',
    'tool.input.list.all(a, tool.input.keys.exists(b, b == "0"))',
    'tool.input.list.all(a, now.getHours("Europe/Berlin") >= 0)',
    'tool.input.list.all(a, timestamp("2026-11-20T09:00:00Z") > now)',
    'tool.input.list.all(a, duration(tool.input.long) > duration("1s"))',
    'tool.input.list.all(a, double("1234.5678") > 1.0 && int("1234") > 1)',
    'tool.input.list.all(a, string(now) != "" && bool("true"))',
    'tool.input.text.contains(tool.input.needle)',
    'tool.input.text.split("a").size() > 0',
    // No operator ignores it.
    'tool.input.list.exists(a, tool.input.list.all(b, b >= 0.0) && a < 0.0) || true',
  ]) {
    const keys = Object.fromEntries(list.map((index) => [index, 0]))
    const input = {
      list,
      keys,
      text,
      same: text,
      long: '1h'.repeat(50),
      needle: `${'a'.repeat(50_000)}b${'a'.repeat(50_000)}`,
    }
    assert.equal(resultOf(source, input), 'the evaluation needs more than 100000 steps', source)
  }
})
