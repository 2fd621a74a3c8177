/** What a guarding proxy makes of answers, in every protocol, whole and streamed, as official clients read them. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request, type IncomingMessage, type ServerResponse } from 'node:http'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { AnswerShare } from '../../src/wire/body-copy.ts'
import { startRecordedWire, type RecordedWire } from './recorded-wire.ts'
import { answerJson, chatAnswer, eventsOf, type Script } from './scripted-model.ts'

const POLICIES = [
  {
    policyId: 'no-deletes',
    condition: 'tool.name.startsWith("delete_")',
    action: 'BLOCK',
    severity: 'HIGH',
    name: 'no-deletes',
    version: '1',
    description: 'Nothing is deleted here.',
  },
  {
    policyId: 'ask',
    condition: 'tool.name == "pay"',
    action: 'REQUIRE_APPROVAL',
    severity: 'HIGH',
    name: 'ask',
    version: '1',
    description: null,
  },
]
const CALLS = [
  { id: 'call_del', name: 'delete_all', args: '{"path":"/"}' },
  { id: 'call_read', name: 'read_file', args: '{"path":"a"}' },
]
const GUARD = { deployedPolicies: POLICIES, guarded: { approvalTimeoutMs: 10_000 } }
const REFUSED = /delete_all.*not run|Nothing is deleted/s

const stream = (response: ServerResponse, items: readonly unknown[], end = '') => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  // In pieces that no event respects.
  const bytes = Buffer.from(eventsOf(items, end))
  for (let at = 0; at < bytes.length; at += 31) response.write(bytes.subarray(at, at + 31))
  response.end()
}

const streams = (body: Buffer): boolean => (JSON.parse(body.toString()) as { stream?: boolean }).stream === true

function chatScript(calls: typeof CALLS): Script {
  return ({ body }, response) => {
    if (!streams(body)) return answerJson(response, chatAnswer('Let me see.', calls))
    const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'gpt-5-2026' }
    const delta = (each: object, reason: string | null = null) => ({
      ...chunk,
      choices: [{ index: 0, delta: each, finish_reason: reason }],
    })
    const pieces = calls.flatMap(({ id, name, args }, index) => [
      delta({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
      ...args
        .split(':')
        .map((part, at) => delta({ tool_calls: [{ index, function: { arguments: at === 0 ? part : `:${part}` } }] })),
    ])
    stream(
      response,
      [
        delta({ role: 'assistant', content: 'Let me see.' }),
        ...pieces,
        delta({}, 'tool_calls'),
        { ...chunk, choices: [], usage: chatAnswer('').usage },
      ],
      'data: [DONE]\n\n',
    )
  }
}

async function chat(wire: RecordedWire, isStream: boolean): Promise<OpenAI.ChatCompletion.Choice> {
  const client = new OpenAI({ apiKey: 'sk', baseURL: wire.baseOf('openai', '/v1'), maxRetries: 0 })
  const asked = { model: 'gpt-5', messages: [{ role: 'user' as const, content: 'Clean up' }] }
  const answer = isStream
    ? await client.chat.completions.stream(asked).finalChatCompletion()
    : await client.chat.completions.create(asked)
  assert.ok(answer.choices[0])
  return answer.choices[0]
}

for (const isStream of [false, true]) {
  const kind = isStream ? 'streamed' : 'whole'

  test(`chat completions, ${kind}: a refused call becomes text, the other one stays`, async () => {
    await using wire = await startRecordedWire(chatScript(CALLS), GUARD)
    const { message, finish_reason: reason } = await chat(wire, isStream)
    assert.deepEqual(
      message.tool_calls?.map((call) => [call.id, 'function' in call && call.function.arguments]),
      [['call_read', '{"path":"a"}']],
    )
    assert.match(message.content ?? '', REFUSED)
    assert.match(message.content ?? '', /^Let me see\./)
    assert.equal(reason, 'tool_calls')
    const events = await wire.end()
    assert.deepEqual(
      events.map(({ eventType }) => eventType),
      ['USER_INPUT', 'LLM_CALL', 'POLICY_DECISION', 'SESSION_OUTCOME'],
    )
    assert.equal(events[2]?.payload['toolCallId'], 'call_del')
    assert.deepEqual(
      (events[1]?.payload['toolCalls'] as { name: string }[] | undefined)?.map(({ name }) => name),
      ['delete_all', 'read_file'],
    )
  })

  test(`chat completions, ${kind}: without a call that is left, the answer stops`, async () => {
    await using wire = await startRecordedWire(chatScript(CALLS.slice(0, 1)), GUARD)
    const { message, finish_reason: reason } = await chat(wire, isStream)
    assert.equal(message.tool_calls?.length ?? 0, 0)
    assert.match(message.content ?? '', REFUSED)
    assert.equal(reason, 'stop')
  })

  test(`chat completions, ${kind}: nothing refused, and every byte is the model's`, async () => {
    await using wire = await startRecordedWire(chatScript(CALLS.slice(1)), GUARD)
    const body = JSON.stringify({ model: 'gpt-5', stream: isStream, messages: [{ role: 'user', content: 'Read a' }] })
    const ask = async (base: string) => {
      const answer = await fetch(`${base}/chat/completions`, {
        method: 'POST',
        body,
        headers: { 'accept-encoding': 'identity' },
      })
      return answer.text()
    }
    assert.equal(await ask(wire.baseOf('openai', '/v1')), await ask(`${wire.model.origin}/v1`))
  })

  test(`Anthropic messages, ${kind}: the same`, async () => {
    const blocks = CALLS.map(({ id, name, args }) => ({
      type: 'tool_use',
      id,
      name,
      input: JSON.parse(args) as object,
    }))
    const message = { id: 'm', type: 'message', role: 'assistant', model: 'claude', stop_sequence: null }
    const usage = { input_tokens: 5, output_tokens: 7, cache_read_input_tokens: 11 }
    await using wire = await startRecordedWire(({ body }, response) => {
      if (!streams(body))
        return answerJson(response, {
          ...message,
          content: [{ type: 'text', text: 'So.' }, ...blocks],
          stop_reason: 'tool_use',
          usage,
        })
      const pieces = blocks.flatMap(({ input, ...block }, at) => [
        { type: 'content_block_start', index: at + 1, content_block: { ...block, input: {} } },
        {
          type: 'content_block_delta',
          index: at + 1,
          delta: { type: 'input_json_delta', partial_json: JSON.stringify(input) },
        },
        { type: 'content_block_stop', index: at + 1 },
      ])
      stream(response, [
        { type: 'message_start', message: { ...message, content: [], stop_reason: null, usage } },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'So.' } },
        { type: 'content_block_stop', index: 0 },
        ...pieces,
        { type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage: { output_tokens: 7 } },
        { type: 'message_stop' },
      ])
    }, GUARD)
    const client = new Anthropic({ apiKey: 'sk', baseURL: wire.baseOf('anthropic'), maxRetries: 0 })
    const asked = { model: 'claude', max_tokens: 9, messages: [{ role: 'user' as const, content: 'Clean up' }] }
    const answer = isStream ? await client.messages.stream(asked).finalMessage() : await client.messages.create(asked)
    assert.deepEqual(
      answer.content.map(({ type }) => type),
      ['text', 'text', 'tool_use'],
    )
    assert.match(JSON.stringify(answer.content[1]), REFUSED)
    assert.equal(answer.stop_reason, 'tool_use')
    const call = (await wire.end()).find(({ eventType }) => eventType === 'LLM_CALL')?.payload
    assert.deepEqual(call?.['usage'], { promptTokens: 16, completionTokens: 7, cachedTokens: 11 })
  })

  test(`responses, ${kind}: the same`, async () => {
    const items = CALLS.map(({ id, name, args }) => ({
      type: 'function_call',
      id: `fc_${id}`,
      call_id: id,
      name,
      arguments: args,
      status: 'completed',
    }))
    const whole = {
      id: 'resp_1',
      object: 'response',
      created_at: 1,
      status: 'completed',
      model: 'gpt-5-2026',
      output: items,
      usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7 },
    }
    await using wire = await startRecordedWire(({ body }, response) => {
      if (!streams(body)) return answerJson(response, whole)
      const pieces = items.flatMap((item, index) => [
        {
          type: 'response.output_item.added',
          output_index: index,
          item: { ...item, arguments: '', status: 'in_progress' },
        },
        {
          type: 'response.function_call_arguments.delta',
          output_index: index,
          item_id: item.id,
          delta: item.arguments,
        },
        {
          type: 'response.function_call_arguments.done',
          output_index: index,
          item_id: item.id,
          arguments: item.arguments,
        },
        { type: 'response.output_item.done', output_index: index, item },
      ])
      stream(response, [
        { type: 'response.created', response: { ...whole, output: [], status: 'in_progress' } },
        ...pieces,
        { type: 'response.completed', response: whole },
      ])
    }, GUARD)
    const client = new OpenAI({ apiKey: 'sk', baseURL: wire.baseOf('openai', '/v1'), maxRetries: 0 })
    const asked = { model: 'gpt-5', input: 'Clean up' }
    const answer = isStream
      ? await client.responses.stream(asked).finalResponse()
      : await client.responses.create(asked)
    assert.deepEqual(
      answer.output.map(({ type }) => type),
      ['message', 'function_call'],
    )
    assert.match(answer.output_text, REFUSED)
  })

  test(`Gemini, ${kind}: the same`, async () => {
    const parts = CALLS.map(({ name, args }) => ({ functionCall: { name, args: JSON.parse(args) as object } }))
    const usageMetadata = { promptTokenCount: 6, candidatesTokenCount: 2, thoughtsTokenCount: 3, totalTokenCount: 11 }
    await using wire = await startRecordedWire((_asked, response) => {
      const answer = (given: readonly object[], finishReason?: string) => ({
        candidates: [{ index: 0, content: { role: 'model', parts: given }, finishReason }],
        usageMetadata,
        modelVersion: 'gemini-3',
      })
      if (!isStream) return answerJson(response, answer([{ text: 'So.' }, ...parts], 'STOP'))
      stream(response, [answer([{ text: 'So.' }]), ...parts.map((part) => answer([part])), answer([], 'STOP')])
    }, GUARD)
    const path = isStream ? ':streamGenerateContent?alt=sse' : ':generateContent'
    const body = JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'Clean up' }] }] })
    const text = await (
      await fetch(`${wire.baseOf('gemini')}/v1beta/models/gemini-3${path}`, { method: 'POST', body })
    ).text()
    assert.match(text, REFUSED)
    assert.match(text, /read_file/)
    assert.equal(text.includes('"functionCall":{"name":"delete_all"'), false)
    const call = (await wire.end()).find(({ eventType }) => eventType === 'LLM_CALL')?.payload
    assert.equal(call?.['model'], 'gemini-3')
    assert.deepEqual(call?.['usage'], { promptTokens: 6, completionTokens: 5, totalTokens: 11, reasoningTokens: 3 })
  })
}

test('a call that a person approves passes; its event names the approval', async () => {
  const script: Script = (asked, response) => {
    const isDone = asked.body.toString().includes('"role":"tool"')
    answerJson(
      response,
      isDone ? chatAnswer('Paid.') : chatAnswer(null, [{ id: 'call_pay', name: 'pay', args: '{"amount":5}' }]),
    )
  }
  await using wire = await startRecordedWire(script, { ...GUARD, approvals: 'approve' })
  const client = new OpenAI({ apiKey: 'sk', baseURL: wire.baseOf('openai', '/v1'), maxRetries: 0 })
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Pay 5' }]
  const { choices } = await client.chat.completions.create({ model: 'gpt-5', messages })
  assert.ok(choices[0]?.message.tool_calls)
  messages.push(choices[0].message, { role: 'tool', tool_call_id: 'call_pay', content: 'ok' })
  await client.chat.completions.create({ model: 'gpt-5', messages })
  const tool = (await wire.end()).find(({ eventType }) => eventType === 'TOOL_CALL')?.payload
  assert.equal(typeof tool?.['approvalId'], 'string')
  assert.equal(typeof tool?.['inputHash'], 'string')
})

test('without policies, a guarding proxy refuses; texts pass all the same', async () => {
  await using wire = await startRecordedWire(chatScript(CALLS.slice(1)), {
    guarded: GUARD.guarded,
    guard: { whenUnconfigured: 'block' },
  })
  wire.fake.setDown(true)
  const { message } = await chat(wire, false)
  assert.match(message.content ?? '', /^Let me see\.\n.*read_file/s)
  assert.equal(message.tool_calls?.length ?? 0, 0)
})

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

for (const path of [
  '/chat/completions/',
  '/chat%2Fcompletions',
  '/chat/completion%73?x=1',
  '/chat/completion%2573',
  '/chat/completions;x',
  '/chat/completions%20',
  '/chat/completions%3Fx',
  '/chat//./x/../Completions',
]) {
  test(`a path in another spelling is the same call: ${path}`, async () => {
    await using wire = await startRecordedWire(chatScript(CALLS), GUARD)
    const text = await spelled(`${wire.baseOf('openai', '/v1')}${path}`, 'POST')
    assert.match(text, REFUSED)
    assert.equal(text.includes('"delete_all"'), false)
  })
}

/** As it stands: `fetch` would resolve it. */
async function spelled(url: string, method: string): Promise<string> {
  const { origin, host } = new URL(url)
  const sent = request(origin, { method, path: url.slice(origin.length), headers: { host } })
  sent.end(
    method === 'POST' ? JSON.stringify({ model: 'gpt-5', messages: [{ role: 'user', content: 'Clean up' }] }) : '',
  )
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  const pieces = await answer.toArray()
  return `${answer.statusCode} ${Buffer.concat(pieces as Buffer[]).toString()}`
}

