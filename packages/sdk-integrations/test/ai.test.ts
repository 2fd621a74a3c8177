/** `@tacho/sdk/ai` with the real Vercel AI SDK. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { guardTools, recordModel } from '@tacho/sdk/ai'
import { fakeTacho } from '@tacho/sdk/testing'
import { generateText, isStepCount, streamText, tool, type LanguageModel } from 'ai'
import { z } from 'zod'
import { assertScene, DONE, onlyCall, startScene, THREE_REFUNDS, type Scene } from './scene.ts'

function optionsOf({ fake, model, refund }: Scene) {
  const openai = createOpenAI({ apiKey: 'key', baseURL: `${model.url}/v1` })
  return {
    model: recordModel(openai('gpt-5'), fake.tacho),
    tools: guardTools(
      {
        refund: tool({
          description: 'Refunds an order',
          inputSchema: z.object({ order: z.number() }),
          execute: async ({ order }) => refund(order),
        }),
      },
      fake.tacho,
    ),
    prompt: 'Refund all',
    maxRetries: 0,
    stopWhen: isStepCount(3),
  }
}

test('generateText: model calls are recorded, tools are guarded, a refusal is a tool error', async (t) => {
  const scene = await startScene(t, THREE_REFUNDS, DONE)
  const { text, steps } = await scene.fake.tacho.run(() => generateText(optionsOf(scene)))
  assert.equal(text, DONE.text)
  assert.ok(steps[0]?.content.some(({ type }) => type === 'tool-error'))
  await assertScene(scene, { provider: 'openai.responses' })
})

test('streamText: the same, with the time to the first output', async (t) => {
  const scene = await startScene(t, THREE_REFUNDS, DONE)
  const text = await scene.fake.tacho.run(async () => streamText(optionsOf(scene)).text)
  assert.equal(text, DONE.text)
  await assertScene(scene)
  const [call] = (await scene.fake.events()).filter(({ eventType }) => eventType === 'LLM_CALL')
  assert.equal(typeof call?.payload['timeToFirstOutput'], 'number')
})

test('models of another provider are recorded in the same shape', async (t) => {
  const scene = await startScene(t, THREE_REFUNDS, DONE)
  const anthropic = createAnthropic({ apiKey: 'key', baseURL: `${scene.model.url}/v1` })
  const model = recordModel(anthropic('claude-opus-5-5'), scene.fake.tacho)
  await scene.fake.tacho.run(() => generateText({ ...optionsOf(scene), model }))
  await assertScene(scene, { provider: 'anthropic.messages' })
})

test('a function that returns a generator without being one fails, and its body does not run', async (t) => {
  const scene = await startScene(t, THREE_REFUNDS, DONE)
  async function* refunds(order: number) {
    yield scene.refund(order)
  }
  const { refund } = guardTools(
    {
      refund: {
        inputSchema: z.object({ order: z.number() }),
        execute: ({ order }: { order: number }) => refunds(order),
      },
    },
    scene.fake.tacho,
  )
  await assert.rejects(async () => refund.execute({ order: 1 }), /declare it async function\*/)
  assert.deepEqual(scene.refunded, [])
})

test('an error of the model stays the same error, and is recorded', async (t) => {
  const scene = await startScene(t, { status: 400 })
  await assert.rejects(
    scene.fake.tacho.run(() => generateText(optionsOf(scene))),
    { message: 'The script says no' },
  )
  const { error, messages } = await onlyCall(scene)
  assert.match(String(error), /The script says no/)
  assert.deepEqual(messages, [{ role: 'user', content: 'Refund all' }])
})

test('a stream that breaks is recorded as failed', async (t) => {
  const scene = await startScene(t, { text: 'A long answer that never ends', half: 'cut' })
  const { textStream } = await scene.fake.tacho.run(() => streamText({ ...optionsOf(scene), onError: () => undefined }))
  await textStream.pipeTo(new WritableStream()).catch(() => undefined)
  assert.ok((await onlyCall(scene))['error'] !== undefined)
})

