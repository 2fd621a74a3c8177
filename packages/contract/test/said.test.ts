import assert from 'node:assert/strict'
import { test } from 'node:test'
import { saidIn, SAID_CHARS } from '../src/runs/question-answer.ts'

const user = (content: unknown) => ({ role: 'user', content })

test('a question is the text of a user, in one line', () => {
  assert.deepEqual(saidIn('USER_INPUT', 'question', { text: ' Where is\n\nmy order? ' }), {
    question: 'Where is my order?',
    answer: null,
  })
  assert.equal(saidIn('USER_INPUT', 'q', { content: [{ type: 'text', text: 'In parts' }] })?.question, 'In parts')
  const long = saidIn('USER_INPUT', 'q', { text: 'x'.repeat(500_000) })?.question ?? ''
  assert.equal(long.length, SAID_CHARS)
  for (const payload of [{}, { text: '' }, { text: 5 }, { text: '[left out]' }, { content: {} }]) {
    assert.equal(saidIn('USER_INPUT', 'q', payload), null)
  }
})

test('of a conversation that is sent again, the question is the last one; results of tools are none', () => {
  const messages = [
    { role: 'system', content: 'Be kind.' },
    user('First?'),
    { role: 'assistant', content: 'Yes.' },
    user([{ type: 'text', text: 'Second?' }]),
    user([{ type: 'tool_result', content: 'a result' }]),
    null,
  ]
  const said = saidIn('LLM_CALL', 'call', { messages, output: { role: 'assistant', content: 'Sure.' } })
  assert.deepEqual(said, { question: 'Second?', answer: 'Sure.' })
  assert.equal(saidIn('LLM_CALL', 'call', { messages: 'none', output: 'Sure.' })?.question, null)
})

test('an answer is the output of a model, or the last message that a hook of a coding agent reports', () => {
  const output = { role: 'assistant', content: '', tool_calls: [{ function: { name: 'f', arguments: '{}' } }] }
  assert.equal(saidIn('LLM_CALL', 'call', { output }), null)
  assert.equal(saidIn('AGENT_STEP', 'answer', { text: 'Done.' })?.answer, 'Done.')
  assert.equal(saidIn('AGENT_STEP', 'plan', { text: 'Think.' }), null)
  assert.equal(saidIn('TOOL_CALL', 'answer', { text: 'Done.', output: 'x' }), null)
})
