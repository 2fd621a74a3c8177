/**
 * Conditions with facts and results, and inputs with hashes, for SDKs in other languages: both sides are tested with the same
 * lines. Made from CEL's conformance suite, generated conditions, patterns and the limits of an evaluation.
 */
import type { SerializedIncrementalTestSuite } from '@bufbuild/cel-spec/testdata/tests.js'
import { tests } from '@bufbuild/cel-spec/testdata/conformance.js'
import fc from 'fast-check'
import { compileCondition } from '../src/compile.ts'
import { evaluate } from '../src/evaluate.ts'
import { inputHash } from '../src/input/input-hash.ts'
import { POLICY_LIMITS } from '../src/limits.ts'
import { sealedInputHash, sealInput, sealKey, valueAt, type InputSeals } from '../src/input/sealed-input.ts'
import { Duration, showDuration, showTimestamp, Timestamp } from '../src/evaluation/time.ts'
import { Failure, isList, isMap, TypeName, type Value } from '../src/evaluation/value.ts'
import type { Facts } from '../src/language/variables.ts'
import { chains, expressions, inputs } from '../test/generators.ts'
import { run } from '../test/run-expression.ts'

/** Of fast-check, so that the same version always generates the same lines. */
const SEED = 20_261_122
const SOURCE_CHARS = 300
const REFUSED_CHARS = 60

/** One line of conditions.jsonl. */
export interface ConditionVector {
  source: string
  /** Without them: the tool is `refund`, its input {}, the time 0. */
  facts?: Facts
  /** `tool.input` has a list of as many zeros, and a text of as many letters a. */
  repeat?: number
  /** Exactly one of these: the result, why the evaluation failed, or why the condition is refused. */
  matched?: boolean
  failure?: string
  refused?: { message: string; position: object }[]
}

/** One line of input-hashes.jsonl. */
export interface HashVector {
  toolName: string
  input: unknown
  hash: string
}

/** One line of sealed-inputs.jsonl. */
export interface SealedVector {
  apiKey: string
  toolName: string
  /** What the tool gets, and what the client records of it. */
  input: unknown
  shown: unknown
  /** JSON Pointers to the values that masking changed. */
  masked: string[]
  /** Of those, and of values that look sealed. */
  inputSeals: InputSeals
  hash: string
}

export function conditionVectors(): ConditionVector[] {
  const given = [
    ...conformance(),
    ...generated(),
    ...grammar(),
    ...patterns(),
    ...times(),
    ...constants(),
    ...limits(),
  ].map(judged)
  // Most of CEL's suite is not part of the profile: keep the short ones.
  return given.filter(
    ({ source, refused }) => !refused || source.length <= REFUSED_CHARS || source.length > SOURCE_CHARS,
  )
}

export function hashVectors(): HashVector[] {
  const numbers = [0, -0, 1.5, 1e21, 1e-7, 123456789012345680000, 5e-324, 1.7976931348623157e308, 0.1, 1 / 3, 2 ** 53]
  const sampled = fc.sample(fc.jsonValue({ depthSize: 'medium' }), { numRuns: 250, seed: SEED })
  const doubles = fc.sample(fc.double({ noNaN: true, noDefaultInfinity: true }), { numRuns: 200, seed: SEED })
  const given: unknown[] = [...numbers, ...doubles.map((number) => ({ number })), ...sampled]
  given.push({ '\ufb33': 1, '\u{1f600}': 2, é: 3, a: { z: [], '': {} } }, { text: '\u0000\u001f"\\/\u2028é😀' })
  return given.map((input) => ({ toolName: 'refund', input, hash: inputHash('refund', input) }))
}

const CREDENTIAL = '[masked:credential]'

