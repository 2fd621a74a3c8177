/** Model and tool calls of every convention come out in one shape (docs/otlp.md). */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { claudeCodeLogs, codexLogs } from '../../setup/coding-agent-logs.ts'
import { nanos, newSpanId, otlpClient, pairs, request, span, type Value } from '../../setup/otlp-requests.ts'
import { startService, type Service } from '../../setup/service.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

const { eventOf, send, timeline } = otlpClient(() => service)

const MODEL_CALLS: [string, Record<string, Value>, object][] = [
  ...['chat.completions', 'chat.streaming_completions', 'text.completions'].map(
    (operation): [string, Record<string, Value>, object] => [
      `Semantic Kernel, ${operation}`,
      {
        'gen_ai.operation.name': operation,
        'gen_ai.request.model': 'm',
        'gen_ai.usage.input_tokens': 7,
        'gen_ai.usage.output_tokens': 3,
      },
      { model: 'm', usage: { promptTokens: 7, completionTokens: 3 } },
    ],
  ),
  [
    'a generation of Langfuse',
    {
      'langfuse.observation.type': 'generation',
      'langfuse.observation.model.name': 'm',
      'langfuse.observation.usage_details': '{"input":2,"output":3,"input_cached_tokens":5}',
      'langfuse.observation.input': '[{"role":"user","content":"Refund?"}]',
      'langfuse.observation.output': '{"role":"assistant","content":"Done"}',
    },
    {
      model: 'm',
      usage: { promptTokens: 7, completionTokens: 3, cachedTokens: 5 },
      messages: [{ role: 'user', content: 'Refund?' }],
      output: { role: 'assistant', content: 'Done' },
    },
  ],
  [
    'GenAI conventions of today',
    {
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'gpt-5',
      'gen_ai.response.model': 'gpt-5-2026',
      'gen_ai.usage.input_tokens': 7,
      'gen_ai.usage.output_tokens': 3,
      'gen_ai.usage.cache_read.input_tokens': 5,
      'gen_ai.usage.cache_creation.input_tokens': 1,
      'gen_ai.system_instructions': '[{"type":"text","content":"Be brief"}]',
      'gen_ai.input.messages': '[{"role":"user","parts":[{"type":"text","content":"Refund?"}]}]',
      'gen_ai.output.messages':
        '[{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"refund","arguments":{"id":1}}],"finish_reason":"tool_call"}]',
    },
    {
      model: 'gpt-5-2026',
      requestModel: 'gpt-5',
      usage: { promptTokens: 7, completionTokens: 3, cachedTokens: 5, cacheWriteTokens: 1 },
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
      // Pydantic AI sends the results of all calls in one message of the user.
      'gen_ai.input.messages': [
        {
          role: 'user',
          parts: [
            { type: 'tool_call_response', id: 'c1', response: 'done' },
            { type: 'tool_call_response', id: 'c2', response: 'failed' },
          ],
        },
      ],
      'gen_ai.output.messages': [{ role: 'assistant', parts: [{ type: 'text', content: 'Hi' }] }],
    },
    {
      model: 'm',
      messages: [
        { role: 'tool', content: 'done', toolCallId: 'c1' },
        { role: 'tool', content: 'failed', toolCallId: 'c2' },
      ],
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

test('the run of a failed trace says why', async () => {
  const exception = {
    'exception.type': 'TypeError',
    'exception.message': 'no such order',
    'exception.stacktrace': 'at x',
  }
  const traceId = randomBytes(16).toString('hex')
  const failed = {
    traceId,
    parentSpanId: '',
    status: { code: 2 },
    events: [{ name: 'exception', timeUnixNano: nanos(Date.now()), attributes: pairs(exception) }],
  }
  assert.deepEqual((await send(request([span(failed)]))).body, {})
  const path = `/environments/${service.environmentId}/runs/${traceId}`
  const { status, failure, errorCount } = (await service.operator<OperatorRun>(path)).body
  assert.deepEqual([status, errorCount], ['FAILED', 2])
  assert.partialDeepStrictEqual(failure, {
    errorClass: 'TypeError',
    message: 'no such order',
    place: 'step',
    name: 'step',
  })
})

/** Sends the records twice, because a retry must not count again. */
async function session(runId: string, logs: unknown) {
  for (let times = 0; times < 2; times++) {
    const { status, body } = await send(logs, 'logs')
    assert.deepEqual([status, body], [200, {}])
  }
  const run = await timeline(runId)
  const told = run.events.map(({ eventType, label, payload: { attributes: _, resource, scope, ...payload } }) => {
    assert.ok(resource && scope)
    return [eventType, label, payload]
  })
  return { run, told }
}

test('a session of Claude Code is a run: prompts, model calls with cost, tool results and decisions', async () => {
  const sessionId = `claude-${newSpanId()}`
  const { run, told } = await session(sessionId, claudeCodeLogs(sessionId))
  assert.equal(run.agent.name, 'claude-code')
  assert.deepEqual(run.usage, { promptTokens: 22, completionTokens: 10, totalTokens: 32, cost: 0.000261 })
  assert.equal(run.events[0]?.sessionId, sessionId)
  const call = { toolCallId: 'toolu_1', input: { bash_command: 'ls', full_command: 'ls -la' } }
  const usage = { promptTokens: 22, completionTokens: 10, cachedTokens: 5, cacheWriteTokens: 2 }
  assert.deepEqual(told, [
    ['USER_INPUT', 'user prompt', { text: 'List the files, please' }],
    [
      'POLICY_DECISION',
      'ALLOW Bash',
      { action: 'ALLOW', toolName: 'Bash', decision: 'accept', source: 'config', ...call },
    ],
    [
      'POLICY_DECISION',
      'BLOCK Write',
      { action: 'BLOCK', toolName: 'Write', decision: 'reject', source: 'user_reject', toolCallId: 'toolu_2' },
    ],
    [
      'LLM_CALL',
      'claude-opus-5-5',
      { model: 'claude-opus-5-5', usage, cost: 0.000261, latency: 355, timeToFirstOutput: 70 },
    ],
    ['AGENT_STEP', 'response', { text: 'I look.' }],
    ['TOOL_CALL', 'Bash', { toolName: 'Bash', toolCallId: 'toolu_1', input: { command: 'ls -la' }, latency: 333 }],
    ['TOOL_CALL', 'Read', { toolName: 'Read', error: { message: 'File does not exist' }, latency: 142 }],
    [
      'ERROR',
      'claude_code.api_error',
      { message: 'Overloaded', code: '529', model: 'claude-opus-5-5', latency: 12, attempt: 2 },
    ],
    ['AGENT_STEP', 'claude_code.plugin_loaded', {}],
  ])
})

test('a conversation of Codex is a run; the deltas of a stream are accepted and not kept', async () => {
  const conversationId = `codex-${newSpanId()}`
  const { run, told } = await session(conversationId, codexLogs(conversationId))
  assert.equal(run.agent.name, 'codex_exec')
  assert.deepEqual(run.usage, { promptTokens: 20, completionTokens: 10, totalTokens: 30, cost: 0 })
  const usage = { promptTokens: 20, completionTokens: 10, cachedTokens: 5, reasoningTokens: 3 }
  const info = { severity: 'INFO' }
  const [tool, model] = ['exec_command', 'gpt-5-codex']
  assert.deepEqual(told, [
    ['AGENT_STEP', 'codex.conversation_starts', info],
    ['USER_INPUT', 'user prompt', { text: 'List the files, please', ...info }],
    ['AGENT_STEP', 'codex.api_request', { latency: 52, ...info }],
    ['LLM_CALL', model, { model, usage, timeToFirstOutput: 40, ...info }],
    [
      'POLICY_DECISION',
      'ALLOW exec_command',
      { action: 'ALLOW', toolName: tool, decision: 'approved', source: 'Config', toolCallId: 'call_1', ...info },
    ],
    [
      'TOOL_CALL',
      tool,
      { toolName: tool, toolCallId: 'call_1', input: { cmd: 'ls' }, output: 'a.txt', latency: 55, ...info },
    ],
    [
      'POLICY_DECISION',
      'BLOCK apply_patch',
      { action: 'BLOCK', toolName: 'apply_patch', decision: 'denied', source: 'User', toolCallId: 'call_2', ...info },
    ],
    ['ERROR', 'codex.api_request', { message: 'slow down', code: '429', model, attempt: 1, ...info }],
    ['ERROR', 'codex.sse_event', { message: 'server_error', model, ...info }],
  ])
})

test('tokens are counted under the names of every exporter, as numbers and as texts', async () => {
  const call = { 'gen_ai.operation.name': 'chat' }
  const cases: [Record<string, Value>, Record<string, unknown>][] = [
    [
      {
        'gen_ai.usage.input_tokens': '120',
        'gen_ai.usage.output_tokens': '30',
        'gen_ai.usage.cache_read.input_tokens': 100,
      },
      { promptTokens: 120, completionTokens: 30, cachedTokens: 100 },
    ],
    [
      {
        'gen_ai.usage.prompt_tokens': 20,
        'gen_ai.usage.prompt_token_details.cached_tokens': 5,
        'llm.usage.total_tokens': 30,
      },
      { promptTokens: 20, totalTokens: 30, cachedTokens: 5 },
    ],
    [
      {
        'gen_ai.usage.prompt_tokens': 20,
        'gen_ai.usage.completion_tokens': 9,
        'gen_ai.usage.prompt_tokens_details': '{"cached_tokens":5}',
      },
      { promptTokens: 20, completionTokens: 9, cachedTokens: 5 },
    ],
    [
      {
        'llm.token_count.prompt': 50,
        'llm.token_count.completion': 20,
        'llm.token_count.total': 70,
        'llm.token_count.prompt_details.cache_read': 30,
        'llm.token_count.prompt_details.audio': 10,
        'llm.token_count.completion_details.reasoning': 5,
        'llm.token_count.completion_details.audio': 4,
      },
      {
        promptTokens: 50,
        completionTokens: 20,
        totalTokens: 70,
        cachedTokens: 30,
        audioInputTokens: 10,
        reasoningTokens: 5,
        audioOutputTokens: 4,
      },
    ],
    [
      { 'ai.usage.inputTokens': 50, 'ai.usage.outputTokens': 20, 'ai.usage.inputTokenDetails.cacheReadTokens': 30 },
      { promptTokens: 50, completionTokens: 20, cachedTokens: 30 },
    ],
    [
      {
        'gen_ai.usage.input_tokens': 50,
        'gen_ai.usage.details.cache_read_tokens': 20,
        'gen_ai.usage.details.input_audio_tokens': 7,
      },
      { promptTokens: 50, cachedTokens: 20, audioInputTokens: 7 },
    ],
    [
      {
        'gen_ai.usage.input_tokens': 10,
        'gen_ai.usage.output_tokens': 5,
        'gen_ai.usage.cache_read.input_tokens': 10_000,
      },
      { promptTokens: 10_010, completionTokens: 5, cachedTokens: 10_000 },
    ],
    [
      { 'langfuse.observation.usage_details': '{"input":10,"output":5,"input_cached_tokens":90,"total":105}' },
      { promptTokens: 100, completionTokens: 5, totalTokens: 105, cachedTokens: 90 },
    ],
  ]
  for (const [attributes, usage] of cases) {
    const { payload } = await eventOf({ attributes: { ...call, ...attributes } })
    assert.deepEqual(payload['usage'], usage)
    assert.deepEqual(
      Object.keys(payload.attributes).filter((name) => /usage|token_count/.test(name)),
      [],
    )
  }
})

test('a token count that is no count is kept, and the reply warns of it', async () => {
  for (const bad of ['many', 1.5, -3]) {
    const sent = span({
      name: 'ask',
      attributes: { 'gen_ai.operation.name': 'chat', 'gen_ai.usage.input_tokens': bad },
    })
    const { status, body } = await send(request([sent]))
    assert.deepEqual([status, body.partialSuccess?.rejectedSpans], [200, '0'])
    const named =
      /^span [0-9a-f]{16} "ask": payload\/usage\/input_tokens must be a whole number between 0 and 1000000000$/
    assert.match(body.partialSuccess?.errorMessage ?? '', named)
    const [event] = (await timeline(sent.traceId)).events
    assert.deepEqual(event?.payload['usage'], { input_tokens: bad })
  }
})

test('one call seen by two instrumentations counts once, and a call inside a tool counts too', async () => {
  const traceId = randomBytes(16).toString('hex')
  const chat = (name: string, parentSpanId: string, usage: Record<string, Value> = {}) =>
    span({ traceId, name, parentSpanId, attributes: { 'gen_ai.operation.name': 'chat', ...usage } })
  const usage = { 'gen_ai.usage.input_tokens': 10, 'gen_ai.usage.output_tokens': 5 }
  const gateway = chat('litellm_request', newSpanId(), usage)
  const client = chat('openai.chat', gateway.spanId, usage)
  const tool = span({ traceId, parentSpanId: gateway.spanId, attributes: { 'gen_ai.operation.name': 'execute_tool' } })
  const inTool = chat('summarize', tool.spanId, usage)
  const raw = chat('raw_request', client.spanId)
  assert.deepEqual((await send(request([raw, inTool, client, tool, gateway]))).body, {})
  const run = await timeline(traceId)
  assert.deepEqual([run.usage.promptTokens, run.usage.completionTokens], [20, 10])
  const notCounted = run.events.filter(({ payload }) => payload['notCounted'] === 'same_call').map(({ label }) => label)
  assert.deepEqual(notCounted.toSorted(), ['litellm_request', 'raw_request'])
  const { body } = await service.operator<OperatorRun>(`/environments/${service.environmentId}/runs/${run.id}`)
  assert.equal(body.unpricedCalls, 2, 'the two that count name no model')
})

const chatSpan = (traceId: string, usage: Record<string, Value>, rest: Record<string, unknown> = {}) =>
  span({
    traceId,
    ...rest,
    attributes: { 'gen_ai.operation.name': 'chat', 'gen_ai.response.model': 'gpt-4o', ...usage },
  })
const tokensOf = (input: Value, output: Value) => ({
  'gen_ai.usage.input_tokens': input,
  'gen_ai.usage.output_tokens': output,
})

test('a call of another operation or model inside a call counts beside it', async () => {
  const others: Record<string, Value>[] = [
    { 'gen_ai.operation.name': 'embeddings', 'gen_ai.response.model': 'text-embedding-3-small' },
    { 'gen_ai.operation.name': 'embeddings' },
    { 'gen_ai.response.model': 'llama-guard-3' },
  ]
  for (const other of others) {
    const traceId = randomBytes(16).toString('hex')
    const outer = chatSpan(traceId, tokensOf(100, 20))
    const inner = chatSpan(traceId, { ...tokensOf(9, 1), ...other }, { parentSpanId: outer.spanId })
    await send(request([outer, inner]))
    const { usage, events } = await timeline(traceId)
    assert.deepEqual([usage.promptTokens, usage.completionTokens], [109, 21], JSON.stringify(other))
    assert.ok(events.every(({ payload }) => payload['notCounted'] === undefined))
  }
  for (const name of ['openai/gpt-4o', 'gpt-4o-2024-08-06']) {
    const traceId = randomBytes(16).toString('hex')
    const outer = chatSpan(traceId, { ...tokensOf(100, 20), 'gen_ai.response.model': name })
    await send(request([outer, chatSpan(traceId, tokensOf(100, 20), { parentSpanId: outer.spanId })]))
    assert.equal((await timeline(traceId)).usage.totalTokens, 120, name)
  }
})

test('of two spans of one call, each count is the one that is known', async () => {
  const full = tokensOf(100, 20)
  const cases: [inner: Record<string, Value>, outer: Record<string, Value>, usage: number[], cost?: number][] = [
    [tokensOf(0, 0), full, [100, 20]],
    [full, tokensOf(0, 0), [100, 20]],
    [tokensOf('?', -1), full, [100, 20]],
    [{ 'gen_ai.usage.output_tokens': 20 }, full, [100, 20]],
    [{ 'gen_ai.usage.output_tokens': 20 }, { 'gen_ai.usage.input_tokens': 100 }, [100, 20]],
    [{ 'gen_ai.usage.output_tokens': 20 }, { 'llm.usage.total_tokens': 120 }, [0, 20]],
    [{ 'gen_ai.usage.cost': 0.01 }, full, [100, 20], 0.01],
    [full, { ...full, 'gen_ai.usage.cost': 0.02, 'gen_ai.usage.cache_read.input_tokens': 60 }, [100, 20], 0.02],
  ]
  for (const [inner, outer, [promptTokens, completionTokens], cost = 0] of cases) {
    const traceId = randomBytes(16).toString('hex')
    const around = chatSpan(traceId, outer)
    await send(request([around, chatSpan(traceId, inner, { parentSpanId: around.spanId })]))
    const { usage, events } = await timeline(traceId)
    const counted = [usage.promptTokens, usage.completionTokens, usage.cost]
    assert.deepEqual(counted, [promptTokens, completionTokens, cost], JSON.stringify([inner, outer]))
    assert.equal(usage.totalTokens, 120, JSON.stringify([inner, outer]))
    const unchanged = events.filter(({ payload }) => payload['notCounted'] === undefined && 'model' in payload)
    assert.equal(unchanged.length, 1)
  }
  const traceId = randomBytes(16).toString('hex')
  const around = chatSpan(traceId, {})
  await send(request([around, chatSpan(traceId, tokensOf('?', -1), { parentSpanId: around.spanId })]))
  const run = await timeline(traceId)
  const { body } = await service.operator<OperatorRun>(`/environments/${service.environmentId}/runs/${run.id}`)
  assert.deepEqual([run.usage.totalTokens, body.unpricedCalls], [0, 1], 'unknown stays unknown')
})

test('attempts inside one call count once', async () => {
  const attempts: [Record<string, Value>[], number][] = [
    [[{}, tokensOf(100, 20)], 120],
    [[tokensOf(100, 20), tokensOf(100, 20)], 240],
    [[tokensOf(0, 0), {}], 120],
    [[{ 'gen_ai.usage.output_tokens': 5 }, tokensOf(60, 15)], 120],
  ]
  for (const [inner, total] of attempts) {
    const traceId = randomBytes(16).toString('hex')
    const around = chatSpan(traceId, tokensOf(100, 20))
    const spans = inner.map((usage) => chatSpan(traceId, usage, { parentSpanId: around.spanId }))
    await send(request([around, ...spans]))
    assert.equal((await timeline(traceId)).usage.totalTokens, total, JSON.stringify(inner))
  }
})

test('a span that is its own parent counts, and of spans that are each others parents one does', async () => {
  const traceId = randomBytes(16).toString('hex')
  const [one, two] = [newSpanId(), newSpanId()]
  await send(request([chatSpan(traceId, tokensOf(100, 20), { spanId: one, parentSpanId: one })]))
  assert.equal((await timeline(traceId)).usage.totalTokens, 120)
  const other = randomBytes(16).toString('hex')
  const cycle = [
    chatSpan(other, tokensOf(100, 20), { spanId: one, parentSpanId: two }),
    chatSpan(other, tokensOf(7, 2), { spanId: two, parentSpanId: one }),
  ]
  await send(request(cycle))
  const { usage, events } = await timeline(other)
  assert.equal(events.filter(({ payload }) => payload['notCounted'] !== undefined).length, 1)
  assert.ok(usage.totalTokens > 0)
})

test('a count as a list or an object is unknown, and the known side of a call is at least its tokens', async () => {
  for (const input of [['5'], { x: 120 }, '120 ']) {
    const sent = chatSpan(randomBytes(16).toString('hex'), tokensOf(input, 3))
    const { body } = await send(request([sent]))
    assert.match(body.partialSuccess?.errorMessage ?? '', /payload\/usage\/input_tokens must be a whole number/)
    const { id, usage } = await timeline(sent.traceId)
    const run = await service.operator<OperatorRun>(`/environments/${service.environmentId}/runs/${id}`)
    assert.deepEqual([usage.completionTokens, run.body.unpricedCalls], [3, 1], JSON.stringify(input))
    assert.ok((run.body.estimatedCost ?? 0) > 0)
  }
})

test('a count or cost of a coding agent that nobody can read is unknown, and the reply warns of it', async () => {
  const cases: [Record<string, Value>, RegExp, number[]][] = [
    [{ input_tokens: 'many', output_tokens: 20 }, /usage\/input_tokens/, [0, 20, 1]],
    [{ input_tokens: 10, output_tokens: 20, cache_read_tokens: '1,000' }, /cache_read_input_tokens/, [10, 20, 1]],
    [{ input_tokens: 10, output_tokens: 20, cache_read_tokens: -5 }, /cache_read_input_tokens/, [10, 20, 1]],
    [{ input_tokens: 10, output_tokens: 20, cache_read_tokens: 100.5 }, /cache_read_input_tokens/, [10, 20, 1]],
    [{ input_tokens: '10', output_tokens: 20, cost_usd: '$1' }, /payload\/cost/, [10, 20, 0]],
    [{ input_tokens: '10', output_tokens: 20, cost_usd: '1e-3' }, /^$/, [10, 20, 0]],
  ]
  for (const [at, [attributes, warning, expected]] of cases.entries()) {
    const session = `unread-${at}`
    const record = {
      timeUnixNano: nanos(Date.now()),
      body: { stringValue: 'claude_code.api_request' },
      attributes: pairs({ 'session.id': session, model: 'claude-sonnet-4-5', ...attributes }),
    }
    const resource = { attributes: pairs({ 'service.name': 'claude-code' }) }
    const { body } = await send({ resourceLogs: [{ resource, scopeLogs: [{ logRecords: [record] }] }] }, 'logs')
    assert.match(body.partialSuccess?.errorMessage ?? '', warning)
    const { id, usage } = await timeline(session)
    const run = await service.operator<OperatorRun>(`/environments/${service.environmentId}/runs/${id}`)
    const counted = [usage.promptTokens, usage.completionTokens, run.body.unpricedCalls]
    assert.deepEqual(counted, expected, JSON.stringify(attributes))
  }
})

test('the first cost that is one counts, also as a text, and the parts of a cost without a total', async () => {
  const cases: [Record<string, Value>, unknown][] = [
    [{ 'gen_ai.usage.cost': '1e-3' }, 0.001],
    [{ 'gen_ai.usage.cost': '0.0000123456789012345' }, 0.0000123456789012345],
    [{ 'llm.cost.total': 'x', 'gen_ai.usage.cost': 0.4 }, 0.4],
    [{ 'langfuse.observation.cost_details': '{"input":0.1,"output":0.2}' }, 0.3],
    [{ 'langfuse.observation.cost_details': '{"total":"x"}', 'gen_ai.usage.cost': 0.4 }, 0.4],
  ]
  for (const [attributes, cost] of cases) {
    const { payload } = await eventOf({ attributes: { 'gen_ai.operation.name': 'chat', ...attributes } })
    assert.equal(payload['cost'], cost)
  }
})
