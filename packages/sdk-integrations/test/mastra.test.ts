/** `@tacho/sdk/mastra` with the real Mastra. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOpenAI } from '@ai-sdk/openai'
import { Agent } from '@mastra/core/agent'
import type { MastraModelConfig } from '@mastra/core/llm'
import { createTool } from '@mastra/core/tools'
import { recordModel } from '@tacho/sdk/ai'
import { guardTool } from '@tacho/sdk/mastra'
import { z } from 'zod'
import { assertScene, DONE, startScene, THREE_REFUNDS, type Scene } from './scene.ts'

function agentOf({ fake, model, refund }: Scene) {
  const openai = createOpenAI({ apiKey: 'key', baseURL: `${model.url}/v1` })
  const tool = guardTool(
    createTool,
    fake.tacho,
  )({
    id: 'refund',
    description: 'Refunds an order',
    inputSchema: z.object({ order: z.number() }),
    execute: async ({ order }) => refund(order),
  })
  return new Agent({
    id: 'refunds',
    name: 'Refunds',
    instructions: 'Be brief',
    // Mastra's types are for an older release of the provider interface.
    model: recordModel(openai('gpt-5'), fake.tacho) as MastraModelConfig,
    tools: { refund: tool },
  })
}

test('generate: model calls are recorded, tools are guarded, a refusal is a tool error', async (t) => {
  const scene = await startScene(t, THREE_REFUNDS, DONE)
  const { text } = await scene.fake.tacho.run(() => agentOf(scene).generate('Refund all'))
  // Mastra joins the texts of all steps.
  assert.equal(text, `${THREE_REFUNDS.text}${DONE.text}`)
  await assertScene(scene, { provider: 'openai.responses' })
})

test('stream: the same, with the time to the first output', async (t) => {
  const scene = await startScene(t, THREE_REFUNDS, DONE)
  const text = await scene.fake.tacho.run(async () => (await agentOf(scene).stream('Refund all')).text)
  assert.equal(text, DONE.text)
  await assertScene(scene)
  const [call] = (await scene.fake.events()).filter(({ eventType }) => eventType === 'LLM_CALL')
  assert.equal(typeof call?.payload['timeToFirstOutput'], 'number')
})
