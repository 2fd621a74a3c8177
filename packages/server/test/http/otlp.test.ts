/** OTLP over HTTP, as in its specification and docs/otlp.md: how spans and log records become events. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { LIMITS } from '@tacho/contract/limits.ts'
import { startService, type RunDetail, type Service } from '../setup/service.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

type Value = string | number | boolean | Value[] | { [name: string]: Value }

function anyValue(value: Value): object {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value === 'number') return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value }
  if (Array.isArray(value)) return { arrayValue: { values: value.map(anyValue) } }
  return { kvlistValue: { values: pairs(value) } }
}

const pairs = (attributes: Record<string, Value>) =>
  Object.entries(attributes).map(([key, value]) => ({ key, value: anyValue(value) }))

interface SpanInput {
  traceId?: string
  spanId?: string
  parentSpanId?: string
  name?: string
  attributes?: Record<string, Value>
  [field: string]: unknown
}

const nanos = (ms: number) => `${ms}000000`
const newTraceId = () => randomBytes(16).toString('hex')
const newSpanId = () => randomBytes(8).toString('hex')
const PARENT = '00f067aa0ba902b7'

function span({ attributes = {}, ...given }: SpanInput = {}) {
  const start = Date.now() - 2_000
  return {
    traceId: newTraceId(),
    spanId: newSpanId(),
    parentSpanId: PARENT,
    name: 'step',
    kind: 1,
    startTimeUnixNano: nanos(start),
    endTimeUnixNano: nanos(start + 250),
    attributes: pairs(attributes),
    ...given,
  }
}

const request = (spans: unknown[], resource: Record<string, Value> = { 'service.name': 'shop' }) => ({
  resourceSpans: [
    { resource: { attributes: pairs(resource) }, scopeSpans: [{ scope: { name: 'tests', version: '1' }, spans }] },
  ],
})

const send = (body: unknown, signal = 'traces', headers: Record<string, string> = {}) =>
  service.api<{ partialSuccess?: { rejectedSpans: string; errorMessage: string } }>(`/otlp/v1/${signal}`, {
    body,
    headers,
  })

async function timeline(runId: string) {
  const { body } = await service.api<RunDetail>(`/runs/${runId}`)
  return body
}

interface Payload {
  [name: string]: unknown
  attributes: Record<string, unknown>
  events: { name: string; attributes: object }[]
  tachoShortened: { originalBytes: number }
}

/** The event that one span becomes. */
async function eventOf(given: SpanInput, resource?: Record<string, Value>) {
  const sent = span(given)
  const { status, body } = await send(request([sent], resource))
  assert.deepEqual([status, body], [200, {}])
  const { events } = await timeline(sent.traceId)
  const [event] = events
  assert.ok(event && events.length === 1)
  return { ...event, payload: event.payload as Payload }
}

test('a span is one event at its start, with the trace as its run and its attributes in the payload', async () => {
  const sent = span({ name: 'plan', attributes: { 'shop.items': 3, 'shop.deep': { list: [1, 2.5, true, 'x'] } } })
  await send(request([sent]))
  const run = await timeline(sent.traceId)
  const [event] = run.events
  assert.equal(run.agent.name, 'shop')
  assert.deepEqual(
    [event?.eventId, event?.eventType, event?.label, event?.runId],
    [sent.spanId, 'AGENT_STEP', 'plan', sent.traceId],
  )
  assert.equal(Date.parse(String(event?.timestamp)), Number(sent.startTimeUnixNano.slice(0, -6)))
  assert.deepEqual(event?.payload, {
    latency: 250,
    attributes: { 'shop.items': 3, 'shop.deep': { list: [1, 2.5, true, 'x'] } },
    resource: { 'service.name': 'shop' },
    scope: { name: 'tests', version: '1' },
  })
})

test('the root of a trace ends the run, as failed if it failed', async () => {
  for (const [code, status] of [
    [0, 'COMPLETED'],
    [2, 'FAILED'],
  ] as const) {
    const root = span({ parentSpanId: '', status: { code, message: 'out of stock' } })
    await send(request([root]))
    const run = await timeline(root.traceId)
    assert.equal(run.status, status)
    assert.deepEqual(
      run.events.map(({ eventId, eventType }) => [eventId, eventType]),
      [
        [root.spanId, 'AGENT_STEP'],
        [`${root.spanId}-outcome`, 'SESSION_OUTCOME'],
      ],
    )
    if (code === 2) assert.deepEqual(run.events[0]?.payload['error'], { message: 'out of stock' })
  }
})

