/** If a reader stops reading a stream without closing it, the model call is still recorded before the outcome of the run. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import { createOpenAI } from '@ai-sdk/openai'
import * as ai from '@tacho/sdk/ai'
import * as anthropic from '@tacho/sdk/anthropic'
import * as openai from '@tacho/sdk/openai'
import { streamText } from 'ai'
import OpenAI from 'openai'
import { openStage, type Stage } from './matrix/matrix.ts'

const MESSAGES = [{ role: 'user' as const, content: 'Act' }]

/** Reads one item and never requests the next. */
async function readOne(stream: AsyncIterable<unknown>): Promise<void> {
  await stream[Symbol.asyncIterator]().next()
}

const WAYS: Record<string, (stage: Stage) => Promise<void>> = {
  OpenAI: async ({ model, tacho }) => {
    const client = openai.recordClient(new OpenAI({ apiKey: 'key', baseURL: `${model.url}/v1` }), tacho)
    await readOne(await client.chat.completions.create({ model: 'gpt-5', messages: MESSAGES, stream: true }))
  },
  Anthropic: async ({ model, tacho }) => {
    const client = anthropic.recordClient(new Anthropic({ apiKey: 'key', baseURL: model.url }), tacho)
    await readOne(await client.messages.create({ model: 'claude', max_tokens: 9, messages: MESSAGES, stream: true }))
  },
  'AI SDK': async ({ model, tacho }) => {
    const recorded = ai.recordModel(createOpenAI({ apiKey: 'key', baseURL: `${model.url}/v1` }).chat('gpt-5'), tacho)
    const parts = streamText({ model: recorded, prompt: 'Act' }).fullStream[Symbol.asyncIterator]()
    // The AI SDK sends parts of its own before those of the model.
    for (let type = ''; type !== 'text-delta';) type = (await parts.next()).value?.type ?? 'text-delta'
  },
}

for (const [name, leave] of Object.entries(WAYS)) {
  test(`${name}: the call of a stream that was left stands before the outcome`, async (t) => {
    const stage = await openStage(t, [{ text: 'A long answer that nobody reads to its end.'.repeat(200) }])
    await stage.tacho.run(() => leave(stage))
    const types = (await stage.fake.events()).map(({ eventType }) => eventType)
    assert.deepEqual(types, ['LLM_CALL', 'SESSION_OUTCOME'])
    await stage.fake.assertEvent('LLM_CALL', { finishReason: 'aborted' })
  })
}
