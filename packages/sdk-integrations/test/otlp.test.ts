/** OpenTelemetry instrumentations, set up as users do, against a real server, without the Tacho SDK. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createOpenAI } from '@ai-sdk/openai'
import { OpenTelemetry } from '@ai-sdk/otel'
import { LangChainInstrumentation } from '@arizeai/openinference-instrumentation-langchain'
import { OpenAIInstrumentation } from '@arizeai/openinference-instrumentation-openai'
import * as callbackManager from '@langchain/core/callbacks/manager'
import { ChatOpenAI } from '@langchain/openai'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { generateText, isStepCount, streamText, tool } from 'ai'
import * as langchain from 'langchain'
import OpenAI from 'openai'
import { z } from 'zod'
import { startService, type RunDetail, type Service } from '../../server/test/setup/service.ts'
import { startModelServer, type ModelServer } from '../src/model-server.ts'
import { DONE, THREE_REFUNDS } from './scene.ts'

let service: Service
let model: ModelServer
before(async () => {
  service = await startService()
  // The first request of an agent has no tool results yet.
  model = await startModelServer(({ body }) => (/refunded/.test(JSON.stringify(body)) ? DONE : THREE_REFUNDS))
})
after(async () => {
  await model.close()
  await service.close()
})

const createExporter = () =>
  new OTLPTraceExporter({
    url: `${service.url}/openapi/v1/otlp/v1/traces`,
    headers: { 'x-api-key': service.apiKey },
  })

/** The run of the spans that `act` creates. The spans are sent twice. */
async function runOf(act: (provider: TracerProvider) => Promise<unknown>): Promise<RunDetail> {
  const made = new InMemorySpanExporter()
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'shop' }),
    spanProcessors: [
      new BatchSpanProcessor({ exporter: createExporter() }),
      new SimpleSpanProcessor({ exporter: made }),
    ],
  })
  await act(provider)
  await provider.forceFlush()
  const spans = made.getFinishedSpans()
  const runId = spans[0]?.spanContext().traceId ?? ''
  const first = await service.api<RunDetail>(`/runs/${runId}`)
  assert.equal(first.status, 200)
  const again = createExporter()
  await new Promise<void>((done, fail) =>
    again.export(spans, ({ code, error }) => (code === 0 ? done() : fail(error ?? new Error('not exported')))),
  )
  await again.shutdown()
  await provider.shutdown()
  const second = await service.api<RunDetail>(`/runs/${runId}`)
  assert.deepEqual(second.body.usage, first.body.usage, 'sent twice, counted once')
  assert.equal(second.body.events.length, first.body.events.length, 'sent twice, stored once')
  return second.body
}

const payloads = ({ events }: RunDetail, type: string) =>
  events.filter(({ eventType }) => eventType === type).map(({ payload }) => payload)

/** The messages of a call, as docs/otlp.md shows their shape. */
function assertCalls(run: RunDetail): void {
  assert.partialDeepStrictEqual(payloads(run, 'LLM_CALL').at(0), {
    model: 'gpt-5',
    usage: { promptTokens: 20, completionTokens: 10 },
    messages: [{ role: 'user', content: 'Refund all' }],
    output: {
      role: 'assistant',
      content: 'I refund.',
      toolCalls: [1, 2, 3].map((order) => ({ name: 'refund', arguments: { order } })),
    },
  })
}

/** The three calls of the tool, which may have the same time. */
function assertTools(run: RunDetail, resultOf = (output: unknown) => output): void {
  assert.deepEqual(
    payloads(run, 'TOOL_CALL')
      .map(({ toolName, input, output }) => [toolName, input, resultOf(output)])
      .toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b))),
    [1, 2, 3].map((order) => ['refund', { order }, { refunded: order }]),
  )
}

const refund = tool({
  description: 'Refunds an order',
  inputSchema: z.object({ order: z.number() }),
  execute: async ({ order }) => ({ refunded: order }),
})

for (const name of ['generateText', 'streamText'] as const) {
  test(`the telemetry of the Vercel AI SDK: ${name}`, async () => {
    const run = await runOf(async (provider) => {
      const options = {
        model: createOpenAI({ apiKey: 'key', baseURL: `${model.url}/v1` })('gpt-5'),
        tools: { refund },
        prompt: 'Refund all',
        maxRetries: 0,
        stopWhen: isStepCount(3),
        telemetry: { functionId: 'Refunds', integrations: [new OpenTelemetry({ tracer: provider.getTracer('ai') })] },
      }
      if (name === 'generateText') await generateText(options)
      else await streamText(options).consumeStream()
    })
    assert.equal(run.status, 'COMPLETED')
    assert.equal(run.agent.name, 'Refunds')
    assert.deepEqual([run.usage.promptTokens, run.usage.completionTokens], [40, 20])
    assertCalls(run)
    assertTools(run)
  })
}

test('OpenInference for the OpenAI client', async () => {
  const run = await runOf(async (provider) => {
    const instrumentation = new OpenAIInstrumentation({ tracerProvider: provider })
    instrumentation.manuallyInstrument(OpenAI as never)
    const client = new OpenAI({ apiKey: 'key', baseURL: `${model.url}/v1`, maxRetries: 0 })
    await client.chat.completions.create({ model: 'gpt-5', messages: [{ role: 'user', content: 'Refund all' }] })
    instrumentation.disable()
  })
  assert.equal(run.status, 'COMPLETED')
  assert.equal(run.agent.name, 'shop')
  assertCalls(run)
})

test('OpenInference for LangChain: an agent and its tools', async () => {
  const run = await runOf(async (provider) => {
    const instrumentation = new LangChainInstrumentation({ tracerProvider: provider })
    instrumentation.manuallyInstrument(callbackManager as never)
    const configuration = { baseURL: `${model.url}/v1` }
    const agent = langchain.createAgent({
      model: new ChatOpenAI({ model: 'gpt-5', apiKey: 'key', maxRetries: 0, configuration }),
      tools: [
        langchain.tool(({ order }: { order: number }) => JSON.stringify({ refunded: order }), {
          name: 'refund',
          description: 'Refunds an order',
          schema: z.object({ order: z.number() }),
        }),
      ],
    })
    await agent.invoke({ messages: [{ role: 'user', content: 'Refund all' }] })
    instrumentation.disable()
  })
  assert.equal(run.status, 'COMPLETED')
  assert.equal(run.agent.name, 'shop')
  // LangChain's chains and graph nodes repeat the usage of the calls inside them. Usage must count once.
  assert.deepEqual([run.usage.promptTokens, run.usage.completionTokens], [40, 20])
  assertCalls(run)
  assertTools(run, (output) => {
    const { content } = (output as { output: { kwargs: { content: string } } }).output.kwargs
    return JSON.parse(content) as unknown
  })
})
