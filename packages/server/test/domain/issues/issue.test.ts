import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { anyCharacter } from '../../../../contract/test/any-character.ts'
import { canonicalFacts, groupingOf, normalised } from '../../../src/domain/issues/issue.ts'

const group = (detectionType: string, policyId: string | null = null, payload: object = {}) =>
  groupingOf({ detectionType, policyId, payload: JSON.stringify(payload) })

test('facts are detection type, policy, tool, tool set, reason code and model, and nothing else', () => {
  const payload = {
    toolName: 'send_email',
    tools: ['b', 'a', 'b'],
    reasonCode: 'LIMIT',
    model: 'gpt-9',
    riskSignals: ['x'],
    attempt: 3,
  }
  const { facts, fingerprint } = group('TOOL_BLOCKED', 'p-1', payload)
  assert.deepEqual(facts, {
    detectionType: 'tool_blocked',
    model: 'gpt-9',
    policyId: 'p-1',
    reasonCode: 'limit',
    toolName: 'send_email',
    tools: ['a', 'b'],
  })
  const canonical =
    '{"detectionType":"tool_blocked","model":"gpt-9","policyId":"p-1","reasonCode":"limit",' +
    '"toolName":"send_email","tools":["a","b"]}'
  assert.equal(canonicalFacts(facts), canonical)
  assert.equal(fingerprint, `v1:${hash('sha256', canonical)}`)
  const more = group('TOOL_BLOCKED', 'p-1', { ...payload, riskSignals: [], attempt: 4 })
  assert.equal(more.fingerprint, fingerprint)
})

test('missing or empty facts and other types are left out', () => {
  const bare = group('LOOP').fingerprint
  for (const payload of [
    { toolName: '' },
    { toolName: ' \n' },
    { toolName: null },
    { tools: [] },
    { tools: [null, false, {}] },
  ]) {
    assert.equal(group('LOOP', null, payload).fingerprint, bare, JSON.stringify(payload))
  }
  assert.equal(group('LOOP', '').fingerprint, bare)
  assert.deepEqual(group('LOOP').facts, { detectionType: 'loop' })
})

test('a reason code may be a number', () => {
  assert.equal(group('E', null, { reasonCode: 429 }).fingerprint, group('E', null, { reasonCode: '429' }).fingerprint)
})

test('each fact changes the fingerprint, and no fact is mistaken for another', () => {
  const variants = [
    group('A'),
    group('B'),
    group('A', 'x'),
    group('A', null, { toolName: 'x' }),
    group('A', null, { tools: ['x'] }),
    group('A', null, { tools: ['x', 'y'] }),
    group('A', null, { tools: ['x y'] }),
    group('A', null, { reasonCode: 'x' }),
    group('A', null, { model: 'x' }),
  ]
  assert.equal(new Set(variants.map(({ fingerprint }) => fingerprint)).size, variants.length)
})

const text = fc.string({ unit: anyCharacter, maxLength: 300 })
const record = fc.record({
  detectionType: text,
  policyId: fc.option(text),
  payload: fc.record(
    {
      toolName: text,
      tools: fc.array(text, { maxLength: 120 }),
      reasonCode: fc.oneof(text, fc.integer()),
      model: text,
    },
    { requiredKeys: [] },
  ),
})

test('normalising twice gives the same as normalising once', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter, maxLength: 600 }), (any) => {
      assert.equal(normalised(normalised(any)), normalised(any))
    }),
  )
})

test('extracting facts from facts changes nothing', () => {
  fc.assert(
    fc.property(record, ({ detectionType, policyId, payload }) => {
      const { facts, fingerprint } = group(detectionType, policyId, payload)
      const { detectionType: type = '', policyId: policy = null, ...rest } = facts
      assert.equal(group(type, policy, rest).fingerprint, fingerprint)
    }),
  )
})

test('case, white space, key order and the order of tools make no difference', () => {
  const spaced = (value: string) => ` \t${value.replaceAll(' ', ' \n ')}\u00a0`
  fc.assert(
    fc.property(record, fc.nat(), ({ detectionType, policyId, payload }, seed) => {
      const tools = payload.tools?.toSorted((a, b) => ((a.length * 31 + seed) % 7) - ((b.length * 31 + seed) % 7))
      const other = Object.fromEntries(Object.entries({ ...payload, ...(tools ? { tools } : {}) }).toReversed())
      const same = group(spaced(detectionType), policyId === null ? null : spaced(policyId), other)
      assert.equal(same.fingerprint, group(detectionType, policyId, payload).fingerprint)
    }),
  )
  assert.equal(group('Tool_Blocked', 'P 1').fingerprint, group(' tool_blocked ', 'p  1').fingerprint)
})

test('facts have a maximum length, and long ones still differ', () => {
  const long = (end: string) => group('T', null, { toolName: 'x'.repeat(300) + end })
  assert.equal(long('a').facts.toolName?.length, 200)
  assert.notEqual(long('a').fingerprint, long('b').fingerprint)
  const tools = Array.from({ length: 101 }, (_, index) => `tool ${index}`)
  assert.equal(group('T', null, { tools: tools.slice(0, 100) }).facts.tools?.length, 100)
  assert.equal(group('T', null, { tools }).facts.tools?.length, 100)
  assert.notEqual(group('T', null, { tools }).fingerprint, group('T', null, { tools: tools.slice(1) }).fingerprint)
})
