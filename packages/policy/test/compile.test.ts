import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { anyCharacter } from '../../contract/test/any-character.ts'
import { compileCondition } from '../src/compile.ts'
import { POLICY_LIMITS } from '../src/limits.ts'
import { condition, faultOf } from './condition.ts'
import { expressions } from './generators.ts'

/** The source at the first fault, and its line and column. */
function pointedAt(source: string): { text: string; line: number; column: number } {
  const compiled = compileCondition(source)
  assert.ok(!compiled.ok, `${source} compiles`)
  const { offset, endOffset, line, column } = compiled.faults[0]!.position
  return { text: source.slice(offset, endOffset), line, column }
}

test('any text compiles, or has faults with positions inside it', () => {
  const words =
    '( ) [ ] { } . , : ? ! - + * / % < <= == != && || in true null 1 1.5 1u "a" \'b\' r"c" b"d" """e""" tool name input now x has all exists map filter matches size . \\ @ # é 😀 \n // `'
  const soup = fc.array(fc.constantFrom(...words.split(' ')), { maxLength: 30 }).map((parts) => parts.join(''))
  fc.assert(
    fc.property(fc.oneof(soup, expressions, fc.string({ unit: anyCharacter, maxLength: 200 })), (source) => {
      const compiled = compileCondition(source)
      if (compiled.ok) return
      assert.ok(compiled.faults.length > 0)
      for (const { message, position } of compiled.faults) {
        assert.ok(message.length > 0)
        const { offset, endOffset = offset, line, column } = position
        assert.ok(offset >= 0 && endOffset >= offset && endOffset <= source.length)
        const lines = source.split(/\r\n|\r|\n/)
        assert.ok(line >= 1 && line <= lines.length && column >= 1 && column <= lines[line - 1]!.length + 2)
      }
    }),
    { numRuns: 3000 },
  )
})

test('a source that is not a string is a fault', () => {
  for (const source of [undefined, null, 1, {}, ['true']]) assert.equal(compileCondition(source as string).ok, false)
})

test('a fault points into the original source, across lines and beyond ASCII', () => {
  assert.deepEqual(pointedAt('tool.name == "x" &&\n  tool.nam == "y"'), { text: 'tool.nam', line: 2, column: 3 })
  assert.deepEqual(pointedAt('// 😀 é\r\n"😀é" == tool.name && fo == 1'), { text: 'fo', line: 2, column: 23 })
  assert.deepEqual(pointedAt('tool.name.matches(\n"(😀"\n)'), { text: '"(😀"', line: 2, column: 1 })
  assert.deepEqual(pointedAt('true\r&& 1'), { text: 'true\r&& 1', line: 1, column: 1 })
  assert.deepEqual(pointedAt('"é" ==\n\n 1'), { text: '"é" ==\n\n 1', line: 1, column: 1 })
  assert.deepEqual(pointedAt('tool.name ==\n'), { text: '', line: 2, column: 1 })
  assert.deepEqual(pointedAt('a' + ' '.repeat(5000)), { text: ' '.repeat(905), line: 1, column: 4097 })
})

test('all faults are reported together, in source order', () => {
  const compiled = compileCondition('foo == 1 || tool.bar == 2 || x.split() == [] || tool.name.matches("(")')
  assert.ok(!compiled.ok)
  assert.deepEqual(
    compiled.faults.map(({ message }) => message),
    [
      'unknown name foo; use one of tool, agent, run, session, risk, now',
      'tool has no field bar; use one of name, input, annotations, server, labels',
      'unknown name x; use one of tool, agent, run, session, risk, now',
      'split takes 1 argument, not 0',
      'not an RE2 pattern: missing closing )',
    ],
  )
})

test('types are checked before anything runs', () => {
  assert.match(faultOf('tool.name == 1'), /string == int/)
  assert.match(faultOf('run.cost > "1"'), /double > string/)
  assert.match(faultOf('run.totalTokens + 1.0 > 2.0'), /int \+ double/)
  assert.match(faultOf('tool.name in [1, 2]'), /string in list<int>/)
  assert.match(faultOf('tool.name.startsWith(1)'), /string.startsWith\(int\); use string.startsWith\(string\)/)
  assert.match(faultOf('risk.signals.all(s, s > 1)'), /string > int/)
  assert.match(faultOf('!tool.name'), /no such operation: !string/)
})

