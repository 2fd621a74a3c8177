import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { partsOf, thresholdOf, UNKNOWN_USAGE, withMedia, withUnknown } from '../../../src/storage/runs/usage.ts'
import { usageOf } from '../../../src/domain/record/usage.ts'

const NONE = { context: 0, ...partsOf(() => 0) }
const tokensOf = (usage: unknown, rest = {}) => usageOf('LLM_CALL', { model: 'm', usage, ...rest })?.uncosted

test('tokens are split as each provider reports them', () => {
  const cases: [name: string, usage: unknown, expected: Partial<typeof NONE>][] = [
    ['contract', { promptTokens: 10, completionTokens: 4 }, { input: 10, output: 4 }],
    [
      'contract, with parts',
      { promptTokens: 10, completionTokens: 4, cachedTokens: 6, cacheWriteTokens: 1, reasoningTokens: 3 },
      { input: 3, cacheRead: 6, cacheWrite: 1, output: 1, reasoning: 3 },
    ],
    [
      'OpenAI, chat completions',
      {
        prompt_tokens: 100,
        completion_tokens: 50,
        total_tokens: 150,
        prompt_tokens_details: { cached_tokens: 60, audio_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 20 },
      },
      { input: 40, cacheRead: 60, output: 30, reasoning: 20 },
    ],
    [
      'OpenAI, responses',
      {
        input_tokens: 100,
        input_tokens_details: { cached_tokens: 60 },
        output_tokens: 50,
        output_tokens_details: { reasoning_tokens: 20 },
        total_tokens: 150,
      },
      { input: 40, cacheRead: 60, output: 30, reasoning: 20 },
    ],
    [
      'Anthropic, whose input_tokens leave out the cache',
      {
        input_tokens: 5,
        cache_read_input_tokens: 70,
        cache_creation_input_tokens: 30,
        cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 },
        output_tokens: 9,
      },
      { input: 5, cacheRead: 70, cacheWrite: 10, cacheWrite1h: 20, output: 9 },
    ],
    [
      'AI SDK 5',
      { inputTokens: 100, outputTokens: 50, totalTokens: 150, cachedInputTokens: 60, reasoningTokens: 20 },
      { input: 40, cacheRead: 60, output: 30, reasoning: 20 },
    ],
    [
      'AI SDK 6',
      {
        inputTokens: 100,
        inputTokenDetails: { noCacheTokens: 30, cacheReadTokens: 60, cacheWriteTokens: 10 },
        outputTokens: 50,
        outputTokenDetails: { textTokens: 30, reasoningTokens: 20 },
      },
      { input: 30, cacheRead: 60, cacheWrite: 10, output: 30, reasoning: 20 },
    ],
    [
      'more cached than input: input leaves out the cache',
      { inputTokens: 5, cachedInputTokens: 60 },
      { input: 5, cacheRead: 60 },
    ],
    [
      'audio and images, of which a part is cached',
      {
        input_tokens: 1_000,
        output_tokens: 300,
        input_token_details: {
          audio_tokens: 900,
          image_tokens: 30,
          cached_tokens: 200,
          cached_tokens_details: { audio_tokens: 150, image_tokens: 10 },
        },
        output_token_details: { audio_tokens: 280 },
      },
      {
        context: withMedia(0),
        input: 30,
        cacheRead: 40,
        audioInput: 750,
        cachedAudio: 150,
        imageInput: 20,
        cachedImage: 10,
        output: 20,
        audioOutput: 280,
      },
    ],
    [
      'more audio than uncached input: the rest is cached',
      { promptTokens: 100, cachedTokens: 60, audioInputTokens: 90 },
      { context: withMedia(0), audioInput: 40, cacheRead: 60 },
    ],
    ['only a total', { totalTokens: 9 }, { input: 9 }],
    ['a total and one part', { totalTokens: 9, completionTokens: 4 }, { input: 5, output: 4 }],
    ['a total and the other part', { totalTokens: 9, promptTokens: 4 }, { input: 4, output: 5 }],
    ['an invalid part', { promptTokens: 10, reasoningTokens: 1.5 }, { input: 10 }],
  ]
  for (const [name, usage, expected] of cases) assert.deepEqual(tokensOf(usage), { ...NONE, ...expected }, name)
})

test('a call with a cost, and one without tokens, has nothing to estimate; without usage it is unknown', () => {
  assert.equal(tokensOf({ promptTokens: 1 }, { cost: 0 }), null)
  assert.equal(tokensOf({ promptTokens: 1 }, { cost: 1.5 }), null)
  assert.deepEqual(tokensOf({ promptTokens: 1 }, { cost: 'free' }), { ...NONE, input: 1 })
  for (const usage of [{ promptTokens: 0 }, { input_tokens: 0, output_tokens: 0 }]) assert.equal(tokensOf(usage), null)
  for (const usage of [undefined, null, {}, [], 'x', { promptTokens: '7 ' }, { promptTokens: null }]) {
    assert.deepEqual(tokensOf(usage), { ...NONE, context: UNKNOWN_USAGE })
  }
})

