/** What pages and commands show of payloads. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { messagesAt } from '../src/read-payload.ts'

test('a model that asks for a tool is understood in every shape', () => {
  const input = { order: '1007' }
  const text = JSON.stringify(input)
  const outputs: Record<string, unknown>[] = [
    // The shape of our integrations.
    { role: 'assistant', toolCalls: [{ id: 'c1', name: 'get_order', arguments: input }] },
    { role: 'assistant', content: null, tool_calls: [{ function: { name: 'get_order', arguments: text } }] },
    { role: 'assistant', content: [{ type: 'tool_use', name: 'get_order', input }] },
    { toolCalls: [{ toolCallId: 'c1', toolName: 'get_order', input }] },
  ]
  for (const output of outputs) {
    const asked = [{ role: 'assistant', text: '', toolCalls: [{ name: 'get_order', input }] }]
    assert.deepEqual(messagesAt({ output }, 'output'), asked, JSON.stringify(output))
    assert.deepEqual(messagesAt({ output: [output] }, 'output'), asked)
  }
})

test('calls of another shape are left out, not guessed', () => {
  for (const toolCalls of ['get_order', [1, null, {}], { name: 'x' }]) {
    assert.deepEqual(messagesAt({ output: { content: 'yes', toolCalls } }, 'output'), [
      { role: 'assistant', text: 'yes', toolCalls: [] },
    ])
  }
})