for (const [method, path] of [
  ['GET', '/chat/completions/c1'],
  ['POST', '/chat/completions/c1'],
  ['GET', '/chat/completions'],
  ['PUT', '/chat/completions'],
  ['GET', '/messages/batches/b1/results'],
] as const) {
  test(`what cannot be judged is refused: ${method} ${path}`, async () => {
    await using wire = await startRecordedWire((_asked, response) => answerJson(response, chatAnswer('', CALLS)), GUARD)
    assert.match(await spelled(wire.baseOf('openai', `/v1${path}`), method), /^403 .*cannot judge/)
    assert.equal(wire.model.asked.length, 0)
  })
}

test('what has no calls in its answer passes a guard', async () => {
  await using wire = await startRecordedWire((_asked, response) => answerJson(response, { ok: true }), GUARD)
  for (const [method, path] of [
    ['GET', '/models'],
    ['DELETE', '/chat/completions/c1'],
    ['POST', '/messages/count_tokens'],
    ['GET', '/threads/t1/messages'],
  ] as const)
    assert.match(await spelled(wire.baseOf('openai', `/v1${path}`), method), /^200/, path)
})

test('a redirection stays behind the guard', async () => {
  let location = ''
  await using wire = await startRecordedWire((asked, response) => {
    response.writeHead(asked.path === '/v1/ask' ? 307 : 308, { location }).end()
  }, GUARD)
  const base = wire.baseOf('openai', '/v1')
  const ask = (path: string) =>
    fetch(`${base}${path}`, {
      method: 'POST',
      body: JSON.stringify({ model: 'gpt-5', messages: [] }),
      redirect: 'manual',
    })
  for (const own of [`${wire.model.origin}/v1/chat/completions/`, '/v1/chat/completions/', 'completions/']) {
    location = own
    const answer = await ask('/chat/completions')
    assert.equal(answer.status, 308)
    assert.equal(new URL(answer.headers.get('location') ?? '', base).href, `${base}/chat/completions/`)
  }
  for (const other of ['https://elsewhere.example/v1/chat/completions', '//elsewhere.example/', 'http://[']) {
    location = other
    for (const path of ['/chat/completions', '/ask']) {
      const answer = await ask(path)
      assert.equal(answer.status, 502)
      assert.equal(answer.headers.get('location'), null)
      await answer.text()
    }
  }
})

test('answers under way share one bound: beyond it a guard refuses, and a recording goes on without a copy', async () => {
  await using guarded = await startRecordedWire(chatScript(CALLS), GUARD)
  await using wire = await startRecordedWire(chatScript(CALLS))
  const ask = ({ baseOf }: RecordedWire) =>
    fetch(`${baseOf('openai', '/v1')}/chat/completions`, { method: 'POST', body: '{"model":"gpt-5","messages":[]}' })
  const share = new AnswerShare()
  assert.ok(share.take(512 * 1_048_576))
  try {
    const refused = await ask(guarded)
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1'])
    assert.match(await (await ask(wire)).text(), /delete_all/)
  } finally {
    share.release()
  }
  assert.match(await (await ask(guarded)).text(), REFUSED)
  await guarded.end()
  const call = (await wire.end()).find(({ eventType }) => eventType === 'LLM_CALL')?.payload
  assert.equal(call?.['output'], '[too large]')
  // Nothing is left of either.
  const all = new AnswerShare()
  assert.ok(all.take(512 * 1_048_576))
  all.release()
})
