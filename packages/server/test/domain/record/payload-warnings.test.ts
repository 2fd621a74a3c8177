import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { PAYLOADS } from '@tacho/contract/record/payload.ts'
import { payloadWarnings } from '../../../src/domain/record/payload-facts.ts'
import { usageOf } from '../../../src/domain/record/usage.ts'

const codes = (type: string, payload: Record<string, unknown>) => payloadWarnings(type, payload).map(({ code }) => code)

test('what is understood, empty or null brings no warning', () => {
  const usage = { promptTokens: 1e9, completion_tokens: 0, details: { cached: 'many' } }
  assert.deepEqual(codes('LLM_CALL', { model: 'm', latency: 1.5, cost: 1e6, usage, messages: [], output: 1 }), [])
  assert.deepEqual(codes('LLM_CALL', { cost: null, usage: null, model: null, messages: null }), [])
  assert.deepEqual(codes('LLM_CALL', { usage: { promptTokens: null } }), [])
  for (const type of Object.keys(PAYLOADS)) {
    if (type !== 'SESSION_OUTCOME' && type !== 'SCORE') assert.deepEqual(codes(type, {}), [], type)
  }
  assert.deepEqual(codes('SESSION_OUTCOME', { status: 'CANCELLED' }), [])
  for (const type of ['OTHER', 'constructor', '__proto__'])
    assert.deepEqual(codes(type, { usage: 1, cost: 'x' }), [], type)
})

test('usage and cost that count as zero are named, with the rule and without the value', () => {
  const warnings = payloadWarnings('LLM_CALL', {
    usage: { prompt_tokens: 'SECRET', outputTokens: 1e9 + 1 },
    cost: '0.1',
  })
  assert.deepEqual(warnings, [
    {
      code: 'usage_not_counted',
      message:
        'payload/usage/prompt_tokens must be a whole number between 0 and 1000000000; ' +
        'payload/usage/outputTokens must be a whole number between 0 and 1000000000',
    },
    { code: 'cost_not_counted', message: 'payload/cost must be a number between 0 and 1000000' },
  ])
  assert.deepEqual(codes('LLM_CALL', { usage: 5 }), ['usage_not_counted'])
  assert.match(
    payloadWarnings('LLM_CALL', { usage: { amount: 5 } })[0]?.message ?? '',
    /usage must have one of promptTokens,/,
  )
  assert.deepEqual(codes('LLM_CALL', { cost: 1e6 + 1 }), ['cost_not_counted'])
})

test('an outcome that does not close its run is named', () => {
  for (const status of [undefined, null, 'success', 'completed', 'RUNNING', 1]) {
    assert.deepEqual(codes('SESSION_OUTCOME', { status }), ['outcome_not_understood'], String(status))
  }
})

test('a field that breaks its convention is named', () => {
  const warnings = payloadWarnings('TOOL_CALL', { toolName: 7, latency: -1 })
  assert.deepEqual(
    warnings.map(({ code }) => code),
    ['payload_not_understood'],
  )
  assert.match(
    warnings[0]?.message ?? '',
    /payload\/toolName must be a string; payload\/latency must be a number of at least 0/,
  )
  assert.deepEqual(codes('POLICY_DECISION', { action: 'DESTROY' }), ['payload_not_understood'])
  assert.deepEqual(codes('USER_INPUT', { text: ['no'] }), ['payload_not_understood'])
})

test('of a long list, only the first items are looked at to name a fault', () => {
  let looked = 0
  const items = (first: number, rest: unknown) =>
    Array.from({ length: 50_000 }, (_, index) => (index < first ? 'id' : rest))
  const spied = new Proxy(items(0, 1), { get: (list, key) => (looked++, Reflect.get(list, key) as unknown) })
  const [early] = payloadWarnings('POLICY_DECISION', { policyIds: spied })
  assert.match(early?.message ?? '', /^payload\/policyIds\/0 must be a string/)
  assert.ok(looked < 200, String(looked))
  const [late] = payloadWarnings('POLICY_DECISION', { policyIds: items(30_000, 1) })
  assert.equal(late?.message, 'payload/policyIds has an item of the wrong type')
})

test('whatever a payload holds, there is a warning exactly when a count or cost was lost', () => {
  const value = fc.oneof(fc.integer({ min: -2, max: 5 }), fc.constant(1.5), fc.constant('7 '), fc.constant(null))
  const usage = fc.dictionary(fc.constantFrom('promptTokens', 'input_tokens', 'output_tokens', 'total_tokens'), value)
  fc.assert(
    fc.property(usage, value, (given, cost) => {
      const found = codes('LLM_CALL', { usage: given, cost })
      const counted = usageOf('LLM_CALL', { usage: given, cost })
      const isLost = (sent: unknown) =>
        sent !== undefined && sent !== null && !(Number.isInteger(sent) && (sent as number) >= 0)
      const prompt = given['promptTokens'] ?? given['input_tokens']
      const isAnyLost = [prompt, given['output_tokens'], given['total_tokens']].some(isLost)
      assert.equal(found.includes('usage_not_counted'), isAnyLost)
      assert.equal(found.includes('cost_not_counted'), cost !== null && !(typeof cost === 'number' && cost >= 0))
      if (typeof prompt === 'number' && !isLost(prompt)) assert.equal(counted?.promptTokens, prompt)
    }),
  )
})

test('a cost in the usage that is none is a warning, and does not hide a good one', () => {
  for (const cost of [-1, '1', Number.NaN])
    assert.deepEqual(codes('LLM_CALL', { usage: { promptTokens: 5, cost } }), ['cost_not_counted'])
  assert.deepEqual(codes('LLM_CALL', { usage: { promptTokens: 5, cost: -1, total_cost: 0.5 } }), [])
  assert.equal(usageOf('LLM_CALL', { usage: { promptTokens: 5, cost: -1, total_cost: 0.5 } })?.costNanos, 5e8)
})
