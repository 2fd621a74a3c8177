import assert from 'node:assert/strict'
import { test } from 'node:test'
import { call, draftOf } from './chats.ts'

test('each role becomes its event type, in the order of the messages', () => {
  const { events, problems } = draftOf({
    messages: [
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'Where is A-1?' },
      { role: 'assistant', content: null, tool_calls: [call('c1', 'get_order', '{"id":"A-1"}')] },
      { role: 'tool', tool_call_id: 'c1', name: 'get_order', content: 'shipped' },
      { role: 'assistant', content: 'On its way.' },
    ],
    reward: 1,
  })
  assert.deepEqual(problems, [])
  assert.deepEqual(
    events.map(({ eventType, label }) => [eventType, label]),
    [
      ['AGENT_STEP', 'System prompt'],
      ['USER_INPUT', 'Where is A-1?'],
      ['LLM_CALL', 'get_order'],
      ['TOOL_CALL', 'get_order'],
      ['LLM_CALL', 'On its way.'],
      ['SESSION_OUTCOME', 'COMPLETED'],
    ],
  )
  assert.deepEqual(events[3]?.payload, {
    toolName: 'get_order',
    toolCallId: 'c1',
    input: { id: 'A-1' },
    output: 'shipped',
  })
  assert.deepEqual(events[5]?.payload, { status: 'COMPLETED', field: 'reward', value: 1 })
})

test('a model call keeps its full message', () => {
  const message = { role: 'assistant', content: 'Hi', refusal: null, tool_calls: [call('c1', 'f', 'not JSON')] }
  const { events } = draftOf({ messages: [message] })
  assert.deepEqual(events[0]?.payload['output'], message)
  assert.deepEqual(events[1]?.payload, { toolName: 'f', toolCallId: 'c1', input: 'not JSON' })
})

test('results join their calls by id, and one id used twice is answered in order', () => {
  const { events, problems } = draftOf({
    messages: [
      { role: 'assistant', tool_calls: [call('c1', 'first', '1'), call('c2', 'second', '2')] },
      { role: 'tool', tool_call_id: 'c2', content: 'two' },
      { role: 'tool', tool_call_id: 'c1', content: 'one' },
      { role: 'assistant', tool_calls: [call('c1', 'third', '3')] },
      { role: 'tool', tool_call_id: 'c1', content: 'three' },
    ],
  })
  const tools = events.filter(({ eventType }) => eventType === 'TOOL_CALL').map(({ payload }) => payload)
  assert.deepEqual(problems, [])
  assert.deepEqual(
    tools.map(({ toolName, input, output }) => [toolName, input, output]),
    [
      ['second', 2, 'two'],
      ['first', 1, 'one'],
      ['third', 3, 'three'],
    ],
  )
})

test('functions of the time before tools, and the requests of a batch file, are read', () => {
  const { events, problems } = draftOf({
    custom_id: 'request-1',
    url: '/v1/chat/completions',
    body: {
      model: 'gpt-3.5-turbo-0613',
      messages: [
        { role: 'user', content: 'Weather?' },
        { role: 'assistant', content: null, function_call: { name: 'get_weather', arguments: '{"city":"Bonn"}' } },
        { role: 'function', name: 'get_weather', content: 'rain' },
        { role: 'assistant', content: 'Rain.' },
      ],
    },
  })
  assert.deepEqual(problems, [])
  const [, call, result] = events
  assert.deepEqual([call?.eventType, call?.payload['model']], ['LLM_CALL', 'gpt-3.5-turbo-0613'])
  assert.deepEqual(result?.payload, { toolName: 'get_weather', input: { city: 'Bonn' }, output: 'rain' })
  assert.deepEqual(events[0]?.payload['transcript'], {
    custom_id: 'request-1',
    url: '/v1/chat/completions',
    model: 'gpt-3.5-turbo-0613',
  })
})

test('a call without a result follows its model call', () => {
  const { events } = draftOf({
    messages: [
      { role: 'assistant', tool_calls: [call('c1', 'lost', '{}'), call('c2', 'found', '{}')] },
      { role: 'user', content: 'Hello?' },
      { role: 'tool', tool_call_id: 'c2', content: 'here' },
    ],
  })
  assert.deepEqual(
    events.map(({ label }) => label),
    ['lost, found', 'lost', 'Hello?', 'found', 'COMPLETED'],
  )
})