test('spans that are sent again, in another order or split over requests, are stored and counted once', async () => {
  const traceId = newTraceId()
  const usage = { 'gen_ai.operation.name': 'chat', 'gen_ai.usage.input_tokens': 10, 'gen_ai.usage.output_tokens': 5 }
  const spans = [
    span({ traceId, parentSpanId: '' }),
    ...Array.from({ length: 30 }, () => span({ traceId, attributes: usage })),
  ]
  const orders = [spans, spans.toReversed(), spans.slice(0, 7), spans.slice(3)]
  const answers = await Promise.all(orders.map((order) => send(request(order))))
  for (const { status, body } of answers) assert.deepEqual([status, body], [200, {}])
  const run = await timeline(traceId)
  assert.equal(run.events.length, 32)
  assert.deepEqual(run.usage, { promptTokens: 300, completionTokens: 150, totalTokens: 450, cost: 0 })
})

const MODEL_CALLS: [string, Record<string, Value>, object][] = [
  [
    'GenAI conventions of today',
    {
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'gpt-5',
      'gen_ai.response.model': 'gpt-5-2026',
      'gen_ai.usage.input_tokens': 7,
      'gen_ai.usage.output_tokens': 3,
      'gen_ai.system_instructions': '[{"type":"text","content":"Be brief"}]',
      'gen_ai.input.messages': '[{"role":"user","parts":[{"type":"text","content":"Refund?"}]}]',
      'gen_ai.output.messages':
        '[{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"refund","arguments":{"id":1}}],"finish_reason":"tool_call"}]',
    },
    {
      model: 'gpt-5-2026',
      usage: { promptTokens: 7, completionTokens: 3 },
      messages: [
        { role: 'system', content: 'Be brief' },
        { role: 'user', content: 'Refund?' },
      ],
      output: {
        role: 'assistant',
        toolCalls: [{ id: 'c1', name: 'refund', arguments: { id: 1 } }],
        finishReason: 'tool_call',
      },
    },
  ],
  [
    'GenAI conventions with structured attributes',
    {
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'm',
      'gen_ai.input.messages': [{ role: 'tool', parts: [{ type: 'tool_call_response', id: 'c1', response: 'done' }] }],
      'gen_ai.output.messages': [{ role: 'assistant', parts: [{ type: 'text', content: 'Hi' }] }],
    },
    {
      model: 'm',
      messages: [{ role: 'tool', content: 'done', toolCallId: 'c1' }],
      output: { role: 'assistant', content: 'Hi' },
    },
  ],
  [
    'Traceloop, and the names before 1.37',
    {
      'llm.request.type': 'chat',
      'gen_ai.system': 'OpenAI',
      'gen_ai.request.model': 'gpt-4o',
      'gen_ai.prompt.0.role': 'user',
      'gen_ai.prompt.0.content': 'Refund?',
      'gen_ai.completion.0.role': 'assistant',
      'gen_ai.completion.0.finish_reason': 'tool_calls',
      'gen_ai.completion.0.tool_calls.0.id': 'c1',
      'gen_ai.completion.0.tool_calls.0.name': 'refund',
      'gen_ai.completion.0.tool_calls.0.arguments': '{"id": 1}',
      'gen_ai.usage.prompt_tokens': 7,
      'gen_ai.usage.completion_tokens': 3,
      'llm.usage.total_tokens': 10,
    },
    {
      model: 'gpt-4o',
      usage: { promptTokens: 7, completionTokens: 3, totalTokens: 10 },
      messages: [{ role: 'user', content: 'Refund?' }],
      output: {
        role: 'assistant',
        toolCalls: [{ id: 'c1', name: 'refund', arguments: { id: 1 } }],
        finishReason: 'tool_calls',
      },
    },
  ],
  [
    'OpenInference',
    {
      'openinference.span.kind': 'LLM',
      'llm.model_name': 'claude',
      'llm.token_count.prompt': 7,
      'llm.token_count.completion': 3,
      'llm.token_count.total': 10,
      'llm.cost.total': 0.25,
      'llm.input_messages.0.message.role': 'user',
      'llm.input_messages.0.message.contents.0.message_content.type': 'text',
      'llm.input_messages.0.message.contents.0.message_content.text': 'Refund?',
      'llm.output_messages.0.message.role': 'assistant',
      'llm.output_messages.0.message.tool_calls.0.tool_call.id': 'c1',
      'llm.output_messages.0.message.tool_calls.0.tool_call.function.name': 'refund',
      'llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments': '{"id":1}',
    },
    {
      model: 'claude',
      usage: { promptTokens: 7, completionTokens: 3, totalTokens: 10 },
      cost: 0.25,
      messages: [{ role: 'user', content: 'Refund?' }],
      output: { role: 'assistant', toolCalls: [{ id: 'c1', name: 'refund', arguments: { id: 1 } }] },
    },
  ],
  [
    'Vercel AI SDK',
    {
      'ai.operationId': 'ai.generateText.doGenerate',
      'ai.model.id': 'gpt-5',
      'ai.prompt.messages': '[{"role":"user","content":[{"type":"text","text":"Refund?"}]}]',
      'ai.response.toolCalls': '[{"toolCallId":"c1","toolName":"refund","input":"{\\"id\\":1}"}]',
      'ai.usage.inputTokens': 7,
      'ai.usage.outputTokens': 3,
      'ai.usage.totalTokens': 10,
    },
    {
      model: 'gpt-5',
      usage: { promptTokens: 7, completionTokens: 3, totalTokens: 10 },
      messages: [{ role: 'user', content: 'Refund?' }],
      output: { role: 'assistant', toolCalls: [{ id: 'c1', name: 'refund', arguments: { id: 1 } }] },
    },
  ],
]

