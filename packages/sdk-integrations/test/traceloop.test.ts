/** OpenLLMetry, set up as users do, against a real server, without the Tacho SDK. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startService, type RunDetail } from '../../server/test/setup/service.ts'
import { startModelServer } from '../src/model-server.ts'
import { largePackages } from './large-packages.ts'
import { DONE, THREE_REFUNDS } from './scene.ts'

const { skip, load } = largePackages('212 MB', '@traceloop/node-server-sdk@0.27.0', 'openai@7.57.0')

interface Traceloop {
  initialize(options: object): void
  withWorkflow<Result>(options: { name: string }, act: () => Promise<Result>): Promise<Result>
  withTool<Result>(options: { name: string }, act: (input: object) => Promise<Result>, input: object): Promise<Result>
  forceFlush(): Promise<void>
}

interface OpenAi {
  new (options: object): { chat: { completions: { create(options: object): Promise<unknown> } } }
}

test('the SDK of Traceloop: a workflow with a model call and a tool', { skip }, async (t) => {
  const service = await startService()
  t.after(() => service.close())
  const model = await startModelServer(() => (model.requests.length > 1 ? DONE : THREE_REFUNDS))
  t.after(() => model.close())
  const traceloop = (await load('@traceloop/node-server-sdk')) as Traceloop
  const { default: OpenAI } = (await load('openai')) as { default: OpenAi }
  traceloop.initialize({
    appName: 'shop',
    baseUrl: `${service.url}/openapi/v1/otlp`,
    headers: { 'x-api-key': service.apiKey },
    disableBatch: true,
    instrumentModules: { openAI: OpenAI },
    silenceInitializationMessage: true,
    tracingEnabled: true,
    traceloopSyncEnabled: false,
  })
  const client = new OpenAI({ apiKey: 'key', baseURL: `${model.url}/v1`, maxRetries: 0 })
  await traceloop.withWorkflow({ name: 'refunds' }, async () => {
    await client.chat.completions.create({ model: 'gpt-5', messages: [{ role: 'user', content: 'Refund all' }] })
    await traceloop.withTool({ name: 'refund' }, async () => ({ refunded: 1 }), { order: 1 })
  })
  await traceloop.forceFlush()
  const runs = await service.api<{ items: { runId: string }[] }>('/runs')
  assert.equal(runs.body.items.length, 1)
  const { body } = await service.api<RunDetail>(`/runs/${runs.body.items[0]?.runId}`)
  const of = (type: string) => body.events.filter(({ eventType }) => eventType === type).map(({ payload }) => payload)
  assert.deepEqual([body.status, body.agent.name], ['COMPLETED', 'shop'])
  assert.deepEqual([body.usage.promptTokens, body.usage.completionTokens], [20, 10])
  assert.partialDeepStrictEqual(of('LLM_CALL'), [
    { model: 'gpt-5', messages: [{ role: 'user', content: 'Refund all' }] },
  ])
  assert.partialDeepStrictEqual(of('TOOL_CALL'), [{ toolName: 'refund', output: { refunded: 1 } }])
})