test('a result without a call is kept and reported', () => {
  const { events, problems } = draftOf({ messages: [{ role: 'tool', tool_call_id: 'c9', name: 'f', content: 'x' }] })
  assert.deepEqual(problems, ['message 1 answers no tool call: it is kept without an input'])
  assert.deepEqual(events[0]?.payload, { toolName: 'f', toolCallId: 'c9', output: 'x' })
})

test('a result that begins with Error is the error of its call', () => {
  const { events } = draftOf({
    messages: [
      { role: 'assistant', tool_calls: [call('c1', 'f', '{}')] },
      { role: 'tool', tool_call_id: 'c1', content: 'Error: no such order' },
    ],
  })
  assert.equal(events[1]?.payload['error'], 'Error: no such order')
})

test('usage of a message counts with it, usage of the line once, with the last model call', () => {
  const own = {
    role: 'assistant',
    content: 'a',
    model: 'm1',
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  }
  const bare = { role: 'assistant', content: 'b' }
  const usages = (line: object): unknown[] =>
    draftOf(line)
      .events.slice(0, 2)
      .map(({ payload }) => payload['usage'])
  const tokens = { promptTokens: 3, completionTokens: 2, totalTokens: 5 }
  assert.deepEqual(usages({ messages: [own, bare], usage: { prompt_tokens: 99 } }), [tokens, undefined])
  assert.deepEqual(usages({ messages: [bare, bare], usage: { promptTokens: 9 } }), [undefined, { promptTokens: 9 }])
  const { events } = draftOf({ messages: [own, bare], model: 'm2', cost: 0.5 })
  assert.deepEqual(
    events.slice(0, 2).map(({ payload }) => [payload['model'], payload['cost']]),
    [
      ['m1', undefined],
      ['m2', 0.5],
    ],
  )
})

test('the first event has all other fields of the line', () => {
  const { events } = draftOf({
    taskId: 7,
    messages: [
      { role: 'user', content: 'x' },
      { role: 'user', content: 'y' },
    ],
  })
  assert.deepEqual(
    events.map(({ payload }) => payload['transcript']),
    [{ taskId: 7 }, undefined, undefined],
  )
})

test('text in parts is joined, and the parts are kept', () => {
  const content = [
    { type: 'text', text: 'Look:' },
    { type: 'image_url', image_url: { url: 'data:' } },
    { type: 'text', text: 'this' },
  ]
  const { events } = draftOf({ messages: [{ role: 'user', content, name: 'ana' }] })
  assert.deepEqual(events[0]?.payload, { text: 'Look:\nthis', content, message: { name: 'ana' } })
})

test('a label is one short line', () => {
  const { events } = draftOf({ messages: [{ role: 'user', content: ` a\n\0b ${'👍'.repeat(300)}` }] })
  assert.match(events[0]?.label ?? '', /^a b 👍+…$/u)
  assert.equal(Array.from(events[0]?.label ?? '').length, 100)
})

test('without an outcome, the last event says it', () => {
  const { events, isClosed } = draftOf({
    messages: [
      { role: 'assistant', tool_calls: [call('c1', 'f', '{}')] },
      { role: 'tool', tool_call_id: 'c1', content: 'Error: no such order' },
    ],
  })
  const error = 'Error: no such order'
  assert.deepEqual([isClosed, events.at(-1)?.payload], [true, { status: 'FAILED', closedBy: 'import', error }])
  assert.equal(draftOf({ messages: [{ role: 'user', content: 'x' }], reward: 1 }).isClosed, false)
})

test('usage of Anthropic, with its cache apart, is counted by the table of the service', () => {
  const usage = { input_tokens: 100, output_tokens: 10, cache_read_input_tokens: 10_000 }
  const { events } = draftOf({ messages: [{ role: 'assistant', content: 'a', usage }] })
  const expected = { promptTokens: 10_100, completionTokens: 10, cachedTokens: 10_000 }
  assert.deepEqual(events[0]?.payload['usage'], expected)
})

test('an unclear outcome is reported, and a missing one uses the default if given', () => {
  const line = { messages: [{ role: 'user', content: 'x' }] }
  assert.deepEqual(draftOf({ ...line, reward: 0.5 }).problems, [
    'its reward is neither success nor failure, so its last event says the outcome',
  ])
  assert.deepEqual(draftOf(line).events[1]?.payload, { status: 'COMPLETED', closedBy: 'import' })
  assert.equal(draftOf(line, { defaultOutcome: 'CANCELLED' }).events[1]?.payload['status'], 'CANCELLED')
})
