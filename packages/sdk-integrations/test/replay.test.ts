/** Records a run of each framework as a tape, and replays the same agent strictly: without a model and without tools. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { ChatOpenAI } from '@langchain/openai'
import { Agent as MastraAgent } from '@mastra/core/agent'
import type { MastraModelConfig } from '@mastra/core/llm'
import { createTool } from '@mastra/core/tools'
import { Agent, OpenAIProvider, Runner, setTraceProcessors, tool as openaiTool } from '@openai/agents'
import { Tacho } from '@tacho/sdk'
import * as ai from '@tacho/sdk/ai'
import * as anthropic from '@tacho/sdk/anthropic'
import * as langchain from '@tacho/sdk/langchain'
import * as mastra from '@tacho/sdk/mastra'
import * as openai from '@tacho/sdk/openai'
import * as openaiAgents from '@tacho/sdk/openai-agents'
import { generateText, isStepCount, streamText, tool as aiTool } from 'ai'
import { createAgent, tool as langchainTool } from 'langchain'
import OpenAI from 'openai'
import { z } from 'zod'
import { ReplayHost } from '../../cli/src/record/tape/host.ts'
import { recordedSteps } from '../../cli/src/record/tape/recorded-steps.ts'
import type { Tape, TapePolicy } from '../../cli/src/record/tape/tape.ts'
import { madeTape, readBack } from '../../cli/test/tape/made-tape.ts'
import { DONE, FOURTH, startScene, THREE_REFUNDS } from './scene.ts'
import { assertAtFirstAnswer, withOtherInput, withOtherOrder } from './twisted-tape.ts'

process.env['LANGSMITH_TRACING'] = 'false'

interface Place {
  tacho: Tacho
  openai: string
  anthropic: string
  refund(order: number): { refunded: number }
  prompt: string
}

type Act = (place: Place) => Promise<unknown>

const ORDER = z.object({ order: z.number() })
const about = { name: 'refund', description: 'Refunds an order' }

const aiOptions = ({ tacho, refund, prompt }: Place, model: Parameters<typeof ai.recordModel>[0]) => ({
  model: ai.recordModel(model, tacho) as ReturnType<ReturnType<typeof createOpenAI>>,
  tools: ai.guardTools(
    { refund: aiTool({ ...about, inputSchema: ORDER, execute: async ({ order }) => refund(order) }) },
    tacho,
  ),
  prompt,
  maxRetries: 0,
  stopWhen: isStepCount(4),
})
const openaiModel = ({ openai: baseURL }: Place) => createOpenAI({ apiKey: 'key', baseURL })
const openaiClient = ({ tacho, openai: baseURL }: Place) =>
  openai.recordClient(new OpenAI({ apiKey: 'key', baseURL, maxRetries: 0 }), tacho)

const openaiRequest = ({ tacho, refund, prompt }: Place) => ({
  model: 'gpt-5',
  messages: [{ role: 'user' as const, content: prompt }],
  tools: openai.guardTools(
    [
      {
        type: 'function' as const,
        function: {
          ...about,
          parameters: { type: 'object', properties: { order: { type: 'number' } } },
          parse: (text: string) => JSON.parse(text) as { order: number },
          function: async ({ order }: { order: number }) => refund(order),
        },
      },
    ],
    tacho,
  ),
})

const anthropicRequest = ({ tacho, refund, prompt }: Place) => ({
  model: 'claude-opus-5-5',
  max_tokens: 100,
  messages: [{ role: 'user' as const, content: prompt }],
  tools: anthropic.guardTools(
    [
      {
        type: 'custom' as const,
        ...about,
        input_schema: { type: 'object' as const, properties: { order: { type: 'number' } } },
        parse: (input: unknown) => input as { order: number },
        run: ({ order }: { order: number }) => JSON.stringify(refund(order)),
      },
    ],
    tacho,
  ),
})
const anthropicClient = ({ tacho, anthropic: baseURL }: Place) =>
  anthropic.recordClient(new Anthropic({ apiKey: 'key', baseURL, maxRetries: 0 }), tacho)

const openaiAgent = async ({ tacho, openai: baseURL, refund, prompt }: Place, useResponses: boolean) => {
  setTraceProcessors([openaiAgents.recordTraces(tacho)])
  const refundTool = openaiAgents.guardTool(
    openaiTool,
    tacho,
  )({
    ...about,
    parameters: ORDER,
    execute: async ({ order }) => refund(order),
  })
  const runner = new Runner({ modelProvider: new OpenAIProvider({ apiKey: 'key', baseURL, useResponses }) })
  await runner.run(new Agent({ name: 'Refunds', model: 'gpt-5', tools: [refundTool] }), prompt)
}

const FRAMEWORKS: Record<string, Act> = {
  'AI SDK, generateText': (place) => generateText(aiOptions(place, openaiModel(place)('gpt-5'))),
  'AI SDK, streamText': async (place) => streamText(aiOptions(place, openaiModel(place)('gpt-5'))).text,
  'AI SDK, chat completions': (place) => generateText(aiOptions(place, openaiModel(place).chat('gpt-5'))),
  'AI SDK, Anthropic': (place) => {
    const provider = createAnthropic({ apiKey: 'key', baseURL: `${place.anthropic}/v1` })
    return generateText(aiOptions(place, provider('claude-opus-5-5')))
  },
  'OpenAI client': (place) => openaiClient(place).chat.completions.runTools(openaiRequest(place)).finalContent(),
  'OpenAI client, streamed': (place) =>
    openaiClient(place)
      .chat.completions.runTools({ ...openaiRequest(place), stream: true })
      .finalContent(),
  'Anthropic client': async (place) =>
    anthropicClient(place).beta.messages.toolRunner(anthropicRequest(place)).runUntilDone(),
  'LangChain agent': async ({ tacho, openai: baseURL, refund, prompt }) => {
    const model = new ChatOpenAI({ model: 'gpt-5', apiKey: 'key', maxRetries: 0, configuration: { baseURL } })
    const made = langchainTool(async ({ order }) => JSON.stringify(refund(order)), { ...about, schema: ORDER })
    const agent = createAgent({ model, tools: langchain.guardTools([made], tacho) })
    const callbacks = [langchain.recordCalls(tacho)]
    await agent.invoke({ messages: [{ role: 'user', content: prompt }] }, { callbacks })
  },
  Mastra: async (place) => {
    const refund = mastra.guardTool(
      createTool,
      place.tacho,
    )({
      id: about.name,
      description: about.description,
      inputSchema: ORDER,
      execute: async ({ order }) => place.refund(order),
    })
    const model = ai.recordModel(openaiModel(place)('gpt-5'), place.tacho) as MastraModelConfig
    const agent = new MastraAgent({
      id: 'refunds',
      name: 'Refunds',
      instructions: 'Be brief',
      model,
      tools: { refund },
    })
    await agent.generate(place.prompt)
  },
  'OpenAI Agents, responses': (place) => openaiAgent(place, true),
  'OpenAI Agents, chat completions': (place) => openaiAgent(place, false),
}

async function recordedTape(t: TestContext, act: Act): Promise<Tape> {
  const { fake, model, refund } = await startScene(t, THREE_REFUNDS, FOURTH, DONE)
  const { tacho } = fake
  const place = { tacho, openai: `${model.url}/v1`, anthropic: model.url, refund, prompt: 'Refund all' }
  await tacho.run(() => act(place))
  const asked = await fake.approvals()
  const decided = new Map(asked.map(({ id, status }) => [id, { status, decisionReason: null }]))
  const { steps, obstacles, outcome, agent, recordedBy } = recordedSteps(await fake.events(), decided)
  assert.deepEqual(obstacles, [])
  const policies = (tacho.configuration.state.current?.policies ?? []) as unknown as (TapePolicy & {
    description?: null
  })[]
  const plain = policies.map(({ description: _, ...policy }) => policy)
  return readBack(madeTape(steps, { agent, recordedBy, outcome, policies: plain }))
}

async function replay(tape: Tape, act: Act, prompt = 'Refund all') {
  const host = new ReplayHost(tape, { mode: 'strict', ignored: [] })
  const origin = await host.start()
  process.env['TACHO_REPLAY'] = origin
  const tacho = new Tacho({ apiKey: 'replay', agentName: 'Refunds', onDiagnostic: () => undefined })
  const refunded: number[] = []
  const refund = (order: number) => ({ refunded: refunded.push(order) })
  const place = { tacho, openai: `${origin}/openai/v1`, anthropic: `${origin}/anthropic`, refund, prompt }
  try {
    await tacho.run(() => act(place)).catch(() => undefined)
    await tacho.shutdown()
    assert.deepEqual(refunded, [], 'no tool ran')
    return host.result()
  } finally {
    delete process.env['TACHO_REPLAY']
    await host.close()
  }
}

for (const [name, act] of Object.entries(FRAMEWORKS)) {
  test(`${name}: an unchanged agent differs nowhere; another prompt, order and input at their step`, async (t) => {
    const tape = await recordedTape(t, act)
    const same = await replay(tape, act)
    assert.equal(same.departure?.sentence, undefined)
    assert.equal(same.verdict, 'same')
    const first = tape.steps.find(({ kind }) => kind === 'model')
    const changed = await replay(tape, act, 'Refund none')
    assert.equal(changed.departure?.step, first?.step)
    assert.match(String(changed.departure?.sentence), /the tape has "Refund all", now it is "Refund none"/)
    const input = await replay(withOtherInput(tape), act)
    assertAtFirstAnswer(tape, input.departure, /input\.order: the tape has [39], now it is 1/)
    const order = await replay(withOtherOrder(tape), act)
    assertAtFirstAnswer(tape, order.departure, /the agent asks refund \{"order":1\}/)
  })
}
