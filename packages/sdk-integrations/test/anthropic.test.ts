/** `@tacho/sdk/anthropic` with the real Anthropic client. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Anthropic, { APIError } from '@anthropic-ai/sdk'
import { guardTools, recordClient } from '@tacho/sdk/anthropic'
import { assertScene, DONE, onlyCall, startScene, THREE_REFUNDS, type Scene } from './scene.ts'

const clientOf = ({ fake, model }: Scene) =>
  recordClient(new Anthropic({ apiKey: 'key', baseURL: model.url, maxRetries: 0 }), fake.tacho)

const REQUEST = {
  model: 'claude-opus-5-5',
  max_tokens: 100,
  messages: [{ role: 'user' as const, content: 'Refund all' }],
}

const toolsOf = ({ fake, refund }: Scene) =>
  guardTools(
    [
      {
        type: 'custom' as const,
        name: 'refund',
        description: 'Refunds an order',
        input_schema: { type: 'object' as const, properties: { order: { type: 'number' } } },
        parse: (input: unknown) => input as { order: number },
        run: ({ order }: { order: number }) => JSON.stringify(refund(order)),
      },
    ],
    fake.tacho,
  )

test('toolRunner: calls are recorded, tools are guarded, a refusal is a tool error', async (t) => {
  const scene = await startScene(t, THREE_REFUNDS, DONE)
  const client = clientOf(scene)
  await scene.fake.tacho.run(() =>
    client.beta.messages.toolRunner({ ...REQUEST, tools: toolsOf(scene) }).runUntilDone(),
  )
  await assertScene(scene, { provider: 'anthropic' })
  const [, second] = scene.model.requests
  const results = (second?.body['messages'] as { content: { is_error?: boolean }[] }[] | undefined)?.at(-1)?.content
  assert.deepEqual(
    results?.map(({ is_error: isError }) => isError === true),
    [false, true, false],
  )
})

test('messages.stream records the system prompt, the tokens and the time to the first output', async (t) => {
  const scene = await startScene(t, DONE)
  const client = clientOf(scene)
  await scene.fake.tacho.run(() => client.messages.stream({ ...REQUEST, system: 'Be brief' }).finalMessage())
  const call = await onlyCall(scene)
  assert.partialDeepStrictEqual(call, {
    model: 'claude-opus-5-5',
    messages: [{ role: 'system', content: 'Be brief' }, { role: 'user' }],
    output: { role: 'assistant', content: DONE.text },
    usage: { promptTokens: 20, completionTokens: 10, cachedTokens: 5 },
    finishReason: 'end_turn',
  })
  assert.equal(typeof call['timeToFirstOutput'], 'number')
})

test('an error of the model stays the same error; a stream that the host leaves is aborted', async (t) => {
  const failing = await startScene(t, { status: 400 })
  await assert.rejects(
    failing.fake.tacho.run(() => clientOf(failing).messages.create(REQUEST)),
    APIError,
  )
  assert.match(String((await onlyCall(failing))['error']), /The script says no/)

  const left = await startScene(t, { text: 'A long answer that is not read to its end' })
  await left.fake.tacho.run(async () => {
    const stream = await clientOf(left).messages.create({ ...REQUEST, stream: true })
    for await (const { type } of stream) if (type === 'content_block_delta') break
  })
  assert.partialDeepStrictEqual(await onlyCall(left), { finishReason: 'aborted', output: { content: 'A lo' } })
})