/** Inputs in the second form of the hash, with everything that makes a pointer or a seal hard. */
export function sealedVectors(): SealedVector[] {
  const given: [input: unknown, shown: unknown, ...masked: string[]][] = [
    [{ amount: 5, token: 'k-1' }, { amount: 5, token: CREDENTIAL }, '/token'],
    [{ amount: 5, to: 'ada@example.com' }, { amount: 5, to: '[masked:email]' }, '/to'],
    [{ text: 'mail ada@example.com, please' }, { text: 'mail [masked:email], please' }, '/text'],
    [{ list: ['a', 'k-1', 'c'], n: 1e21 }, { list: ['a', CREDENTIAL, 'c'], n: 1e21 }, '/list/1'],
    [{ card: 4_111_111_111_111_111 }, { card: '[masked:card]' }, '/card'],
    [{ 'ada@example.com': 1, b: 2 }, { '[masked:email]': 1, b: 2 }, ''],
    [{ deep: { 'ada@example.com': [1] }, z: null }, { deep: { '[masked:email]': [1] }, z: null }, '/deep'],
    [{ secret: { user: 'ada', pin: 1234 } }, { secret: CREDENTIAL }, '/secret'],
    ['k-1', CREDENTIAL, ''],
    [
      { 'a/b': 'k-1', 'm~n': 'k-2', '': 'k-3' },
      { 'a/b': CREDENTIAL, 'm~n': CREDENTIAL, '': CREDENTIAL },
      '/a~1b',
      '/m~0n',
      '/',
    ],
    [{ 'é😀': 'k-1', '\ufb33': true }, { 'é😀': CREDENTIAL, '\ufb33': true }, '/é😀'],
    [
      { token: 'k-1', note: { tachoSeal: 'deadbeef' }, more: [{ tachoSeal: 1, other: 2 }] },
      { token: CREDENTIAL, note: { tachoSeal: 'deadbeef' }, more: [{ tachoSeal: 1, other: 2 }] },
      '/token',
    ],
    [
      { a: { tachoSeal: { tachoSeal: 'k-1' } } },
      { a: { tachoSeal: { tachoSeal: CREDENTIAL } } },
      '/a/tachoSeal/tachoSeal',
    ],
    [
      JSON.parse('{"__proto__":{"token":"k-1"},"amount":5}'),
      JSON.parse(`{"__proto__":{"token":"${CREDENTIAL}"},"amount":5}`),
      '/__proto__/token',
    ],
    [{ constructor: 'k-1', toString: 'b' }, { constructor: CREDENTIAL, toString: 'b' }, '/constructor'],
  ]
  return given.map(([input, shown, ...masked]) => {
    const apiKey = 'tacho_019a0c4437007686a2e13c01640563f0_secret'
    const inputSeals = sealInput(sealKey(apiKey), input, masked)
    const hash = sealedInputHash('refund', input, inputSeals)
    if (sealedInputHash('refund', shown, inputSeals) !== hash) throw new Error('The masked input has another hash')
    if (masked.some((pointer) => valueAt(shown, pointer) === undefined)) throw new Error('A masked value is missing')
    return { apiKey, toolName: 'refund', input, shown, masked, inputSeals, hash }
  })
}

export function linesOf(vectors: readonly unknown[]): string {
  return `${vectors.map((vector) => JSON.stringify(vector)).join('\n')}\n`
}

const DEFAULTS: Facts = { tool: { name: 'refund', input: {} }, now: 0 }

function judged(vector: ConditionVector): ConditionVector {
  const compiled = compileCondition(vector.source)
  if (!compiled.ok) return { ...vector, refused: compiled.faults.map((fault) => ({ ...fault })) }
  const { repeat } = vector
  const repeated = { list: Array(repeat).fill(0), text: 'a'.repeat(repeat ?? 0) }
  const facts =
    repeat === undefined ? (vector.facts ?? DEFAULTS) : { ...DEFAULTS, tool: { name: 'refund', input: repeated } }
  const result = evaluate(compiled.condition, facts)
  return result.ok ? { ...vector, matched: result.matched } : { ...vector, failure: result.message }
}

/** CEL's own suite. A result of another type is compared with its literal. */
function conformance(): ConditionVector[] {
  const sources = new Set<string>()
  for (const { expr } of casesOf(tests)) {
    const value = run(expr)
    const literal = value === undefined || value instanceof Failure ? undefined : literalOf(value)
    sources.add(typeof value === 'boolean' || literal === undefined ? expr : `(${expr}) == ${literal}`)
  }
  return [...sources].map((source) => ({ source }))
}

function casesOf(suite: SerializedIncrementalTestSuite): { expr: string }[] {
  const own = (suite.tests ?? []).map(({ original }) => original as { expr: string })
  return [...own, ...(suite.suites ?? []).flatMap(casesOf)]
}

function literalOf(value: Value): string | undefined {
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'number')
    return Number.isFinite(value) ? (/[.e]/.test(String(value)) ? String(value) : `${value}.0`) : undefined
  if (typeof value === 'bigint' || typeof value === 'boolean' || value === null) return String(value)
  if (value instanceof Timestamp) return `timestamp("${showTimestamp(value)}")`
  if (value instanceof Duration) return `duration("${showDuration(value)}")`
  if (value instanceof TypeName) return undefined
  const parts = isList(value) ? value.map(literalOf) : isMap(value) ? entriesOf(value) : []
  if (parts.includes(undefined)) return undefined
  return isList(value) ? `[${parts.join(', ')}]` : `{${parts.join(', ')}}`
}

