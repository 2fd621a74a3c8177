/** `@tacho/sdk/openai` with the real OpenAI client. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { guardTools, recordClient } from '@tacho/sdk/openai'
import { fakeTacho } from '@tacho/sdk/testing'
import OpenAI, { APIError, APIUserAbortError } from 'openai'
import { assertScene, DONE, onlyCall, startScene, THREE_REFUNDS, type Scene } from './scene.ts'

const clientOf = ({ fake, model }: Scene) =>
  recordClient(new OpenAI({ apiKey: 'key', baseURL: `${model.url}/v1`, maxRetries: 0 }), fake.tacho)

const MESSAGES = [{ role: 'user' as const, content: 'Refund all' }]

const toolsOf = ({ fake, refund }: Scene) =>
  guardTools(
    [
      {
        type: 'function' as const,
        function: {
          name: 'refund',
          description: 'Refunds an order',
          parameters: { type: 'object', properties: { order: { type: 'number' } } },
          parse: (text: string) => JSON.parse(text) as { order: number },
          function: async ({ order }: { order: number }) => refund(order),
        },
      },
    ],
    fake.tacho,
  )

test('runTools: model calls are recorded, tools are guarded, a refusal is the answer of the tool', async (t) => {
  const scene = await startScene(t, THREE_REFUNDS, DONE)
  const client = clientOf(scene)
  const answer = await scene.fake.tacho.run(() =>
    client.chat.completions.runTools({ model: 'gpt-5', messages: MESSAGES, tools: toolsOf(scene) }).finalContent(),
  )
  assert.equal(answer, DONE.text)
  await assertScene(scene, { provider: 'openai', hasCallIds: false })
})

test('a streamed runTools: the same', async (t) => {
  const scene = await startScene(t, THREE_REFUNDS, DONE)
  const client = clientOf(scene)
  const answer = await scene.fake.tacho.run(() =>
    client.chat.completions
      .runTools({ model: 'gpt-5', messages: MESSAGES, tools: toolsOf(scene), stream: true })
      .finalContent(),
  )
  assert.equal(answer, DONE.text)
  await assertScene(scene, { provider: 'openai', hasCallIds: false })
})

test('responses, whole and streamed, are one message with its tool calls', async (t) => {
  for (const stream of [false, true]) {
    const scene = await startScene(t, THREE_REFUNDS)
    const client = clientOf(scene)
    await scene.fake.tacho.run(async () => {
      const request = { model: 'gpt-5', instructions: 'Be brief', input: 'Refund all' }
      if (!stream) return client.responses.create(request)
      const events = await client.responses.create({ ...request, stream: true })
      for await (const _ of events);
      return undefined
    })
    const { output, messages, usage, finishReason, timeToFirstOutput } = await onlyCall(scene)
    assert.partialDeepStrictEqual(output, { role: 'assistant', content: 'I refund.' })
    assert.equal((output as { toolCalls: unknown[] }).toolCalls.length, 3)
    assert.deepEqual(messages, [
      { role: 'system', content: 'Be brief' },
      { role: 'user', content: 'Refund all' },
    ])
    assert.partialDeepStrictEqual(usage, { promptTokens: 20, completionTokens: 10, totalTokens: 30, cachedTokens: 5 })
    assert.equal(finishReason, 'completed')
    assert.equal(timeToFirstOutput !== undefined, stream)
  }
})

test('every way to await an answer works and records it once', async (t) => {
  const scene = await startScene(t, DONE)
  const client = clientOf(scene)
  recordClient(client, scene.fake.tacho)
  const { data } = await client.chat.completions.create({ model: 'gpt-5', messages: MESSAGES }).withResponse()
  assert.equal(data.choices[0]?.message.content, DONE.text)
  const parsed = await client.chat.completions.parse({ model: 'gpt-5', messages: MESSAGES })
  assert.equal(parsed.choices[0]?.message.content, DONE.text)
  const promise = client.chat.completions.create({ model: 'gpt-5', messages: MESSAGES })
  await Promise.all([promise, promise])
  const calls = (await scene.fake.events()).filter(({ eventType }) => eventType === 'LLM_CALL')
  assert.equal(calls.length, 3)
  assert.equal((await scene.fake.runs()).length, 3, 'outside a run, each is a run of its own')
})

test('an error of the model stays the same error, and is recorded', async (t) => {
  const scene = await startScene(t, { status: 400 })
  const client = clientOf(scene)
  const call = scene.fake.tacho.run(() => client.chat.completions.create({ model: 'gpt-5', messages: MESSAGES }))
  await assert.rejects(call, APIError)
  assert.match(String((await onlyCall(scene))['error']), /The script says no/)
})

test('a stream that the host leaves is recorded as aborted, with what had arrived', async (t) => {
  const scene = await startScene(t, { text: 'A long answer that is not read to its end' })
  const client = clientOf(scene)
  await scene.fake.tacho.run(async () => {
    const stream = await client.chat.completions.create({ model: 'gpt-5', messages: MESSAGES, stream: true })
    for await (const { choices } of stream) if (choices[0]?.delta.content) break
  })
  assert.partialDeepStrictEqual(await onlyCall(scene), { finishReason: 'aborted', output: { content: 'A lo' } })
})

test('a tool that takes a text gets the text that the policies judged, whatever it looks like', async (t) => {
  const condition = 'tool.input.input == "second" || has(tool.input.order)'
  const policy = {
    policyId: 'p',
    name: 'p',
    version: '1',
    condition,
    severity: 'MEDIUM' as const,
    action: 'BLOCK' as const,
  }
  const fake = fakeTacho({ deployedPolicies: [policy] })
  t.after(fake.close)
  const ran: string[] = []
  const run = (text: string) => `ran ${ran.push(text)}`
  const [tool] = guardTools([{ type: 'function', function: { name: 'refund', function: run } }], fake.tacho)
  const call = async (text: string) => tool?.function.function(text)
  assert.match((await call('second')) ?? '', /was not run/)
  for (const text of ['{"order":2}', 'first', '[2]', '2']) assert.match((await call(text)) ?? '', /^ran/)
  assert.deepEqual(ran, ['{"order":2}', 'first', '[2]', '2'])
})

test('a tool keeps its class, its parser and the name of its function', async (t) => {
  const scene = await startScene(t)
  class Runnable {
    readonly parameters = {}
    parse(text: string) {
      return JSON.parse(text) as unknown
    }
    function = async function refund(input: unknown) {
      return input
    }
  }
  const [tool] = guardTools([Object.freeze({ type: 'function' as const, function: new Runnable() })], scene.fake.tacho)
  assert.ok(tool?.function instanceof Runnable)
  assert.equal(tool.function.function.name, 'refund')
  assert.deepEqual(await tool.function.function(tool.function.parse('{"order":1}')), { order: 1 })
  await scene.fake.assertEvent('TOOL_CALL', { toolName: 'refund', input: { order: 1 } })
})

test('a run that returns a stream of the client ends with it, whoever reads it', async (t) => {
  const scene = await startScene(t, DONE)
  const stream = await scene.fake.tacho.run(() =>
    clientOf(scene).chat.completions.stream({ model: 'gpt-5', messages: MESSAGES }),
  )
  await stream.finalChatCompletion()
  const [run] = await scene.fake.runs()
  assert.deepEqual(
    run?.events.map(({ eventType }) => eventType),
    ['LLM_CALL', 'SESSION_OUTCOME'],
  )
  assert.equal(run?.status, 'COMPLETED')
})

test('a stream of the client that is aborted cancels its run', async (t) => {
  const scene = await startScene(t, DONE)
  const stream = await scene.fake.tacho.run(() =>
    clientOf(scene).chat.completions.stream({ model: 'gpt-5', messages: MESSAGES }),
  )
  stream.abort()
  await assert.rejects(stream.done(), APIUserAbortError)
  const [run] = await scene.fake.runs()
  assert.equal(run?.status, 'CANCELLED')
})