test('all relations have equal precedence and are left-associative, and chains are type-checked', () => {
  // This means (… == "pii") in risk.signals, so it looks for a bool among texts.
  assert.match(faultOf('tool.input.approved == "pii" in risk.signals'), /^no such operation: bool in list<string>$/)
  assert.match(faultOf('tool.name == "a" < "b"'), /bool < string/)
  assert.match(faultOf('run.toolCalls < 3 == 2'), /bool == int/)
  condition('run.toolCalls < 3 == true && tool.name == "a" in [true, false]')
})

test('a duration added to a time is a time, from either side', () => {
  assert.match(faultOf('duration("1h") + now > duration("2h")'), /timestamp > duration/)
  assert.match(faultOf('now - duration("1h") > duration("2h")'), /timestamp > duration/)
  assert.match(faultOf('now - now > now'), /duration > timestamp/)
  condition('duration("1h") + now > now && now - now < duration("1h") && now - duration("1h") < now')
})

test('a condition that always fails is rejected when it is saved', () => {
  for (const [source, fault] of [
    ['now > tool.input.at', /times in tool.input are texts: write timestamp\(…\) around this/],
    ['tool.input.wait < duration("1h")', /write duration\(…\) around this/],
    ['tool.input.at.getHours() > 8', /write timestamp\(…\) around this/],
    ['-tool.name == "a"', /no such operation: -string/],
    ['tool.name.first == "a"', /only a map can have the key "first", but this is string/],
    ['risk.signals["a"] == "b"', /list<string>\[string\]/],
    ['has(tool.name.first)', /only a map can have the key "first"/],
    ['tool.name.all(c, c == "a")', /a loop needs a list or a map, but this is string/],
    ['risk.signals.all(s, s)', /this must be true or false, but is string/],
    ['size(1) == 1', /size\(int\); size takes string or list<dyn> or map<string, dyn>/],
    ['tool.name ? true : false', /string \? bool : bool/],
    ['(run.toolCalls > 1 ? "a" : 1) == "a"', /bool \? string : int/],
    ['[1] + ["a"] == []', /list<int> \+ list<string>/],
    ['"a" in tool.name', /string in string/],
    ['tool.name || true', /string \|\| bool/],
    ['tool.input * 2.0 > 1.0', /map<string, dyn> \* double/],
  ] as const) {
    assert.match(faultOf(source), fault, source)
  }
})

test('each mistake is one fault, and all are reported', () => {
  const compiled = compileCondition('(tool.name + 1) * 2 > 3 || run.cost == "a" || risk.signals.all(s, s > 1)')
  assert.ok(!compiled.ok)
  assert.deepEqual(
    compiled.faults.map(({ message }) => message),
    ['string + int', 'double == string', 'string > int'].map((operation) => `no such operation: ${operation}`),
  )
})

test('lists and maps can hold several types, and [] fits any type', () => {
  for (const source of [
    '![].exists(x, x > 1)',
    'tool.name in ["a", 1, null]',
    'tool.input.currency in ["EUR", tool.input.home]',
    '{"a": 1, "b": "c"}.b == "c"',
    '[] + risk.signals == ["a"] + []',
    '(run.toolCalls > 1 ? [] : ["a"]) == []',
    '[1, 2.5].exists(x, x == 2)',
    'run.cost == 5',
  ]) {
    condition(source)
  }
})

