import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RE2JS } from '@bufbuild/re2'
import fc from 'fast-check'
import { Automaton } from '../src/pattern/automaton.ts'
import { POLICY_LIMITS } from '../src/limits.ts'
import { compileProgram } from '../src/pattern/compile-program.ts'
import { faultOf, resultOf } from './condition.ts'

const patterns: fc.Arbitrary<string> = fc.letrec<{ pattern: string; atom: string }>((tie) => ({
  atom: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom(
      'a',
      'b',
      'é',
      'k',
      's',
      'ß',
      '😀',
      '.',
      '[ab]',
      '[^a]',
      '\\w',
      '\\s',
      '\\pL',
      '\\b',
      '\\B',
      '^',
      '$',
      '\\A',
      '\\z',
      '\\n',
    ),
    tie('pattern').map((inner) => `(${inner})`),
    tie('pattern').map((inner) => `(?i:${inner})`),
    tie('pattern').map((inner) => `(?m:${inner})`),
  ),
  pattern: fc
    .array(fc.tuple(tie('atom'), fc.constantFrom('', '', '*', '+', '?', '*?', '{2}', '{0,3}', '|')), { maxLength: 4 })
    .map((parts) => parts.flat().join('')),
})).pattern

const texts = fc.array(
  fc.constantFrom('a', 'b', 'A', 'é', 'É', '😀', '\ud83d', ' ', '\n', '_', 'k', 'K', '\u212a', 's', 'ſ', 'ß', 'ẞ'),
  {
    maxLength: 12,
  },
)

test('the automaton finds what RE2 finds', () => {
  let compared = 0
  fc.assert(
    fc.property(patterns, fc.array(texts, { minLength: 5, maxLength: 5 }), (pattern, several) => {
      let library
      try {
        library = RE2JS.compile(pattern)
      } catch {
        return // not a pattern
      }
      const automaton = new Automaton(compileProgram(pattern))
      for (const text of several.map((parts) => parts.join(''))) {
        compared++
        assert.equal(automaton.test(text), library.test(text), `${pattern} on ${JSON.stringify(text)}`)
      }
    }),
    { numRuns: 3000 },
  )
  assert.ok(compared > 5000)
})

test('an automaton with a dropped cache finds the same', () => {
  const pattern = '[ab]*a[ab]{12}[cd]'
  const library = RE2JS.compile(pattern)
  const automaton = new Automaton(compileProgram(pattern))
  let random = 1
  const noise = Array.from({ length: 40_000 }, () => {
    random = (Math.imul(random, 1103515245) + 12345) >>> 0
    return random & 65536 ? 'a' : 'b'
  }).join('')
  // Almost every character leads to a new state: far more than the cache holds.
  for (const end of ['', 'c', `a${'b'.repeat(12)}c`, `b${'b'.repeat(12)}c`, 'e']) {
    assert.equal(automaton.test(noise + end), library.test(noise + end))
    assert.equal(automaton.test(end), library.test(end))
    assert.ok(automaton.remembered < 9000)
  }
})

test('patterns that backtracking engines never finish end in time', () => {
  for (const [pattern, text] of [
    ['^(a+)+$', `${'a'.repeat(50_000)}!`],
    ['^(a|a)*$', `${'a'.repeat(50_000)}!`],
    ['^(a|aa)+$', `${'a'.repeat(50_000)}!`],
    ['(.*)(.*)(.*)(.*)x', 'a'.repeat(50_000)],
    ['^([a-z0-9]+[._-]?)+@example$', `${'a.'.repeat(20_000)}!`],
  ] as const) {
    assert.equal(resultOf(`tool.input.text.matches(${JSON.stringify(pattern)})`, { text }), false)
  }
})

test('no pattern becomes a JavaScript regular expression', (t) => {
  const made: string[] = []
  t.mock.property(
    globalThis,
    'RegExp',
    new Proxy(RegExp, {
      construct(target, args: [string]) {
        made.push(args[0])
        return new target(...args)
      },
    }),
  )
  assert.equal(resultOf('tool.input.text.matches("^(a+)+$")', { text: 'aaaa' }), true)
  assert.equal(resultOf('tool.name.matches("^(b+)+$")'), false)
  assert.deepEqual(made, [])
})

