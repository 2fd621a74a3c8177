/** Several candidates of one answer stay apart. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as openai from '@tacho/sdk/openai'
import OpenAI from 'openai'
import { startScene } from './scene.ts'

const call = (id: string, text: string) => ({ id, type: 'function', function: { name: 'refund', arguments: text } })
/** Two candidates. The second one was cut. */
const CHOICES = [
  { content: 'First.', calls: [call('a', '{"order":1}')], reason: 'tool_calls' },
  { content: 'Second.', calls: [call('b', '{"order":2')], reason: 'length' },
]

function answerOf(stream: boolean): Response {
  const base = { id: 'x', created: 1, model: 'gpt-5', object: stream ? 'chat.completion.chunk' : 'chat.completion' }
  if (!stream) {
    const choices = CHOICES.map(({ content, calls, reason }, index) => ({
      index,
      message: { role: 'assistant', content, tool_calls: calls },
      finish_reason: reason,
    }))
    return Response.json({ ...base, choices })
  }
  // Pieces of the candidates alternate.
  const deltas = [
    ...CHOICES.map(({ content }, index) => ({ index, delta: { role: 'assistant', content } })),
    ...CHOICES.map(({ calls }, index) => ({
      index,
      delta: { tool_calls: calls.map((one) => ({ ...one, index: 0 })) },
    })),
    ...CHOICES.map(({ reason }, index) => ({ index, delta: {}, finish_reason: reason })),
  ]
  const lines = deltas.map((choice) => `data: ${JSON.stringify({ ...base, choices: [choice] })}\n\n`)
  return new Response(`${lines.join('')}data: [DONE]\n\n`, { headers: { 'content-type': 'text/event-stream' } })
}

for (const stream of [false, true]) {
  test(`OpenAI${stream ? ', streamed' : ''}: the texts and calls of several candidates stay apart`, async (t) => {
    const scene = await startScene(t, {})
    const { tacho } = scene.fake
    const client = openai.recordClient(new OpenAI({ apiKey: 'key', fetch: async () => answerOf(stream) }), tacho)
    await tacho.run(async () => {
      const body = { model: 'gpt-5', n: 2, messages: [{ role: 'user' as const, content: 'Refund' }] }
      if (stream) for await (const _ of await client.chat.completions.create({ ...body, stream }));
      else await client.chat.completions.create(body)
    })
    const [recorded] = (await scene.fake.events()).filter(({ eventType }) => eventType === 'LLM_CALL')
    assert.partialDeepStrictEqual(recorded?.payload, {
      output: [
        { content: 'First.', toolCalls: [{ id: 'a', arguments: { order: 1 } }] },
        { content: 'Second.', toolCalls: [{ id: 'b', arguments: '{"order":2' }] },
      ],
      finishReason: 'tool_calls',
    })
    assert.deepEqual(recorded?.payload['toolCalls'], [
      { id: 'a', name: 'refund' },
      { id: 'b', name: 'refund', arguments: '{"order":2', problem: 'cut' },
    ])
  })
}