test('a stream that the host leaves is recorded as aborted, with what had arrived', async (t) => {
  const scene = await startScene(t, { text: 'A long answer that is not read to its end' })
  await scene.fake.tacho.run(async () => {
    const { model } = optionsOf(scene)
    const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Refund all' }] }]
    const { stream } = await model.doStream({ prompt })
    const reader = stream.getReader()
    while (!(await reader.read()).value?.type.endsWith('text-delta'));
    await reader.cancel()
  })
  assert.partialDeepStrictEqual(await onlyCall(scene), { finishReason: 'aborted', output: { content: 'A lo' } })
})

test('hostile values of a provider never reach the host as an error, and a call outside a run is a run of its own', async (t) => {
  const scene = await startScene(t)
  const trap = new Proxy(
    {},
    {
      get() {
        throw new Error('hands off')
      },
    },
  )
  const endless: Record<string, unknown> = { type: 'text', text: 'x'.repeat(3_000_000) }
  endless['self'] = endless
  const model = recordModel(
    {
      modelId: 'hostile',
      doGenerate: async () => ({ content: [endless, trap], usage: trap, finishReason: trap, response: trap }),
      doStream: async () => ({ stream: new ReadableStream({ start: (c) => (c.enqueue(trap), c.close()) }) }),
    },
    scene.fake.tacho,
  )
  await model.doGenerate()
  const { stream } = await model.doStream()
  for await (const _ of stream);
  const runs = await scene.fake.runs()
  assert.deepEqual(
    runs.map(({ status }) => status),
    ['COMPLETED', 'COMPLETED'],
  )
})

test('any LanguageModel is taken; the name of a gateway model stays a name, with a warning', async () => {
  const codes: string[] = []
  const { tacho, close } = fakeTacho({ onDiagnostic: ({ code }) => codes.push(code) })
  const models: LanguageModel[] = [createOpenAI({ apiKey: 'key' })('gpt-5'), 'openai/gpt-5']
  const [, name] = models.map((model): LanguageModel => recordModel(model, tacho))
  assert.equal(name, 'openai/gpt-5')
  assert.deepEqual(codes, ['model_not_recorded'])
  await close()
})

test('what a gateway says it charges is the cost, whole and streamed', async (t) => {
  const usage = { inputTokens: { total: 3 }, outputTokens: { total: 4 } }
  const asked = { prompt: [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Hi' }] }] }
  for (const [metadata, cost] of [
    [{ gateway: { cost: '0.0123' } }, 0.0123],
    [{ openrouter: { usage: { cost: 0.0123 } } }, 0.0123],
    [{ litellm: { response_cost: 0.0123 } }, 0.0123],
    [{ perplexity: { usage: { cost: { total_cost: 0.0123, input_tokens_cost: 0.01 } } } }, 0.0123],
    [{ gateway: { cost: 0 } }, 0],
    [{ gateway: { cost: 'free' }, other: { cost: '' }, more: { cost: -1 }, last: { cost: Infinity } }, undefined],
    [undefined, undefined],
  ] as const) {
    const fake = fakeTacho()
    t.after(() => fake.close())
    const model = recordModel(
      {
        specificationVersion: 'v3',
        provider: 'gateway',
        modelId: 'openai/gpt-5',
        supportedUrls: {},
        doGenerate: async () => ({
          content: [],
          usage,
          finishReason: 'stop',
          providerMetadata: metadata,
          warnings: [],
        }),
        doStream: async () => ({
          stream: new ReadableStream({
            start: (controller) => {
              controller.enqueue({ type: 'finish', usage, finishReason: 'stop', providerMetadata: metadata })
              controller.close()
            },
          }),
        }),
      } as never,
      fake.tacho,
    ) as {
      doGenerate(options: object): Promise<unknown>
      doStream(options: object): Promise<{ stream: ReadableStream }>
    }
    await fake.tacho.run(async () => {
      await model.doGenerate(asked)
      const { stream } = await model.doStream(asked)
      for await (const _ of stream);
    })
    const calls = (await fake.events()).filter(({ eventType }) => eventType === 'LLM_CALL')
    assert.deepEqual(
      calls.map(({ payload }) => payload['cost']),
      [cost, cost],
      JSON.stringify(metadata),
    )
  }
})