function entriesOf(map: ReadonlyMap<string, Value>): (string | undefined)[] {
  return Array.from(map, ([key, value]) => {
    const literal = literalOf(value)
    return literal === undefined ? undefined : `${JSON.stringify(key)}: ${literal}`
  })
}

/** Conditions as people do not write them, with facts of every kind. */
function generated(): ConditionVector[] {
  const text = fc.constantFrom('', 'a', 'refund', 'é😀')
  const facts: fc.Arbitrary<Facts> = fc.record({
    tool: fc.record({ name: text, input: inputs({ nulls: true }) }),
    agent: fc.record({ id: text, name: text }),
    run: fc.record({ id: text, cost: fc.constantFrom(0, 1.5, 12), totalTokens: fc.nat(9), toolCalls: fc.nat(3) }),
    session: fc.record({ id: text }),
    risk: fc.record({ signals: fc.array(text, { maxLength: 3 }) }),
    now: fc.constantFrom(0, Date.UTC(2026, 2, 29, 0, 59, 59, 999), Date.UTC(2026, 11, 31, 23, 30), -1),
  })
  const source = expressions.filter(({ length }) => length <= SOURCE_CHARS)
  return fc
    .sample(fc.tuple(source, facts), { numRuns: 700, seed: SEED })
    .map(([one, given]) => ({ source: one, facts: given }))
}

/** Operators in any order: mostly refused, each at the same place with the same words. */
function grammar(): ConditionVector[] {
  const wrong = [
    'a',
    'tool',
    'tool.x',
    'now.x',
    '1u',
    'b"x"',
    '"',
    '1 +',
    '(',
    '[1',
    '{"a": 1',
    'a.b(',
    'x && and',
    '=',
    '“',
    '1 = 1',
  ]
  const more = [
    'true && (',
    '"\\q"',
    '1e999 > 0.0',
    '9223372036854775808 > 0',
    'has(1)',
    '[1].all(tool, true)',
    '{1: 2} == {}',
    'a ? b',
  ]
  const long = ['a'.repeat(4_097), `${'('.repeat(120)}true${')'.repeat(120)}`, Array(240).fill('true').join(' && ')]
  return [...fc.sample(chains, { numRuns: 150, seed: SEED }), ...wrong, ...more, ...long].map((source) => ({ source }))
}

/** An input that cannot be read beside other failures: it counts before them, in any order. */
const UNREADABLE = [
  'tool.input.text == "a"',
  'tool.input.text == "a" || true',
  'tool.input.text == "a" && false',
  '[0][size(tool.name)] == 1 || tool.input.text == "a"',
  'tool.input.text == "a" || [0][size(tool.name)] == 1',
  '[0][size(tool.name)] == 1 && tool.input.text == "a"',
  '[0][size(tool.name)] == 1 || tool.input.text == "a" || [0][size(tool.name) + 1] == 1',
  '(tool.input.text == "a" && false) || [0][size(tool.name)] == 1',
  '[1, 2, 3].exists(x, x == 2 ? tool.input.text == "a" : [0][x] == 1)',
  '[1, 2, 3].all(x, x == 2 ? tool.input.text == "a" : [0][x] == 1)',
  '[1, 2, 3].all(x, x < 2 ? [0][x] == 1 : tool.input.text == "a" || x == 2)',
  '[1, 2, 3].exists(x, x == 3 || (x == 2 ? tool.input.text == "a" : [0][x] == 1))',
  '[1, 2, 3].exists_one(x, x == 2 ? tool.input.text == "a" : [0][x] == 1)',
  '[1, 2, 3].filter(x, x == 2 ? tool.input.text == "a" : [0][x] == 1) == []',
]

