/** A recorded call as the beginning of a condition: always valid, whatever a client sent. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileCondition } from '@tacho/policy/compile.ts'
import { callOf } from '../src/policies/draft.ts'

test('fields that a condition can name are offered as they were, and each holds with the tool', () => {
  const input = {
    amount: 5,
    rate: 0.5,
    order: 'A "1"\n',
    dry: false,
    long: `rm -rf /${'x'.repeat(80)}`,
    'not-a-name': 1,
    list: [1],
  }
  const call = callOf({ toolName: 'refund "all"', input })
  assert.deepEqual(call, {
    condition: 'tool.name == "refund \\"all\\""',
    fields: [
      'tool.input.amount >= 5.0',
      'tool.input.rate >= 0.5',
      'tool.input.order == "A \\"1\\"\\n"',
      '!tool.input.dry',
      'tool.input.long.startsWith("rm -rf /xxxxxxxxxxxxxxxxxxxxxx")',
    ],
  })
  for (const field of call.fields) assert.equal(compileCondition(`${call.condition} && ${field}`).ok, true, field)
})

test('a payload that names no tool is no call, and odd values are left out', () => {
  for (const payload of [null, 'text', [], {}, { toolName: 5 }]) assert.equal(callOf(payload), null)
  assert.deepEqual(callOf({ toolName: 'x', input: { big: 1e300, in: true, empty: '' } })?.fields ?? [], [])
  assert.deepEqual(callOf({ toolName: 'x', input: 'text' })?.fields, [])
})
