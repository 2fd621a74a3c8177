import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { anyCharacter } from '../../../../contract/test/any-character.ts'
import { issueTitle } from '../../../src/domain/issues/issue.ts'

const titleOf = (detectionType: string, payload: object, policyId: string | null = null) =>
  issueTitle({ detectionType, policyId, payload: JSON.stringify(payload) })

test('what our clients report is a sentence', () => {
  const tool = { toolName: 'get_order' }
  assert.equal(titleOf('TOOL_FAILED', { ...tool, reasonCode: 'TimeoutError' }), 'TimeoutError in get_order')
  assert.equal(titleOf('TOOL_FAILED', { ...tool, reasonCode: 'ECONNREFUSED' }), 'get_order failed: ECONNREFUSED')
  assert.equal(
    titleOf('tool_failed', { ...tool, reasonCode: 'PROVIDER_UNAVAILABLE' }),
    'get_order failed: provider unavailable',
  )
  assert.equal(titleOf('TOOL_FAILED', { ...tool, reasonCode: 'tool_error' }), 'get_order failed')
  for (const reasonCode of ['blocked', 'policy'])
    assert.equal(titleOf('TOOL_BLOCKED', { ...tool, reasonCode }, 'limit'), 'get_order was blocked by limit')
  const id = '01900000-0000-7000-8000-000000000002'
  assert.equal(
    titleOf('TOOL_BLOCKED', { ...tool, reasonCode: 'approval_expired' }, id),
    'get_order was blocked: approval expired',
  )
  assert.equal(titleOf('TOOL_BLOCKED', { ...tool, reasonCode: 'policy' }, id), 'get_order was blocked by a policy')
  assert.equal(titleOf('LOOP_DETECTED', tool), 'get_order is called again and again with the same input')
  assert.equal(
    titleOf('BUDGET_EXCEEDED', { ...tool, reasonCode: 'toolCalls' }),
    'get_order is over the budget of the run: tool calls',
  )
  assert.equal(titleOf('INPUT_CHANGED', tool), 'get_order ran with another input than was judged')
  assert.equal(titleOf('TOOL_CHANGED', tool), 'The definition of get_order changed')
})

test('what others report names its facts', () => {
  assert.equal(titleOf('PROMPT_INJECTION', { toolName: 'Read Mail' }), 'Prompt injection in Read Mail')
  assert.equal(
    titleOf('Explained', { toolName: 'send', reasonCode: 429, model: 'm' }, 'p'),
    'Explained in send with m by p: 429',
  )
  assert.equal(titleOf('LOOP', { tools: ['b', 'a'] }), 'LOOP in b, a')
  assert.equal(titleOf('TOOL_BLOCKED', {}), 'Tool blocked')
  assert.equal(titleOf(' ', { toolName: 5, tools: 'x', reasonCode: null }), 'Detection')
})

test('a title is a line of at most 200 characters', () => {
  const text = fc.string({ unit: anyCharacter, maxLength: 400 })
  fc.assert(
    fc.property(text, text, text, fc.option(text), (type, toolName, reasonCode, policyId) => {
      const title = titleOf(type, { toolName, reasonCode }, policyId)
      assert.ok(title.length > 0 && title.length <= 200 && title.isWellFormed(), title)
      assert.ok(!title.includes('\n'))
    }),
  )
})