for (const [convention, attributes, expected] of MODEL_CALLS) {
  test(`a model call of ${convention} has model, usage, messages and output in one shape`, async () => {
    const { eventType, payload } = await eventOf({ attributes })
    const { latency: _, attributes: __, resource: ___, scope: ____, ...known } = payload
    assert.equal(eventType, 'LLM_CALL')
    assert.deepEqual(known, expected)
  })
}

test('messages in span events, as before 1.37, are messages of the call', async () => {
  const event = (name: string, attributes: Record<string, Value>) => ({
    name,
    timeUnixNano: nanos(Date.now()),
    attributes: pairs(attributes),
  })
  const { payload } = await eventOf({
    attributes: { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'm' },
    events: [
      event('gen_ai.system.message', { 'gen_ai.system': 'openai', content: 'Be brief' }),
      event('gen_ai.user.message', { content: 'Refund?' }),
      event('gen_ai.choice', { index: 0, finish_reason: 'stop', message: '{"role":"assistant","content":"Yes"}' }),
      event('cache.miss', { key: 'k' }),
    ],
  })
  assert.deepEqual(payload['messages'], [
    { role: 'system', content: 'Be brief' },
    { role: 'user', content: 'Refund?' },
  ])
  assert.deepEqual(payload['output'], { role: 'assistant', content: 'Yes', finishReason: 'stop' })
  assert.deepEqual(
    payload.events.map(({ name, attributes }) => [name, attributes]),
    [['cache.miss', { key: 'k' }]],
  )
})

const TOOL_CALLS: [string, Record<string, Value>][] = [
  [
    'GenAI conventions',
    {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'refund',
      'gen_ai.tool.call.arguments': '{"id":1}',
      'gen_ai.tool.call.result': '{"ok":true}',
    },
  ],
  [
    'OpenInference',
    {
      'openinference.span.kind': 'TOOL',
      'tool.name': 'refund',
      'input.value': '{"id":1}',
      'output.value': '{"ok":true}',
    },
  ],
  [
    'Traceloop',
    {
      'traceloop.span.kind': 'tool',
      'traceloop.entity.name': 'refund',
      'traceloop.entity.input': '{"id":1}',
      'traceloop.entity.output': '{"ok":true}',
    },
  ],
  [
    'Vercel AI SDK',
    {
      'ai.operationId': 'ai.toolCall',
      'ai.toolCall.name': 'refund',
      'ai.toolCall.args': '{"id":1}',
      'ai.toolCall.result': '{"ok":true}',
    },
  ],
  [
    'MCP',
    {
      'mcp.method.name': 'tools/call',
      'gen_ai.tool.name': 'refund',
      'gen_ai.tool.call.arguments': { id: 1 },
      'gen_ai.tool.call.result': { ok: true },
    },
  ],
]

