/** Chat completions of the official client and of bare requests, as the proxy records them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import OpenAI from 'openai'
import type { Answerer } from '../../src/wire/proxy.ts'
import { startRecordedWire } from './recorded-wire.ts'
import { answerJson, chatAnswer, eventsOf, type AskedOfModel } from './scripted-model.ts'

const CALL = { id: 'call_1', name: 'get_weather', args: '{"city":"Paris"}' }
const TOOLS = [{ type: 'function' as const, function: { name: 'get_weather', parameters: { type: 'object' } } }]

const messagesIn = ({ body }: AskedOfModel) =>
  (JSON.parse(body.toString()) as { messages: { role: string }[]; stream?: boolean }).messages

test('a tool loop of the official client is one run with its calls, result, input and tokens', async () => {
  await using wire = await startRecordedWire((asked, response) => {
    const isDone = messagesIn(asked).at(-1)?.role === 'tool'
    answerJson(response, isDone ? chatAnswer('Sunny.') : chatAnswer(null, [CALL]))
  })
  const client = new OpenAI({ apiKey: 'sk-live-secret', baseURL: wire.baseOf('openai', '/v1') })
  const messages: OpenAI.ChatCompletionMessageParam[] = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'Weather in Paris?' },
  ]
  const first = await client.chat.completions.create({ model: 'gpt-5', messages, tools: TOOLS })
  assert.ok(first.choices[0])
  messages.push(first.choices[0].message, { role: 'tool', tool_call_id: 'call_1', content: '21 degrees' })
  await client.chat.completions.create({ model: 'gpt-5', messages, tools: TOOLS })
  const events = await wire.end()
  assert.deepEqual(
    events.map(({ eventType }) => eventType),
    ['USER_INPUT', 'LLM_CALL', 'TOOL_CALL', 'LLM_CALL', 'SESSION_OUTCOME'],
  )
  assert.equal(new Set(events.map(({ runId }) => runId)).size, 1)
  const [input, call, tool, last] = events.map(({ payload }) => payload)
  assert.equal(input?.['text'], 'Weather in Paris?')
  assert.equal(call?.['model'], 'gpt-5-2026')
  assert.equal(call?.['provider'], 'openai')
  assert.equal(call?.['finishReason'], 'tool_calls')
  assert.deepEqual(call?.['usage'], {
    promptTokens: 100,
    completionTokens: 20,
    totalTokens: 120,
    cachedTokens: 64,
    reasoningTokens: 8,
  })
  assert.deepEqual(call?.['toolCalls'], [{ id: 'call_1', name: 'get_weather' }])
  assert.equal(tool?.['toolName'], 'get_weather')
  assert.equal(tool?.['toolCallId'], 'call_1')
  assert.deepEqual(tool?.['input'], { city: 'Paris' })
  assert.equal(tool?.['output'], '21 degrees')
  assert.equal(tool?.['outcome'], 'returned')
  assert.equal((last?.['output'] as { content: string } | undefined)?.content, 'Sunny.')
  assert.equal(JSON.stringify(events).includes('sk-live-secret'), false)
  assert.equal(wire.model.asked[0]?.headers.authorization, 'Bearer sk-live-secret')
})

test('a stream reaches the client as it comes, and is recorded with its tokens', async () => {
  const common = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'gpt-5-2026' }
  let goOn: () => void = () => undefined
  const isRead = new Promise<void>((resolve) => (goOn = resolve))
  await using wire = await startRecordedWire(async (_asked, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(
      eventsOf([
        { ...common, choices: [{ index: 0, delta: { role: 'assistant', content: 'Hel' }, finish_reason: null }] },
      ]),
    )
    await isRead
    const { usage } = chatAnswer('')
    response.end(
      eventsOf(
        [
          { ...common, choices: [{ index: 0, delta: { content: 'lo' }, finish_reason: 'stop' }] },
          { ...common, choices: [], usage },
        ],
        'data: [DONE]\n\n',
      ),
    )
  })
  const client = new OpenAI({ apiKey: 'sk', baseURL: wire.baseOf('openai', '/v1') })
  const stream = await client.chat.completions.create({
    model: 'gpt-5',
    stream: true,
    messages: [{ role: 'user', content: 'Hi' }],
  })
  let text = ''
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? ''
    if (text === 'Hel') goOn()
  }
  assert.equal(text, 'Hello')
  const call = (await wire.end()).find(({ eventType }) => eventType === 'LLM_CALL')?.payload
  assert.deepEqual(call?.['output'], { role: 'assistant', content: 'Hello' })
  assert.equal((call?.['usage'] as { totalTokens: number } | undefined)?.totalTokens, 120)
  assert.equal(typeof call?.['timeToFirstOutput'], 'number')
  assert.equal((call?.['wire'] as { isWhole: boolean } | undefined)?.isWhole, true)
})

test('429 with Retry-After and an error reach the client, and are failed calls of one run', async () => {
  let count = 0
  await using wire = await startRecordedWire((_asked, response) => {
    if (count++ > 0) return answerJson(response, chatAnswer('Hi.'))
    answerJson(response, { error: { message: 'Slow down.', type: 'rate_limit', code: 'rate_limit_exceeded' } }, 429, {
      'retry-after': '0',
    })
  })
  const client = new OpenAI({ apiKey: 'sk', baseURL: wire.baseOf('openai', '/v1'), maxRetries: 1 })
  await client.chat.completions.create({ model: 'gpt-5', messages: [{ role: 'user', content: 'Hi' }] })
  const events = await wire.end()
  assert.deepEqual(
    events.map(({ eventType }) => eventType),
    ['USER_INPUT', 'LLM_CALL', 'LLM_CALL', 'SESSION_OUTCOME'],
  )
  const error = events[1]?.payload['error']
  assert.deepEqual(error, {
    message: 'Slow down.',
    status: 429,
    type: 'rate_limit',
    code: 'rate_limit_exceeded',
    retryAfter: '0',
  })
})

test('a client that leaves ends the request of the model, and the call is cancelled', async () => {
  let closed: (value: boolean) => void = () => undefined
  const isClosed = new Promise<boolean>((resolve) => (closed = resolve))
  await using wire = await startRecordedWire((_asked, response, request) => {
    request.socket.once('close', () => closed(true))
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(
      eventsOf([{ model: 'm', choices: [{ index: 0, delta: { content: 'Once upon' }, finish_reason: null }] }]),
    )
  })
  const client = new OpenAI({ apiKey: 'sk', baseURL: wire.baseOf('openai', '/v1'), maxRetries: 0 })
  const abort = new AbortController()
  const stream = await client.chat.completions.create(
    { model: 'gpt-5', stream: true, messages: [{ role: 'user', content: 'A story' }] },
    { signal: abort.signal },
  )
  for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break
  abort.abort()
  assert.equal(await isClosed, true)
  const call = (await wire.end()).find(({ eventType }) => eventType === 'LLM_CALL')?.payload
  assert.equal(call?.['finishReason'], 'aborted')
  assert.deepEqual(call?.['output'], { role: 'assistant', content: 'Once upon' })
})

test('metadata-only keeps models, tokens, tools and times, and no text', async () => {
  await using wire = await startRecordedWire(
    (asked, response) =>
      answerJson(response, messagesIn(asked).at(-1)?.role === 'tool' ? chatAnswer('Sunny.') : chatAnswer(null, [CALL])),
    { capture: 'metadata-only' },
  )
  const client = new OpenAI({ apiKey: 'sk', baseURL: wire.baseOf('openai', '/v1') })
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Weather in Paris?' }]
  const first = await client.chat.completions.create({ model: 'gpt-5', messages, tools: TOOLS })
  assert.ok(first.choices[0])
  messages.push(first.choices[0].message, { role: 'tool', tool_call_id: 'call_1', content: '21 degrees' })
  await client.chat.completions.create({ model: 'gpt-5', messages, tools: TOOLS })
  const text = JSON.stringify(await wire.end())
  assert.doesNotMatch(text, /Paris|degrees|Sunny/)
  assert.match(text, /"totalTokens":120/)
  assert.match(text, /"toolName":"get_weather"/)
})

test('the chat of Ollama: lines, tokens, and results that name their tool', async () => {
  await using wire = await startRecordedWire(({ body }, response) => {
    const isDone = body.toString().includes('"role":"tool"')
    const message = isDone
      ? { role: 'assistant', content: 'Sun' }
      : {
          role: 'assistant',
          content: '',
          tool_calls: [{ function: { name: 'get_weather', arguments: { city: 'Paris' } } }],
        }
    response.writeHead(200, { 'content-type': 'application/x-ndjson' })
    const lines = [
      { model: 'qwen3', message, done: false },
      {
        model: 'qwen3',
        message: { role: 'assistant', content: isDone ? 'ny.' : '' },
        done: true,
        done_reason: 'stop',
        prompt_eval_count: 26,
        eval_count: 9,
      },
    ]
    response.end(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  })
  const ask = async (messages: readonly object[]) =>
    (
      await fetch(`${wire.baseOf('openai')}/api/chat`, {
        method: 'POST',
        body: JSON.stringify({ model: 'qwen3', messages }),
      })
    ).text()
  const user = { role: 'user', content: 'Weather?' }
  await ask([user])
  const asked = {
    role: 'assistant',
    content: '',
    tool_calls: [{ function: { name: 'get_weather', arguments: { city: 'Paris' } } }],
  }
  await ask([user, asked, { role: 'tool', tool_name: 'get_weather', content: '21 degrees' }])
  const [input, call, tool, last] = (await wire.end()).map(({ payload }) => payload)
  assert.equal(input?.['text'], 'Weather?')
  assert.deepEqual(call?.['usage'], { promptTokens: 26, completionTokens: 9 })
  assert.deepEqual(tool?.['input'], { city: 'Paris' })
  assert.equal(tool?.['output'], '21 degrees')
  assert.deepEqual(last?.['output'], { role: 'assistant', content: 'Sunny.' })
})

test('embeddings are calls of the run, and no input of a user', async () => {
  await using wire = await startRecordedWire((_asked, response) => {
    answerJson(response, { object: 'list', model: 'embed', data: [], usage: { prompt_tokens: 4, total_tokens: 4 } })
  })
  const client = new OpenAI({ apiKey: 'sk', baseURL: wire.baseOf('openai', '/v1') })
  await client.embeddings.create({ model: 'embed', input: ['a', 'b'], encoding_format: 'float' })
  const events = await wire.end()
  assert.deepEqual(
    events.map(({ eventType }) => eventType),
    ['LLM_CALL', 'SESSION_OUTCOME'],
  )
})

test('an answerer stands in the place of the model, and its answer is recorded', async () => {
  const asked: string[] = []
  const answerer: Answerer = {
    answer({ path }, body) {
      asked.push(`${path} ${body?.length}`)
      if (path.includes('models')) return 'upstream'
      return {
        status: 200,
        headers: { 'content-type': 'application/json' },
        body: Buffer.from(JSON.stringify(chatAnswer('From the tape.'))),
      }
    },
  }
  await using wire = await startRecordedWire((_asked, response) => answerJson(response, { data: [{ id: 'live' }] }), {
    door: { answerer },
  })
  const client = new OpenAI({ apiKey: 'sk', baseURL: wire.baseOf('openai', '/v1') })
  const { choices } = await client.chat.completions.create({
    model: 'gpt-5',
    messages: [{ role: 'user', content: 'Hi' }],
  })
  assert.equal(choices[0]?.message.content, 'From the tape.')
  assert.equal((await client.models.list()).data[0]?.id, 'live')
  assert.equal(wire.model.asked.length, 1)
  const call = (await wire.end()).find(({ eventType }) => eventType === 'LLM_CALL')?.payload
  assert.deepEqual(call?.['output'], { role: 'assistant', content: 'From the tape.' })
})
