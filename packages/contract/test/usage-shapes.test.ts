/** Whole answers of providers and frameworks, which the tests of both SDKs read too. docs/cost.md has the table. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { callCounts, USAGE_NAMES } from '../src/record/usage-shapes.ts'

interface Vector {
  shape: string
  source: string
  usageAt: string
  answer: Record<string, unknown>
  counts: Record<string, number>
}

const NONE = Object.fromEntries(
  Object.keys(USAGE_NAMES).map((name) => [name, /^(?:prompt|completion|total)Tokens$/.test(name) ? null : 0]),
)
const file = new URL('../vectors/usage-shapes.json', import.meta.url)
const vectors = JSON.parse(readFileSync(file, 'utf8')) as Vector[]

function usageIn({ answer, usageAt }: Vector): unknown {
  const steps = usageAt === '' ? [] : usageAt.split('.')
  return steps.reduce<unknown>((value, step) => (value as Record<string, unknown>)[step], answer)
}

for (const vector of vectors) {
  test(`${vector.shape}: each token is counted, once`, () => {
    assert.deepEqual(callCounts(usageIn(vector)), { ...NONE, ...vector.counts, invalid: [], unknown: [] })
  })
}

test('the table of shapes in docs/cost.md is that of the vectors', () => {
  const page = new URL('../../../docs/cost.md', import.meta.url)
  const text = readFileSync(page, 'utf8')
  const rows = vectors.map((vector) => {
    const { promptTokens, completionTokens, totalTokens: _, ...parts } = vector.counts
    const shown = Object.entries(parts).map(([name, count]) => `\`${name}\` ${count}`)
    const usage = JSON.stringify(usageIn(vector)).replaceAll('|', '\\|')
    const counts = [promptTokens, completionTokens ?? '', shown.join(', ')].join(' | ')
    return `| ${vector.shape} | \`${usage.length > USAGE_CHARS ? `${usage.slice(0, USAGE_CHARS)}…` : usage}\` | ${counts} |`
  })
  const table = ['| Shape | Its usage begins | Input | Output | Parts |', '|---|---|---|---|---|', ...rows].join('\n')
  const written = text.replace(
    /(<!-- usage shapes -->\n)[^]*?(<!-- end -->)/,
    (_, start, end) => `${start}\n${table}\n\n${end}`,
  )
  if (process.env['UPDATE_DOCS'] === '1') writeFileSync(page, written)
  else assert.equal(text, written, 'UPDATE_DOCS=1 npm test -- contract/test/usage-shapes')
})

const USAGE_CHARS = 120

test('a count that is no count of tokens is named, and the next name does not hide it', () => {
  for (const bad of ['120 ', '1e3', '-1', '12345678901', 1.5, -1, 1e9 + 1, true, [1]]) {
    assert.deepEqual(callCounts({ promptTokens: bad, input_tokens: 4 })?.invalid, ['promptTokens'])
    assert.deepEqual(callCounts({ prompt_tokens: 4, prompt_tokens_details: { cached_tokens: bad } })?.invalid, [
      'prompt_tokens_details.cached_tokens',
    ])
  }
  for (const none of [null, undefined, [], 'x', {}, { tokens: {} }, { promptTokens: null }])
    assert.equal(callCounts(none), null)
  assert.equal(callCounts(JSON.parse('{"__proto__":{"promptTokens":5},"constructor":1}')), null)
})

test('input is never smaller than its parts', () => {
  assert.equal(callCounts({ promptTokens: 110, cachedTokens: 10_000 })?.promptTokens, 10_110)
  assert.equal(callCounts({ promptTokens: 5, audioInputTokens: 9 })?.promptTokens, 9)
  assert.equal(callCounts({ completionTokens: 5, reasoningTokens: 9 })?.completionTokens, 14)
})

test('a text that is a whole number counts, and a side that nobody can read is unknown', () => {
  const texts = callCounts({
    promptTokens: '120',
    completion_tokens: '30',
    prompt_tokens_details: { cached_tokens: '9' },
  })
  const { promptTokens, completionTokens, cachedTokens, invalid, unknown } = texts ?? {}
  assert.deepEqual([promptTokens, completionTokens, cachedTokens, invalid, unknown], [120, 30, 9, [], []])
  const cases: [object, string[]][] = [
    [{ promptTokens: '120 ', completionTokens: 30 }, ['promptTokens']],
    [{ promptTokens: 120, completionTokens: -1 }, ['completionTokens']],
    [{ promptTokens: 120, completionTokens: null }, ['completionTokens']],
    [{ completionTokens: 30 }, ['promptTokens']],
    [{ inputTokens: { x: 120 }, outputTokens: 3 }, ['promptTokens']],
    [{ input_tokens: [5], output_tokens: 3 }, ['promptTokens']],
    [{ input_tokens: 10, cache_read_input_tokens: 'lots', output_tokens: 3 }, ['promptTokens']],
    [{ candidatesTokenCount: 4, promptTokenCount: 9, thoughtsTokenCount: 1.5 }, ['completionTokens']],
    [{ input: 10, input_odd_tokens: 'lots', output: 3 }, ['promptTokens']],
    [{ promptTokens: 'x', completionTokens: 30, totalTokens: 150 }, []],
    [{ promptTokens: 10, cachedTokens: 'lots', completionTokens: 3 }, []],
    [{ promptTokens: 120 }, []],
    [{ tokens: 12 }, []],
  ]
  for (const [usage, unknown] of cases) assert.deepEqual(callCounts(usage)?.unknown, unknown, JSON.stringify(usage))
})