test('a call with one unknown side is known to have used at least the other', () => {
  for (const usage of [
    { promptTokens: '120 ', completionTokens: 30 },
    { promptTokens: { x: 1 }, completionTokens: 30 },
    { completionTokens: 30 },
  ]) {
    assert.deepEqual(tokensOf(usage), { ...NONE, context: withUnknown(0), output: 30 }, JSON.stringify(usage))
  }
  const media = tokensOf({ input_tokens: 200_001, audioInputTokens: 1, output_tokens: -1 })
  assert.deepEqual(media, { ...NONE, context: withUnknown(withMedia(200_000)), input: 200_000, audioInput: 1 })
  assert.equal(thresholdOf(media?.context ?? 0), 200_000)
  for (const context of [0, 128_000, 512_000]) {
    for (const stored of [context, withMedia(context), withUnknown(context), withUnknown(withMedia(context))])
      assert.equal(thresholdOf(stored), context)
  }
  assert.equal(tokensOf({ promptTokens: '120', completionTokens: 30 })?.context, 0)
  assert.equal(tokensOf({ promptTokens: 'x', completionTokens: 30, totalTokens: 150 })?.input, 120)
})

test('a part that cannot be read makes the cost at least what the cheapest parts cost', () => {
  const counts = { promptTokens: 100, completionTokens: 10 }
  const cheapest = { ...NONE, context: withUnknown(0), cacheRead: 100, output: 10 }
  for (const part of [
    { cachedTokens: 'many' },
    { prompt_tokens_details: { cached_tokens: -1 } },
    { cachedContentTokenCount: 1.5 },
    { prompt_cache_hit_tokens: {} },
  ]) {
    assert.deepEqual(tokensOf({ ...counts, ...part }), cheapest, JSON.stringify(part))
  }
  const written = { ...counts, cacheWriteTokens: 30, cachedTokens: 'many' }
  assert.deepEqual(tokensOf(written), { ...cheapest, cacheRead: 70, cacheWrite: 30 })
  // Tokens written to the cache, audio and images cost more. Anthropic excludes cached tokens from the input.
  const whole = { ...NONE, context: withUnknown(0), input: 100, output: 10 }
  assert.deepEqual(tokensOf({ ...counts, cacheWriteTokens: 'many' }), whole)
  assert.deepEqual(tokensOf({ input_tokens: 100, output_tokens: 10, cache_read_input_tokens: 'many' }), whole)
  assert.deepEqual(tokensOf({ ...counts, prompt_tokens_details: { audio_tokens: 'many' } }), whole)
})

test('a context is long above a threshold, counting cached tokens', () => {
  const contextOf = (promptTokens: number, cachedTokens = 0) => tokensOf({ promptTokens, cachedTokens })?.context
  assert.deepEqual(
    [128_000, 128_001, 199_999, 200_000, 200_001, 271_999, 272_000, 272_001, 512_001, 1e9].map((tokens) =>
      contextOf(tokens),
    ),
    [0, 128_000, 128_000, 199_999, 200_000, 200_000, 271_999, 272_000, 512_000, 512_000],
  )
  assert.equal(contextOf(200_001, 200_000), 200_000)
  assert.equal(tokensOf({ input_tokens: 1, cache_read_input_tokens: 200_000 })?.context, 200_000)
})

test('no token is lost, whatever a usage says', () => {
  const count = fc.oneof(fc.nat(1_000), fc.constantFrom(null, -1, '7', 1e9))
  const parts = [
    'cachedTokens',
    'cacheWriteTokens',
    'reasoningTokens',
    'cache_read_input_tokens',
    'audioInputTokens',
    'imageOutputTokens',
  ]
  const names = ['promptTokens', 'input_tokens', 'completionTokens', 'output_tokens', 'totalTokens', ...parts]
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...names), count), (usage) => {
      const tokens = tokensOf(usage)
      if (!tokens) return
      const { context: _, ...split } = tokens
      const values = Object.values(split)
      assert.ok(values.every((value) => Number.isInteger(value) && value >= 0))
      const { promptTokens, completionTokens } = usageOf('LLM_CALL', { usage }) ?? {
        promptTokens: 0,
        completionTokens: 0,
      }
      assert.ok(values.reduce((sum, value) => sum + value, 0) >= promptTokens + completionTokens)
    }),
  )
})