const PATTERNS = [
  '^a',
  'b$',
  '^$',
  '',
  'a|b',
  '^(delete|drop)_',
  '[a-f]+$',
  '[^a-f]',
  '(?i)REF',
  '(?i)[k-s]x',
  '(?i)straSSe',
  'a{2,3}b',
  'a{0}b',
  '\\.pdf$',
  '\\d{3}-\\d{4}',
  '\\w+@\\w+\\.com',
  '\\bfoo\\b',
  '\\Bo\\b',
  '(?m)^b$',
  '(?s)a.b',
  'a.b',
  '\\pL+',
  '\\p{Lu}',
  '\\PN',
  '[[:alpha:]]+[[:^digit:]]',
  '[\\d\\-x]',
  '\\x41\\x{1F600}',
  '\\Qa.b\\E',
  'a*?b+?c??',
  '(?P<n>a)(?:b)',
  '\\101',
  '[]a]',
  '[a-]',
  '(a*)*b',
  '(?i:A)b',
  'a(?i)b|C',
  '(|a)b',
  '(?i)é',
  '(?i)\\x{212a}',
  '.{2}',
  '\\Aab\\z',
  '\\s+\\S',
  '[\\s\\S]',
  'x{,3}',
  'a{',
  '(?i)[^k]',
  '(?U)a+',
  '(',
  '[',
  'a**',
  '*a',
  '\\1',
  '(?=a)',
  '(?<!a)b',
  'a{2,1}',
  'a{1001}',
  '\\q',
  '[b-a]',
  '(?P<n>a)(?P<n>b)',
  'a{201}',
  '(?z)',
  '\\C',
  'a++',
  ')',
]
const TEXTS = [
  '',
  'a',
  'b',
  'ab',
  'aab',
  'aaab',
  'refund',
  'REFUND',
  'delete_all',
  'x.pdf',
  'xpdf',
  '555-1234',
  'me@example.com',
  'a foo b',
  'food',
  'a\nb',
  'é',
  'É',
  '😀',
  'A😀',
  'ſ',
  'K',
  'k',
  'a.b',
  'abc',
  ' \t',
  '-',
  ']',
  'x{,3}',
  '{',
  'Straße',
  'STRASSE',
  'ab\n',
  '12',
  '_',
]

/** One line for each pattern: which of the texts it matches. */
function patterns(): ConditionVector[] {
  return PATTERNS.map((pattern) => {
    const matches = `matches(${JSON.stringify(pattern)})`
    const compiled = compileCondition(`tool.name.${matches}`)
    if (!compiled.ok) return { source: `tool.name.${matches}` }
    const found = TEXTS.map((name) => evaluate(compiled.condition, { tool: { name }, now: 0 }))
    const expected = found.map((result) => result.ok && result.matched).join(', ')
    const facts = { tool: { name: 'refund', input: { texts: TEXTS } }, now: 0 }
    return { source: `tool.input.texts.map(x, x.${matches}) == [${expected}]`, facts }
  })
}

function times(): ConditionVector[] {
  const zones = [
    '',
    '"Europe/Berlin"',
    '"america/new_york"',
    '"Asia/Kathmandu"',
    '"+05:30"',
    '"UTC"',
    '"Mars/Base"',
    '"+24:00"',
  ]
  const fields = [
    'getFullYear',
    'getMonth',
    'getDate',
    'getDayOfMonth',
    'getDayOfWeek',
    'getDayOfYear',
    'getHours',
    'getMinutes',
    'getMilliseconds',
  ]
  const at = [
    '2026-03-29T01:30:00Z',
    '1969-12-31T23:59:59.9999999Z',
    '2024-02-29T12:00:00+14:00',
    '0001-01-01T00:00:00Z',
    '9999-12-31T23:59:59Z',
  ]
  const checks = zones.flatMap((zone) =>
    fields.flatMap((field) =>
      at.map((time) => `timestamp("${time}").${field}(${zone}) in [0, 1, 2, 5, 28, 30, 59, 999, 2026, 1969]`),
    ),
  )
  const texts = [
    '2026-11-20',
    '2026-02-30T00:00:00Z',
    '2026-11-20T24:00:00Z',
    '10000-01-01T00:00:00Z',
    '2026-11-20T09:00:00.1234567891Z',
    '1h30m',
    '-1.5s',
    '1d',
    '300000h',
    '.5s',
    '1e3',
    '0x10',
    ' 1',
    '1.',
    '+7',
    'NaN',
    'T',
    'true',
  ]
  const named = texts.flatMap((text) =>
    ['timestamp', 'duration', 'int', 'double', 'bool'].map((name) => [name, text] as const),
  )
  const literal = named.map(([name, text]) => ({ source: `string(${name}(${JSON.stringify(text)})) != "?"` }))
  const given = named.map(([name, text]) => ({
    source: `string(${name}(string(tool.input.text))) != "?"`,
    facts: { ...DEFAULTS, tool: { name: 'refund', input: { text } } },
  }))
  const doubles = ['1e21', '1e-7', '123456789.125', '0.1 + 0.2', '5e-324', '-0.0', '1.0 / 0.0', '100.0'].map(
    (one) => `string(${one}) == "1"`,
  )
  return [...[...checks, ...doubles].map((source) => ({ source })), ...literal, ...given]
}

