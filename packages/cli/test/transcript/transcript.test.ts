import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readTranscript } from '../../src/record/transcript/transcript.ts'
import { transcriptOf } from './chats.ts'

function problemOf(line: string | Buffer): string {
  const read = readTranscript(Buffer.from(line))
  return read.ok ? 'none' : read.problem
}

test('each fault of a line has its own message', () => {
  const message = (text: string): string => `{"messages":[${text}]}`
  assert.deepEqual(
    [
      '{"messages":',
      '[]',
      'null',
      '{}',
      '{"messages":{}}',
      '{"messages":[]}',
      message('7'),
      message('{"content":"hi"}'),
      message('{"role":"narrator"}'),
      message('{"role":"user","content":7}'),
      message('{"role":"assistant","tool_calls":{}}'),
      message('{"role":"assistant","tool_calls":[{"id":7,"function":{"name":"f"}}]}'),
      message('{"role":"assistant","tool_calls":[{"id":"1"}]}'),
      message('{"role":"assistant","tool_calls":[{"id":"1","function":{"name":""}}]}'),
      message('{"role":"tool","tool_call_id":7}'),
    ].map(problemOf),
    [
      'it is not valid JSON',
      'the line is not a JSON object',
      'the line is not a JSON object',
      'it has no array "messages"',
      'it has no array "messages"',
      'its "messages" are empty',
      'message 1 is not a JSON object',
      'message 1 must have one of the roles system, developer, user, assistant, tool',
      'message 1 must have one of the roles system, developer, user, assistant, tool',
      'message 1 has a content that is neither text nor an array',
      'message 1 has "tool_calls" that are not an array',
      'tool call 1 of message 1 has an id that is not text',
      'the function of tool call 1 of message 1 is not a JSON object',
      'tool call 1 of message 1 has no name',
      'message 1 has a "tool_call_id" that is not text',
    ],
  )
  assert.equal(problemOf(Buffer.from([0x22, 0xff, 0x22])), 'it is not valid UTF-8')
})

test('a very deeply nested line is rejected without a crash', () => {
  const deep = `{"messages":[{"role":"user","content":${'['.repeat(200_000)}${']'.repeat(200_000)}}]}`
  assert.equal(problemOf(deep), 'none')
})

test('the hash depends on the bytes of the line', () => {
  const one = transcriptOf({ messages: [{ role: 'user', content: 'hi' }] })
  const other = transcriptOf({ messages: [{ role: 'user', content: 'hi!' }] })
  assert.match(one.hash, /^[0-9a-f]{32}$/)
  assert.notEqual(one.hash, other.hash)
})

test('requests and answers of the Batch API and examples of preference tuning are conversations', () => {
  const answer = { role: 'assistant', content: 'Hello.' }
  const part = { type: 'output_text', text: 'Hello.' }
  const call = { type: 'function_call', call_id: 'c', name: 'find', arguments: '{"a":1}' }
  const result = { type: 'function_call_output', call_id: 'c', output: { rows: 2 } }
  const lines: [line: object, messages: unknown[]][] = [
    [{ body: { messages: [answer] } }, [['assistant', 'Hello.', []]]],
    [{ response: { status_code: 200, body: { choices: [{ message: answer }] } } }, [['assistant', 'Hello.', []]]],
    [
      { body: { instructions: 'Be short.', input: 'Hi' } },
      [
        ['system', 'Be short.', []],
        ['user', 'Hi', []],
      ],
    ],
    [
      { response: { body: { output: [{ type: 'reasoning', summary: [] }, { ...answer, content: [part] }, call] } } },
      [['assistant', [{ type: 'reasoning', summary: [] }, part], ['find']]],
    ],
    [
      { input: [{ role: 'user', content: 'Hi' }, call, result, answer] },
      [
        ['user', 'Hi', []],
        ['assistant', [], ['find']],
        ['tool', '{"rows":2}', []],
        ['assistant', [{ type: 'text', text: 'Hello.' }], []],
      ],
    ],
    [
      { input: { messages: [{ role: 'user', content: 'Hi' }] }, preferred_output: [answer], non_preferred_output: [] },
      [
        ['user', 'Hi', []],
        ['assistant', 'Hello.', []],
      ],
    ],
  ]
  for (const [line, messages] of lines) {
    const read = transcriptOf(line)
    const shown = read.messages.map(({ role, content, toolCalls }) => [
      role,
      content,
      toolCalls.map(({ name }) => name),
    ])
    assert.deepEqual(shown, messages, JSON.stringify(line))
  }
  const timed = transcriptOf({
    response: { body: { created: 1_700_000_000, choices: [{ message: answer }], usage: {} } },
  })
  assert.equal(timed.messages[0]?.source['created_at'], 1_700_000_000)
  assert.deepEqual(Object.keys(timed.fields), ['created', 'usage'])
  for (const line of [
    '{"input":"for an embedding"}',
    '{"choices":[]}',
    '{"response":{"body":{"error":{}}}}',
    '{"input":[7]}',
  ]) {
    assert.equal(problemOf(line), 'it has no array "messages"', line)
  }
})
