/** Estimates with the data of the price package, against the package's own arithmetic. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { calcPrice, waitForUpdate, type Provider } from '@pydantic/genai-prices'
import { LONG_CONTEXTS } from '@tacho/contract/engine/words.ts'
import fc from 'fast-check'
import { usageOf } from '../../src/domain/record/usage.ts'
import { estimateCalls, toNanos } from '../../src/domain/runs/estimate.ts'
import { partsOf } from '../../src/storage/runs/usage.ts'
import { packageRates } from '../../src/prices/price-thread.ts'

const providers: Provider[] = (await waitForUpdate()) ?? []

test('every threshold of a long context in the package is one that calls are counted by', () => {
  const starts = new Set<number>()
  for (const { prices } of providers.flatMap(({ models }) => models)) {
    for (const one of Array.isArray(prices) ? prices : [{ prices }]) {
      for (const rate of Object.values(one.prices)) {
        if (typeof rate === 'object') for (const { start } of rate.tiers) starts.add(start)
      }
    }
  }
  assert.ok(starts.size > 0)
  assert.deepEqual(
    [...starts].filter((start) => !(LONG_CONTEXTS as readonly number[]).includes(start)),
    [],
  )
})

test('an estimate is what the package itself calculates, to 1e-9', () => {
  const models = [
    'gpt-4o',
    'gpt-5',
    'o3',
    'claude-sonnet-4-5',
    'claude-3-5-sonnet-20241022',
    'gemini-2.5-pro',
    'grok-4',
  ]
  const time = Date.UTC(2026, 5, 1)
  fc.assert(
    fc.property(
      fc.constantFrom(...models),
      fc.record({
        input: fc.integer({ min: 1, max: 600_000 }),
        read: fc.nat(300_000),
        write: fc.nat(100_000),
        hour: fc.nat(100_000),
        output: fc.nat(50_000),
        reasoning: fc.nat(20_000),
      }),
      (model, { input, read, write, hour, output, reasoning }) => {
        const usage = {
          input_tokens: input,
          cache_read_input_tokens: read,
          cache_creation_input_tokens: write + hour,
          cache_creation: { ephemeral_1h_input_tokens: hour },
          output_tokens: output + reasoning,
          output_tokens_details: { reasoning_tokens: reasoning },
        }
        const tokens = usageOf('LLM_CALL', { model, usage })?.uncosted
        assert.ok(tokens)
        const { femtos, unpriced } = estimateCalls([{ model, calls: 1, ...tokens }], packageRates, () => time)
        const expected = calcPrice(
          {
            input_tokens: input + read + write + hour,
            cache_read_tokens: read,
            cache_write_tokens: write + hour,
            cache_write_1h_tokens: hour,
            output_tokens: output + reasoning,
          },
          model,
          { timestamp: new Date(time) },
        )
        assert.ok(expected)
        assert.equal(unpriced, 0)
        assert.ok(Math.abs(toNanos(femtos) / 1e9 - expected.total_price) < 2e-9, `${model} ${toNanos(femtos)}`)
      },
    ),
  )
})

test('a model is found by the names that providers and gateways give it', () => {
  const input = (name: string) => {
    const rate = packageRates(name)?.at(-1)?.rates.input
    return typeof rate === 'object' ? rate.base : rate
  }
  for (const name of ['gpt-4o', 'GPT-4o', 'openai/gpt-4o', 'openai:gpt-4o']) assert.equal(input(name), 2.5, name)
  for (const name of ['claude-sonnet-4-5', 'anthropic/claude-sonnet-4-5', 'unheard/claude-sonnet-4-5']) {
    assert.equal(input(name), 3, name)
  }
  assert.notEqual(packageRates('us.anthropic.claude-sonnet-4-20250514-v1:0'), null)
  for (const name of ['', 'our-llama', 'x/y/z', '__proto__', 'constructor', ':', '/'])
    assert.equal(packageRates(name), null, name)
})

test('prices follow the time where the package says so', () => {
  const dated = packageRates('deepseek-v4-pro')
  assert.ok(dated?.some(({ daily }) => daily !== undefined))
  const at = (hour: number) => {
    const time = Date.UTC(2026, 10, 22, hour)
    const tokens = { context: 0, ...partsOf(() => 0), input: 1_000_000 }
    const calls = [{ model: 'deepseek-v4-pro', calls: 1, ...tokens }]
    const expected = calcPrice({ input_tokens: 1_000_000 }, 'deepseek-v4-pro', { timestamp: new Date(time) })
    return [
      toNanos(
        estimateCalls(
          calls,
          () => dated,
          () => time,
        ).femtos,
      ) / 1e9,
      expected?.total_price,
    ]
  }
  for (const hour of [0, 1, 3, 4, 6, 9, 10, 23]) {
    const [estimated, expected] = at(hour)
    assert.equal(estimated, expected, `${hour}:00`)
  }
})

test('variants of gateways and reordered names have the price of their model', () => {
  for (const [name, plain] of [
    ['openai/gpt-4o:nitro', 'openai/gpt-4o'],
    ['openai/gpt-4o:online', 'openai/gpt-4o'],
    ['claude-4.5-sonnet-20250929', 'claude-sonnet-4-5-20250929'],
    ['anthropic/claude-4-sonnet:floor', 'anthropic/claude-sonnet-4'],
    ['claude-3.5-sonnet', 'claude-3-5-sonnet'],
  ] as const) {
    assert.notEqual(packageRates(plain), null, plain)
    assert.deepEqual(packageRates(name), packageRates(plain), name)
  }
  assert.deepEqual(packageRates('meta-llama/llama-3.3-70b-instruct:free'), [{ rates: { input: 0, output: 0 } }])
  assert.equal(packageRates('nobody/knows-it:nitro'), null)
})

test('audio and images have their own prices; without them, the cost is at least that of text', () => {
  const time = Date.UTC(2026, 5, 1)
  const details = {
    audio_tokens: 900,
    image_tokens: 40,
    cached_tokens: 100,
    cached_tokens_details: { audio_tokens: 80 },
  }
  const usage = {
    input_tokens: 1_000,
    output_tokens: 500,
    input_token_details: details,
    output_token_details: { audio_tokens: 400 },
  }
  const estimate = (model: string, sent: unknown) => {
    const tokens = usageOf('LLM_CALL', { model, usage: sent })?.uncosted
    assert.ok(tokens)
    const { femtos, unpriced } = estimateCalls([{ model, calls: 1, ...tokens }], packageRates, () => time)
    return [toNanos(femtos) / 1e9, unpriced]
  }
  const expected = calcPrice(
    {
      input_tokens: 1_000,
      output_tokens: 500,
      input_audio_tokens: 900,
      input_image_tokens: 40,
      cache_read_tokens: 100,
      cache_audio_read_tokens: 80,
      cache_image_read_tokens: 0,
      output_audio_tokens: 400,
    },
    'gpt-realtime',
    { timestamp: new Date(time) },
  )
  assert.ok(expected && expected.total_price > 0.05)
  assert.deepEqual(estimate('gpt-realtime', usage), [expected.total_price, 0])
  // The table has no price of audio: 2.50 and 10 dollars for a million tokens of text.
  const chat = { prompt_tokens: 1_000, completion_tokens: 100, prompt_tokens_details: { audio_tokens: 900 } }
  assert.deepEqual(estimate('gpt-4o-audio-preview', chat), [0.0035, 1])
  const answer = { prompt_tokens: 1_000, completion_tokens: 100, completion_tokens_details: { audio_tokens: 50 } }
  assert.deepEqual(estimate('gpt-4o-audio-preview', answer), [0.0035, 1])
  const image = { promptTokenCount: 1_000, promptTokensDetails: [{ modality: 'IMAGE', tokenCount: 258 }] }
  assert.deepEqual(estimate('gemini-2.5-flash', image), [0.0003, 0])
  const audio = { promptTokenCount: 1_000, promptTokensDetails: [{ modality: 'AUDIO', tokenCount: 500 }] }
  assert.deepEqual(estimate('gemini-2.5-flash', audio), [0.00065, 0])
  assert.deepEqual(estimate('google/gemma-3-27b-it:free', audio), [0, 0])
})