test('patterns are RE2: no back references, no lookaround', () => {
  assert.equal(resultOf('"xAbx".matches("(?i)aB")'), true)
  assert.equal(resultOf(String.raw`"a\nb".matches(r"(?s)a.b") && !"a\nb".matches("a.b")`), true)
  assert.match(faultOf(String.raw`tool.name.matches(r"(a)\1")`), /^not an RE2 pattern: invalid escape sequence/)
  assert.match(faultOf('tool.name.matches("(?=a)")'), /^not an RE2 pattern/)
  assert.match(faultOf('tool.name.matches("a(")'), /^not an RE2 pattern: missing closing \)/)
})

test('a pattern that is not a literal is rejected at compile time', () => {
  for (const pattern of ['tool.input.pattern', 'tool.name', '"a" + "b"', 'true ? "a" : "b"']) {
    assert.match(faultOf(`tool.name.matches(${pattern})`), /^the pattern must be a text literal/)
  }
  assert.match(faultOf('["a", "b"].exists(p, tool.name.matches(p))'), /^the pattern must be a text literal/)
  assert.match(faultOf('matches(tool.name, "a")'), /not part of the policy language/)
})

test('a pattern can have exactly the maximum length', () => {
  const { patternChars } = POLICY_LIMITS
  assert.equal(resultOf(`tool.name.matches("${'a'.repeat(patternChars)}")`), false)
  assert.match(faultOf(`tool.name.matches("${'a'.repeat(patternChars + 1)}")`), /at most 500 characters/)
})

test('the counts of all patterns can sum to exactly the limit', () => {
  const half = POLICY_LIMITS.patternRepeats / 2
  const both = (more: number) => `tool.name.matches("a{${half}}") || tool.name.matches("b{1,${half + more}}")`
  assert.equal(resultOf(both(0)), false)
  assert.match(faultOf(both(1)), /must be at most 200/)
  assert.match(faultOf('tool.name.matches("((a{100}){100}){100}")'), /must be at most 200/)
})

test('the ranges of all patterns that ignore case can have exactly the maximum number of characters', () => {
  const [first, last, left] = [0x41, 0x1e943, POLICY_LIMITS.patternFoldedChars - (0x1e943 - 0x41 + 1)]
  const upTo = (end: number) => `tool.name.matches(r"(?i)[b-\\x{${end.toString(16)}}]")`
  const both = (more: number) => `${upTo(last)} || ${upTo(first + left - 1 + more)}`
  assert.equal(resultOf(both(0)), true)
  assert.match(faultOf(both(1)), /must have at most 200000 characters together/)
  // Nothing beyond the last character with another case is folded, and nothing at all without the flag.
  assert.equal(resultOf(upTo(0x10ffff)), true)
  assert.equal(resultOf(both(1).replaceAll('(?i)', '')), true)
})

test('no spelling of a large range hides it', () => {
  for (const flag of ['(?i)', '(?i:a)|', '(?si)', '(?-si)', '(?s-i:a)']) {
    for (const end of ['\u{1e942}', '\\x{1e942}', '\\x{1E942}', '\\x{0001e942}', '\\\u{1e942}']) {
      for (const start of ['b', '-', '+-', 'a-zb', '\\-', '[:alpha:]b', '^b']) {
        const pattern = `${flag}${`[${start}-${end}]`.repeat(2)}`
        assert.match(faultOf(`tool.name.matches(r"${pattern}")`), /must have at most 200000/, pattern)
      }
    }
  }
})

test('a pattern can compile to exactly the maximum number of instructions', () => {
  const sizeOf = (pattern: string) => new Automaton(compileProgram(pattern)).size
  const most = '(a{10}b){70}'
  const largest = most + 'c'.repeat(POLICY_LIMITS.patternInstructions - sizeOf(most))
  assert.equal(sizeOf(largest), 1000)
  assert.equal(resultOf(`tool.name.matches("${largest}")`), false)
  assert.match(faultOf(`tool.name.matches("${largest}c")`), /more than 1000 instructions/)
})