/** Parts that fail for every call, parts that only look so, and the claims of a server. */
function constants(): ConditionVector[] {
  const sources = [
    'now > timestamp("2026-01-01")',
    'duration("30d") > duration("1h") || tool.name == "a"',
    'tool.input.a == 1.0 && int("abc") > 1 && double("x") > 1.0',
    '1 / 0 == 1',
    '1 % (1 - 1) == 1',
    'run.toolCalls / 0 > 1',
    'run.toolCalls % 0 > 1',
    'run.cost / 0.0 > 1.0',
    'true || 1 / 0 == 1',
    '1 / 0 == 1 || true',
    'tool.name == "a" ? 1 / 0 == 1 : false',
    '[1, 2][2] == tool.input.a',
    '{"a": 1}.b == tool.input.a',
    'has({"a": 1}.b)',
    'has({"a": tool.name}.b)',
    '[1, 0].exists(x, 1 / x == 1)',
    '[1, 0].all(x, 1 / x == 1)',
    'tool.input.all(x, [1].all(y, x == "a" && 1 / (y - y) > 0))',
    'tool.input.all(x, [0].all(x, 1 / x > 0))',
    '9223372036854775807 + 1 > run.toolCalls',
    'tool.annotations.readOnlyHint == true',
    'has(tool.annotations.title) && tool.annotations.title.startsWith("a")',
    'tool.annotation == {}',
    ...SERVER_CONDITIONS,
  ]
  const tools: Facts['tool'][] = [
    { name: 'refund', input: { a: 1 }, annotations: { readOnlyHint: true, title: 'ab' } },
    { name: 'a', annotations: null },
    { name: 'drop_table', server: 'db' },
    { name: 'mcp__db__drop_table' },
    { name: 'mcp__db__drop__table' },
    { name: 'mcp__a b__\n__c', server: '' },
    { name: 'mcp__db__drop_table', server: 'other' },
    { name: 'mcp____x' },
    { name: 'mcp__db__' },
    { name: 'xmcp__db__y', server: null },
  ]
  return sources.flatMap((source) => tools.map((tool) => ({ source, facts: { tool, now: 0 } })))
}

/** Both spellings of the tool of a server. A condition without `tool.server` sees the name as the client says it. */
const SERVER_CONDITIONS = [
  'tool.server == "db" && tool.name == "drop_table"',
  'tool.server != "" && tool.name.startsWith("mcp__")',
  'tool.server == ""',
  'tool.server.matches("^[a-z ]+$") && tool.name.contains("__")',
  'tool.server in ["other", "a b"] || [tool.name].exists(name, name == "drop__table")',
  'tool.name == "mcp__db__drop_table"',
  'tool.name == "drop_table"',
  '!(tool.name in ["drop_table", "a"])',
]

/** Each loop at the last size that fits into the steps, and one past it. */
function limits(): ConditionVector[] {
  const sources = [
    'tool.input.list.exists(a, tool.input.list.exists(b, false))',
    'tool.input.list.all(a, a == 0.0 && string(a) != "x" && a in tool.input.list)',
    'tool.input.list.all(a, timestamp("2026-11-20T09:00:00Z") > now)',
    'tool.input.list.all(a, duration("1h") < duration("2h") && int("12") == 12)',
    'tool.input.list.all(a, tool.input.list == tool.input.list)',
    'tool.input.list.map(a, a).filter(a, a > 0.0).size() == 0',
    'tool.input.list.all(a, size(tool.input.text) >= 0)',
    'tool.input.list.all(a, tool.input.text.matches("^a*$"))',
    'tool.input.text.split("a").size() > 0 && tool.input.text.contains("aaaaaaaab")',
    'tool.input.list.all(a, tool.input.text.upperAscii() == tool.input.text + "")',
    'tool.input.list.all(a, now.getHours("Europe/Berlin") >= 0)',
  ]
  const unreadable = UNREADABLE.map((source) => ({ source, repeat: POLICY_LIMITS.inputValues }))
  const bounded = sources.flatMap((source) => {
    const fits = (repeat: number) => !('failure' in judged({ source, repeat }))
    let fitting = 0
    let over: number = POLICY_LIMITS.evaluationSteps
    while (over - fitting > 1) {
      const middle = Math.floor((fitting + over) / 2)
      if (fits(middle)) fitting = middle
      else over = middle
    }
    return [fitting, over].map((repeat) => ({ source, repeat }))
  })
  return [...bounded, ...unreadable]
}
