/** Disguised tool calls: a refused call never passes, and an unreadable answer is not forwarded. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { GUARD, REFUSED, stream } from './guarded-wire.ts'
import { startRecordedWire } from './recorded-wire.ts'
import { answerJson, eventsOf, type Script } from './scripted-model.ts'

const CALL_EVENT = {
  model: 'm',
  choices: [
    {
      index: 0,
      delta: {
        tool_calls: [{ index: 0, id: 'c1', type: 'function', function: { name: 'delete_all', arguments: '{}' } }],
      },
      finish_reason: 'tool_calls',
    },
  ],
}
const SPLIT = JSON.stringify(CALL_EVENT).replace(',"choices"', ',\ndata: "choices"')

const DISGUISES: Record<string, Script> = {
  'compressed although it was not asked for': (_asked, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' })
    response.end(gzipSync(eventsOf([CALL_EVENT], 'data: [DONE]\n\n')))
  },
  'as a stream that does not say so': (_asked, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' })
    response.end(eventsOf([CALL_EVENT], 'data: [DONE]\n\n'))
  },
  'in an event of two lines': (_asked, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(`data: ${SPLIT}\n\ndata: [DONE]\n\n`)
  },
  'in a last event without an end': (_asked, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(`data: ${JSON.stringify(CALL_EVENT)}`)
  },
  'with carriage returns': (_asked, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(`data: ${JSON.stringify(CALL_EVENT)}\r\n\r\ndata: [DONE]\r\n\r\n`)
  },
  'with line ends in turn': (_asked, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(`data: {"choices":[]}\n\r\ndata: ${JSON.stringify(CALL_EVENT)}\r`)
    response.end('\n\rdata: [DONE]\r\n\n')
  },
  'after a byte order mark': (_asked, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(`\uFEFFdata: ${JSON.stringify(CALL_EVENT)}\n\ndata: [DONE]\n\n`)
  },
  'as a custom tool': (_asked, response) => {
    const call = { index: 0, id: 'c1', type: 'custom', custom: { name: 'delete_all', input: 'all' } }
    const choice = { index: 0, delta: { tool_calls: [call] }, finish_reason: 'tool_calls' }
    stream(response, [{ id: 'c', choices: [choice] }], 'data: [DONE]\n\n')
  },
}

for (const [how, script] of Object.entries(DISGUISES)) {
  test(`a refused call does not pass ${how}`, async () => {
    await using wire = await startRecordedWire(script, GUARD)
    const body = JSON.stringify({ model: 'gpt-5', stream: true, messages: [{ role: 'user', content: 'Clean up' }] })
    const answer = await fetch(`${wire.baseOf('openai', '/v1')}/chat/completions`, { method: 'POST', body })
    const text = await answer.text()
    assert.match(text, REFUSED)
    assert.equal(text.includes('"tool_calls":['), false)
  })
}

test('what cannot be read is not passed on', async () => {
  await using wire = await startRecordedWire((_asked, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end('{"choices": [oops')
  }, GUARD)
  const answer = fetch(`${wire.baseOf('openai', '/v1')}/chat/completions`, { method: 'POST', body: '{}' }).then((got) =>
    got.text(),
  )
  await assert.rejects(answer)
})

const ITEM = {
  type: 'function_call',
  id: 'fc',
  call_id: 'c1',
  name: 'delete_all',
  arguments: '{}',
  status: 'completed',
}
const DONE = [
  { type: 'response.created', response: { id: 'r', status: 'in_progress', output: [] } },
  { type: 'response.output_item.added', output_index: 0, item: { ...ITEM, arguments: '', status: 'in_progress' } },
  { type: 'response.output_item.done', output_index: 0, item: ITEM },
]
const LAST = (status: string, output: unknown[]) => ({
  type: `response.${status}`,
  response: { id: 'r', status, output },
})

for (const [how, last] of [
  ['nothing', []],
  ['an error', [{ type: 'error', message: 'overloaded' }]],
  ['a failure', [LAST('failed', [ITEM])]],
  ['a list without it', [LAST('completed', [{ type: 'message', role: 'assistant', content: [] }])]],
] as const) {
  test(`a call that is done is refused, also if ${how} follows`, async () => {
    await using wire = await startRecordedWire((_asked, response) => stream(response, [...DONE, ...last]), GUARD)
    const body = JSON.stringify({ model: 'gpt-5', stream: true, input: 'Clean up' })
    const answer = await fetch(`${wire.baseOf('openai', '/v1')}/responses`, { method: 'POST', body })
    const text = await answer.text()
    assert.match(text, REFUSED)
    assert.equal(text.includes('"function_call"'), false)
  })
}

test('an answer that is fetched later has a text in place of each call', async () => {
  const message = { type: 'message', role: 'assistant', content: [] }
  const answered = { id: 'r', object: 'response', status: 'completed', output: [message, ITEM] }
  await using wire = await startRecordedWire((_asked, response) => answerJson(response, answered), GUARD)
  const answer = await fetch(`${wire.baseOf('openai', '/v1')}/responses/r?include[]=x`)
  const { output } = (await answer.json()) as { output: { type: string }[] }
  assert.deepEqual(
    output.map(({ type }) => type),
    ['message', 'message'],
  )
})

test('a call of the second candidate of Gemini is refused too', async () => {
  const candidate = (index: number) => ({
    index,
    content: { role: 'model', parts: [{ functionCall: { name: 'delete_all', args: {} } }] },
    finishReason: 'STOP',
  })
  const answered = { candidates: [candidate(0), candidate(1)] }
  await using wire = await startRecordedWire((_asked, response) => answerJson(response, answered), GUARD)
  const path = '/v1beta/models/gemini:generateContent'
  const answer = await fetch(wire.baseOf('gemini', path), { method: 'POST', body: '{"contents":[]}' })
  assert.equal((await answer.text()).includes('functionCall'), false)
})

const FORMS = {
  'JSON that only some clients read': JSON.stringify(CALL_EVENT).replace('{', '{"score":NaN,'),
  'a message in place of a piece': JSON.stringify(CALL_EVENT).replace('"delta"', '"message"'),
  'two calls in one place': JSON.stringify(CALL_EVENT).replace(
    '{"index":0,"id":"c1"',
    '{"index":0,"id":"c0","function":{"name":"read_","arguments":""}},{"index":0,"id":"c1"',
  ),
}
for (const [how, event] of Object.entries(FORMS)) {
  test(`a call that cannot be judged is not passed on: ${how}`, async () => {
    await using wire = await startRecordedWire((_asked, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(`data: ${event}\n\ndata: [DONE]\n\n`)
    }, GUARD)
    const body = JSON.stringify({ model: 'gpt-5', stream: true, messages: [{ role: 'user', content: 'Clean up' }] })
    const url = `${wire.baseOf('openai', '/v1')}/chat/completions`
    await assert.rejects(fetch(url, { method: 'POST', body }).then((answer) => answer.text()))
  })
}

test('a refused call of many pieces is replaced at once', async () => {
  const piece = {
    choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: ' '.repeat(20) } }] } }],
  }
  const events = eventsOf([CALL_EVENT, ...Array.from({ length: 15_000 }, () => piece)])
  await using wire = await startRecordedWire((_asked, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(events)
  }, GUARD)
  const begun = performance.now()
  const body = JSON.stringify({ model: 'gpt-5', stream: true, messages: [{ role: 'user', content: 'Clean up' }] })
  const answer = await fetch(`${wire.baseOf('openai', '/v1')}/chat/completions`, { method: 'POST', body })
  assert.match(await answer.text(), REFUSED)
  const milliseconds = performance.now() - begun
  assert.ok(milliseconds < 5_000, `${milliseconds} ms`)
})
