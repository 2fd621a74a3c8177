/** Answers behind a guarding proxy, in every protocol, whole and streamed, as official clients read them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { AnswerShare } from '../../src/wire/body-copy.ts'
import { CALLS, chatScript, GUARD, REFUSED, stream, streams } from './guarded-wire.ts'
import { startRecordedWire, type RecordedWire } from './recorded-wire.ts'
import { answerJson, chatAnswer, type Script } from './scripted-model.ts'

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
  // Both answers have released their memory.
  const all = new AnswerShare()
  assert.ok(all.take(512 * 1_048_576))
  all.release()
})
