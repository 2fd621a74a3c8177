import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TOKEN_NAMES } from '@tacho/contract/record/payload.ts'
import { UNKNOWN_USAGE } from '../../../src/storage/runs/usage.ts'
import { outcomeOf, toUsage, usageOf } from '../../../src/domain/record/usage.ts'

const call = (payload: Record<string, unknown>) => usageOf('LLM_CALL', payload)
const tokens = (usage: Record<string, unknown>) => {
  const { promptTokens, completionTokens, totalTokens } = call({ usage }) ?? {}
  return [promptTokens, completionTokens, totalTokens]
}

test('only LLM_CALL events have usage', () => {
  const payload = { usage: { promptTokens: 1 }, cost: 1 }
  assert.equal(usageOf('TOOL_CALL', payload), null)
  assert.equal(usageOf('llm_call', payload), null)
  const nothing = { model: '', promptTokens: 0, completionTokens: 0, totalTokens: 0, costNanos: 0, uncosted: null }
  assert.deepEqual(call({ usage: { promptTokens: 0 } }), nothing)
  const { uncosted, ...sums } = call({}) ?? {}
  assert.deepEqual([{ ...sums, uncosted: null }, uncosted?.context], [nothing, UNKNOWN_USAGE])
})

test('a token number counts as an integer from 0 to 1e9', () => {
  assert.deepEqual(tokens({ promptTokens: 1e9, completionTokens: 0, totalTokens: 5 }), [1e9, 0, 5])
  assert.deepEqual(tokens({ promptTokens: '7', completionTokens: 3 }), [7, 3, 10], 'a bridge sends texts')
  for (const bad of [1e9 + 1, -1, 1.5, '7 ', '7.0', null, [1], 1e300, Number.NaN]) {
    assert.deepEqual(tokens({ promptTokens: bad, completionTokens: 3 }), [0, 3, 3], String(bad))
  }
  assert.ok(Object.is(tokens({ promptTokens: -0 })[0], 0))
})

test('a missing or invalid total is the sum of its valid parts', () => {
  assert.deepEqual(tokens({ promptTokens: 2, completionTokens: 3 }), [2, 3, 5])
  assert.deepEqual(tokens({ promptTokens: 2, completionTokens: -3, totalTokens: 1e10 }), [2, 0, 2])
  assert.deepEqual(tokens({ totalTokens: 9 }), [0, 0, 9])
  assert.deepEqual(call({ usage: 'much' })?.totalTokens, 0)
})

test('token counts have other names; the first name in the order of the contract counts', () => {
  assert.deepEqual(tokens({ prompt_tokens: 2, completion_tokens: 3, total_tokens: 6 }), [2, 3, 6])
  assert.deepEqual(tokens({ input_tokens: 2, output_tokens: 3 }), [2, 3, 5])
  assert.deepEqual(tokens({ inputTokens: 2, outputTokens: 3 }), [2, 3, 5])
  const names = Object.entries(TOKEN_NAMES)
  for (const [count, known] of names) {
    const place = names.findIndex(([name]) => name === count)
    for (const [at, name] of known.entries()) {
      const rivals = Object.fromEntries(known.slice(at).map((other) => [other, 9]))
      assert.equal(tokens({ ...rivals, [name]: 4 })[place], 4, name)
      // Null means unknown, so the next name is read. Any other value is used.
      assert.equal(tokens({ [name]: null, [known.at(-1) ?? '']: 5 })[place], 5, name)
      if (name !== known.at(-1)) assert.notEqual(tokens({ [name]: 'x', [known.at(-1) ?? '']: 5 })[place], 5, name)
    }
  }
})

test('what Anthropic counts apart is counted: the sums are those of the cost', () => {
  assert.deepEqual(
    tokens({ input_tokens: 110, cache_read_input_tokens: 10_000, output_tokens: 5 }),
    [10_110, 5, 10_115],
  )
})

test('a cost counts from 0 to 1e6 and is kept in integers of 1e-9', () => {
  const cost = (value: unknown) => call({ cost: value })?.costNanos
  assert.equal(cost(1e6), 1e15)
  assert.equal(cost(0.000123456789), 123_457)
  for (const bad of [1e6 + 1, -0.1, '1', null, Number.POSITIVE_INFINITY]) assert.equal(cost(bad), 0, String(bad))
  assert.equal(toUsage({ promptTokens: 0, completionTokens: 0, totalTokens: 0, costNanos: 300_000_000 }).cost, 0.3)
})

test('what a gateway charges is in its usage, and the cost of the call wins', () => {
  const usage = { prompt_tokens: 194, completion_tokens: 2, cost: 0.0123 }
  assert.deepEqual([call({ usage })?.costNanos, call({ usage })?.uncosted], [12_300_000, null])
  assert.equal(call({ usage, cost: 1 })?.costNanos, 1e9)
  for (const bad of ['0.1', -1, null]) assert.equal(call({ usage: { ...usage, cost: bad } })?.costNanos, 0)
})

test('a model is named when it is a text that can be stored', () => {
  assert.equal(call({ model: 'gpt-4o' })?.model, 'gpt-4o')
  for (const bad of [4, null, 'a\0b', '\ud800', 'x'.repeat(256)]) assert.equal(call({ model: bad })?.model, '')
})

test('an outcome is a SESSION_OUTCOME with one of the three statuses', () => {
  for (const status of ['COMPLETED', 'FAILED', 'CANCELLED']) {
    assert.equal(outcomeOf('SESSION_OUTCOME', { status }), status)
    assert.equal(outcomeOf('TOOL_CALL', { status }), null)
  }
  for (const status of ['RUNNING', 'completed', '', null, 1, undefined]) {
    assert.equal(outcomeOf('SESSION_OUTCOME', { status }), null)
  }
})