for (const [convention, attributes] of TOOL_CALLS) {
  test(`a tool call of ${convention} has its name, input and output`, async () => {
    const { eventType, payload } = await eventOf({ attributes })
    assert.deepEqual(
      [eventType, payload['toolName'], payload['input'], payload['output']],
      ['TOOL_CALL', 'refund', { id: 1 }, { ok: true }],
    )
  })
}

test('an outer span that repeats the usage of its model calls is a step, and counts nothing', async () => {
  for (const attributes of [
    { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.usage.input_tokens': 9 },
    { 'ai.operationId': 'ai.generateText', 'ai.usage.inputTokens': 9 },
    { 'openinference.span.kind': 'AGENT', 'llm.token_count.prompt': 9 },
  ] as Record<string, Value>[]) {
    const { eventType, runId } = await eventOf({ attributes })
    assert.equal(eventType, 'AGENT_STEP')
    assert.equal((await timeline(runId)).usage.promptTokens, 0)
  }
})

test('agent, session and run come from their attributes', async () => {
  const runId = `order-${newSpanId()}`
  const attributes = {
    'tacho.run.id': runId,
    'gen_ai.conversation.id': 'talk-1',
    'gen_ai.agent.name': 'Refunds',
    'gen_ai.agent.id': 'agent-7',
  }
  await send(request([span({ attributes })]))
  const run = await timeline(runId)
  assert.equal(run.agent.name, 'Refunds')
  const { body } = await service.operator<{ items: { sessionId: string; agentId: string }[] }>(
    `/environments/${service.environmentId}/runs/${run.id}/events`,
  )
  assert.deepEqual([body.items[0]?.sessionId, body.items[0]?.agentId], ['talk-1', 'agent-7'])
})

test('the exception of a failed span is its error', async () => {
  const { payload } = await eventOf({
    status: { code: 2, message: 'failed' },
    events: [
      {
        name: 'exception',
        timeUnixNano: nanos(Date.now()),
        attributes: pairs({
          'exception.type': 'TypeError',
          'exception.message': 'no such order',
          'exception.stacktrace': 'at x',
        }),
      },
    ],
  })
  assert.deepEqual(payload['error'], { message: 'no such order', type: 'TypeError', stack: 'at x' })
})

test('invalid spans are counted and reported, the others are stored', async () => {
  const good = span()
  const old = span({ startTimeUnixNano: nanos(Date.now() - LIMITS.eventPastMs - 60_000) })
  const { status, body } = await send(
    request([good, old, { ...span(), spanId: '' }, { ...span(), spanId: 'no hex' }, { ...span(), attributes: 'x' }, 7]),
  )
  assert.equal(status, 200)
  assert.equal(body.partialSuccess?.rejectedSpans, '5')
  assert.match(body.partialSuccess?.errorMessage ?? '', /30 days in the past/)
  assert.equal((await timeline(good.traceId)).events.length, 1)
  const found = await service.operator<{ outcome: string; rejection: { code: string } }>(
    `/environments/${service.environmentId}/runs/${old.traceId}/events/${old.spanId}/trace`,
  )
  assert.deepEqual([found.body.outcome, found.body.rejection?.code], ['rejected', 'timestamp_too_old'])
})

test('a payload over 256 KiB is shortened and says so', async () => {
  const { payload } = await eventOf({ attributes: { long: 'x'.repeat(LIMITS.payloadBytes), other: 'y'.repeat(300) } })
  assert.ok(JSON.stringify(payload).length <= LIMITS.payloadBytes)
  assert.ok(payload.tachoShortened.originalBytes > LIMITS.payloadBytes)
  assert.match(String(payload.attributes['long']), /… \[cut: \d+ characters\]$/)
  assert.equal(payload.attributes['other'], 'y'.repeat(300))
  const many = Object.fromEntries(
    Array.from({ length: 20_000 }, (_, index) => [`name ${index} ${'n'.repeat(20)}`, index]),
  )
  const { payload: cut } = await eventOf({ attributes: many })
  assert.match(JSON.stringify(cut.attributes), /^"\[cut: \d+ values\]"$/)
})

test('names of Object.prototype are ordinary names', async () => {
  const attributes = {
    ['__proto__']: 'z',
    constructor: 'y',
    'llm.input_messages.__proto__.x': 'p',
    'gen_ai.prompt.99999999.role': 'q',
  }
  const { payload, label } = await eventOf({ name: 'constructor', attributes })
  assert.equal(label, 'constructor')
  assert.equal(payload.attributes['constructor'], 'y')
  assert.ok(Object.hasOwn(payload.attributes, '__proto__'))
  assert.equal(({} as Record<string, unknown>)['x'], undefined)
})

test('a span nested beyond what protobuf allows is rejected alone, and a deep JSON text stays a text', async () => {
  const deep = (levels: number): Value => (levels === 0 ? 'end' : [deep(levels - 1)])
  const tooDeep = span({ attributes: { deep: deep(300) } })
  const text = `${'['.repeat(300)}${']'.repeat(300)}`
  const good = span({ attributes: { deep: deep(40), 'input.value': text } })
  const { status, body } = await send(request([tooDeep, good]))
  assert.deepEqual([status, body.partialSuccess?.rejectedSpans], [200, '1'])
  const [event] = (await timeline(good.traceId)).events
  assert.equal(event?.payload['input'], text)
})

test('a request of up to 4 MiB is accepted, a larger one is refused, compressed or not', async () => {
  const spans = Array.from({ length: 400 }, () => span({ attributes: { text: 'x'.repeat(9_000) } }))
  const text = JSON.stringify(request(spans))
  assert.ok(text.length > 3_700_000 && text.length < LIMITS.otlpBytes)
  const full = text + ' '.repeat(LIMITS.otlpBytes - text.length)
  assert.deepEqual((await send(gzipSync(full), 'traces', { 'content-encoding': 'gzip' })).body, {})
  assert.equal((await send(`${full} `)).status, 413)
  assert.equal((await send(gzipSync(`${full} `), 'traces', { 'content-encoding': 'gzip' })).status, 413)
})

test('a body that is not an OTLP request, another media type or encoding, or a key without the scope is refused', async () => {
  for (const body of ['{', '[]', '7', '"x"', 'null']) assert.equal((await send(body)).status, 400, body)
  const protobuf = { 'content-type': 'application/x-protobuf' }
  assert.equal((await send(Buffer.from([0xff, 0xff, 0xff]), 'traces', protobuf)).status, 400)
  assert.equal((await send('x', 'traces', { 'content-type': 'text/plain' })).status, 415)
  assert.equal((await send('{}', 'traces', { 'content-encoding': 'constructor' })).status, 415)
  const key = await service.newKey({ scopes: ['usage:read'] })
  assert.equal((await send('{}', 'traces', { 'x-api-key': key })).status, 403)
  assert.equal((await send('{}', 'traces', { 'x-api-key': 'no key' })).status, 401)
  assert.deepEqual((await send('{}')).body, {})
})

test('metrics are accepted but not stored, and the answer says so', async () => {
  const { status, body } = await send({ resourceMetrics: [] }, 'metrics')
  assert.deepEqual(
    [status, body],
    [200, { partialSuccess: { rejectedDataPoints: '0', errorMessage: 'Metrics are not kept. Send traces and logs.' } }],
  )
})

test('log records become events of their trace or conversation, once each', async () => {
  const traceId = newTraceId()
  const sessionId = `talk-${newSpanId()}`
  const at = nanos(Date.now())
  const logs = {
    resourceLogs: [
      {
        resource: { attributes: pairs({ 'service.name': 'shop' }) },
        scopeLogs: [
          {
            logRecords: [
              { timeUnixNano: at, traceId, spanId: PARENT, severityNumber: 17, body: anyValue('card declined') },
              { timeUnixNano: at, traceId, eventName: 'gen_ai.user.message', body: anyValue({ content: 'Refund?' }) },
              { observedTimeUnixNano: at, body: anyValue('started'), attributes: pairs({ 'session.id': sessionId }) },
              { timeUnixNano: at, body: anyValue('nobody knows whose') },
            ],
          },
        ],
      },
    ],
  }
  for (let times = 0; times < 2; times++) {
    const { status, body } = await send(logs, 'logs')
    assert.equal(status, 200)
    assert.equal((body.partialSuccess as unknown as { rejectedLogRecords: string }).rejectedLogRecords, '1')
  }
  const { events } = await timeline(traceId)
  assert.deepEqual(
    events.map(({ eventType, payload }) => [eventType, payload['message'] ?? payload['text']]),
    [
      ['ERROR', 'card declined'],
      ['USER_INPUT', { role: 'user', content: 'Refund?' }],
    ],
  )
  assert.deepEqual(
    (await timeline(sessionId)).events.map(({ label }) => label),
    ['started'],
  )
})