test('a syntax error says what was expected and what to write', () => {
  for (const [source, fault] of [
    ['tool.name = "a"', /unexpected character =; write == to compare/],
    ['tool.name == “a”', /unexpected character “; write "$/],
    ['true & false', /unexpected character &; write && for and/],
    ['true and false', /found and; write && for and/],
    ['not true', /found true/],
    ['tool.name == "a', /the text is not closed with "/],
    ['tool.name == "a\nb"', /the text is not closed with "/],
    [String.raw`tool.name == "\d"`, /unknown escape \\d; write \\\\ for a backslash/],
    [String.raw`tool.name == "\ud800"`, /not a Unicode character/],
    ['tool.name == "a" "b"', /expected an operator or the end, found "b"/],
    ['(true', /expected \), found the end/],
    ['!-tool.input.a', /expected a value, found -/],
    ['1e999 > 1.0', /the number is too large/],
    ['if == 1', /expected a value, found if/],
    ['.tool.name == "a"', /expected a value, found \./],
    ['Account{name: "a"} == 1', /found \{/],
    ['has(tool.input["a"])', /has needs a field.*write "key" in tool.input/],
  ] as const) {
    assert.match(faultOf(source), fault, source)
  }
})

test('a condition must be true or false', () => {
  assert.match(faultOf('tool.name'), /must be true or false; this is string/)
  assert.match(faultOf('tool.input.flag'), /must be true or false; compare it/)
  assert.match(faultOf('[true]'), /must be true or false/)
  assert.match(faultOf(''), /expected a value, found the end/)
})

test('an int mixed with doubles of tool.input is rejected, because evaluation would always fail', () => {
  for (const source of [
    'tool.input.amount + 1 > 2.0',
    '1 - tool.input.amount > 2.0',
    'tool.input.items.exists(i, i.price * 2 > 10.0)',
    'tool.input.amount * size(tool.input.items) > 10.0',
  ]) {
    assert.match(faultOf(source), /doubles and this is an int/)
  }
  assert.match(faultOf('tool.input.amount + 1 > 2.0'), /write 1.0 for 1$/)
  assert.match(faultOf('run.cost + run.toolCalls > 2.0'), /; this is an int: write double\(…\) around it$/)
  // Doubles have no remainder operator, so 2.0 instead of 2 would not help.
  for (const source of [
    'tool.input.amount % 2 == 0',
    '7 % tool.input.amount == 1',
    'tool.input.a % tool.input.b == 0',
  ]) {
    assert.match(faultOf(source), /doubles and % takes ints: write int\(…\) around this$/)
  }
  assert.deepEqual(pointedAt('7 % tool.input.amount == 1').text, 'tool.input.amount')
  condition('int(tool.input.amount) % 2 == 0')
  assert.deepEqual(pointedAt('tool.input.amount + 1 > 2.0'), { text: '1', line: 1, column: 21 })
  condition('tool.input.amount + 1.0 > 2 && tool.input.amount * double(size(tool.input.items)) >= 10')
})

test('only the profile exists: no other names, functions, types or literals', () => {
  for (const [source, fault] of [
    ['tool == tool', /tool needs a field; use one of tool.name, tool.input/],
    ['tool["name"] == "x"', /tool needs a field/],
    ['now.x == 1', /now has no field x; it has no fields/],
    ['cel.bind(x, 1, x == 1)', /unknown name cel/],
    ['google.protobuf.Timestamp == type(now)', /unknown name google/],
    ['dyn(1) == 1', /dyn is not part/],
    ['b"a" == b"a"', /bytes are not part/],
    ['bytes("a").size() == 1', /bytes is not part/],
    ['1u == 1u', /without u/],
    ['"a".indexOf("a") == 0', /indexOf is not part/],
    ['tool.name.substring(1) == "a"', /substring is not part/],
    ['{1: "a"}[1] == "a"', /key must be a text literal/],
    ['{tool.name: 1} == {"a": 1}', /key must be a text literal/],
    ['{"a": 1, "a": 2} == {"a": 2}', /occurs twice/],
    ['["a"].exists(tool, tool == "a")', /tool already has a meaning/],
    ['["a"].exists(string, string == "a")', /string already has a meaning/],
    ['["a"].exists("x", true)', /variable/],
    ['9223372036854775808 > 1', /64 bits/],
    ['now.getHours("Mars/Olympus") == 1', /unknown time zone Mars/],
    ['now.getHours("+25:00") == 1', /unknown time zone/],
    ['now.getHours(tool.name) == 1', /time zone must be a text literal/],
    ['has(tool.name, 1)', /has takes 1 argument, not 2/],
    ['tool.name.matches()', /matches takes 1 argument, not 0/],
    ['[1].map(x)', /map takes 2 or 3 arguments, not 1/],
    ['now.getHours("UTC", "UTC") == 1', /getHours takes 0 or 1 argument, not 2/],
    ['now.getHours("") == 1', /unknown time zone/],
    ['tool.?name == "x"', /expected|unexpected/i],
    ['size(tool.name, 1) == 1', /size takes 1 argument, not 2/],
  ] as const) {
    assert.match(faultOf(source), fault, source)
  }
})

test('a source can have exactly the maximum length', () => {
  const padded = (length: number) => `true //${'x'.repeat(length - 7)}`
  condition(padded(POLICY_LIMITS.sourceChars))
  assert.match(faultOf(padded(POLICY_LIMITS.sourceChars + 1)), /at most 4096 characters/)
  assert.match(faultOf('"\ud800" == tool.name'), /must be well-formed/)
})

test('a condition can have exactly the maximum number of nodes', () => {
  // `tool.name` and `in` and the list are 4 nodes.
  const list = (elements: number) => `tool.name in [${Array(elements).fill('"a"').join(',')}]`
  condition(list(POLICY_LIMITS.nodes - 4))
  assert.match(faultOf(list(POLICY_LIMITS.nodes - 3)), /more than 1000 names, literals/)
})

test('nesting is limited, and chains and signs too long for the stack are faults', () => {
  const { nestingLevels } = POLICY_LIMITS
  const chain = (links: number) => Array(links).fill('true').join('||')
  condition(chain(nestingLevels))
  assert.match(faultOf(chain(nestingLevels + 1)), /nested more than 250 levels/)
  condition(`${'!'.repeat(nestingLevels - 1)}true`)
  assert.match(faultOf(`${'!'.repeat(nestingLevels)}true`), /nested more than 250 levels/)
  condition(`${'('.repeat(nestingLevels - 1)}true${')'.repeat(nestingLevels - 1)}`)
  assert.match(faultOf(`${'('.repeat(nestingLevels)}true${')'.repeat(nestingLevels)}`), /nested more than 250 levels/)
  for (const opening of ['!', '-', '(', '[', '{"":', 'a.', 'a[', 'f(', '1+', '1||', 'true?', '-!(']) {
    const many = Math.floor(POLICY_LIMITS.sourceChars / opening.length)
    assert.ok(faultOf(opening.repeat(many)).length > 0)
  }
})

test('loops can be nested exactly to their limit', () => {
  condition('[1].exists(a, [2].exists(b, a < b))')
  condition('[1].filter(a, true).map(a, a).all(a, [1].exists(b, a < b)) && [1].exists(a, [a].exists(b, true))')
  assert.match(faultOf('[1].exists(a, [1].exists(b, [1].exists(c, c > b)))'), /at most 2 levels deep/)
  assert.match(faultOf('[1].map(a, [1].map(b, [1].filter(c, c > b))).size() > 0'), /at most 2 levels deep/)
})

test('compiling the same condition always gives the same result', () => {
  const source = 'tool.input.items.exists(i, i.price > 10.0) && tool.name.matches("^a")'
  const [first, second] = [condition(source), condition(source)]
  assert.deepEqual(first.names, second.names)
  assert.equal(first.source, source)
  assert.ok(Object.isFrozen(first))
})

test('a part that fails for every call is refused where it stands', () => {
  const always = (source: string, part: string, why: RegExp) => {
    assert.match(faultOf(source), new RegExp(`^this always fails: .*${why.source}`), source)
    assert.equal(pointedAt(source).text, part)
  }
  always('now > timestamp("2026-01-01")', 'timestamp("2026-01-01")', /not a time/)
  always('tool.name == "a" || duration("30d") > duration("1h")', 'duration("30d")', /not a duration/)
  always('run.toolCalls > int("abc")', 'int("abc")', /not a number/)
  always('1 / 0 == run.toolCalls', '1 / 0', /division by zero/)
  always('(run.toolCalls + 1) % (2 - 2) == 0', '(run.toolCalls + 1) % (2 - 2)', /division by zero/)
  always('tool.input.l.exists(x, x == [1][1])', '[1][1]', /no such key or index/)
  for (const source of ['has({"a": 1}.b)', 'true || 1 / 0 == 1', '[0].exists(x, x == 0 || 1 / x == 1)'])
    condition(source)
})

test('parts without facts are checked with the steps of one evaluation, so saving stays quick', () => {
  const list = `[${Array(200).fill('0').join(', ')}]`
  const loop = `${list}.all(a, ${list}.all(b, a == b))`
  condition(`tool.name == "a" && ${loop} && tool.name == "b" && ${loop}`)
  assert.match(faultOf(`tool.name == "a" && 1 / 0 == 1 && ${loop} && ${loop}`), /division by zero/)
})
