/**
 * A model's answer is where a call begins. One answer asks for four calls: arguments that cannot be read, an unknown tool, a text in
 * place of a number, and a good one. And one that the length limit cut: `{"order":7,"amount":5`, where 5000 was coming.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import { createOpenAI } from '@ai-sdk/openai'
import { ChatOpenAI } from '@langchain/openai'
import { Agent as MastraAgent } from '@mastra/core/agent'
import type { MastraModelConfig } from '@mastra/core/llm'
import { createTool } from '@mastra/core/tools'
import { Agent, OpenAIProvider, Runner, setTraceProcessors, tool as agentsTool } from '@openai/agents'
import * as ai from '@tacho/sdk/ai'
import * as anthropic from '@tacho/sdk/anthropic'
import * as langchain from '@tacho/sdk/langchain'
import * as mastra from '@tacho/sdk/mastra'
import * as openai from '@tacho/sdk/openai'
import * as agents from '@tacho/sdk/openai-agents'
import { generateText, isStepCount, streamText, tool } from 'ai'
import { createAgent, tool as langchainTool } from 'langchain'
import OpenAI from 'openai'
import { z } from 'zod'
import type { Answer } from '../src/model-server.ts'
import { startScene, type Scene } from './scene.ts'

process.env['LANGSMITH_TRACING'] = 'false'

const REFUND = z.object({ order: z.number(), amount: z.number() })
const GOOD = { order: 4, amount: 1 }
const UNREADABLE = { name: 'refund', input: {}, text: '{"order":1,"am' }
const FOUR: Answer = {
  toolCalls: [
    UNREADABLE,
    { name: 'teleport', input: { order: 2 } },
    { name: 'refund', input: { order: 'seven', amount: 1 } },
    { name: 'refund', input: GOOD },
  ],
}
const CUT: Answer = {
  isLong: true,
  toolCalls: [{ name: 'refund', input: { order: 7, amount: 5 }, text: '{"order":7,"amount":5' }],
}
/** It can be read, and nobody knows whether more was coming. */
const SHORT: Answer = { isLong: true, toolCalls: [{ name: 'refund', input: { order: 7, amount: 5 } }] }
const DONE: Answer = { text: 'Done.' }

interface Way {
  run(scene: Scene): unknown
  /** What it records of the four: some frameworks end the run at one of them. */
  four?: readonly (readonly [string, string | undefined])[]
  refunded?: readonly number[]
}

const modelOf = ({ fake, model }: Scene) =>
  ai.recordModel(createOpenAI({ apiKey: 'key', baseURL: `${model.url}/v1` }).chat('gpt-5'), fake.tacho)
const aiOptions = (scene: Scene) => ({
  model: modelOf(scene),
  tools: ai.guardTools(
    { refund: tool({ inputSchema: REFUND, execute: async ({ order }) => scene.refund(order) }) },
    scene.fake.tacho,
  ),
  prompt: 'Refund all',
  maxRetries: 0,
  stopWhen: isStepCount(3),
})

const openaiTools = (scene: Scene) =>
  openai.guardTools(
    [
      {
        type: 'function' as const,
        function: {
          name: 'refund',
          description: 'Refunds an order',
          parameters: { type: 'object', properties: { order: { type: 'number' } } },
          parse: (text: string) => REFUND.parse(JSON.parse(text)),
          function: async ({ order }: { order: number }) => scene.refund(order),
        },
      },
    ],
    scene.fake.tacho,
  )
const openaiClient = ({ fake, model }: Scene) =>
  openai.recordClient(new OpenAI({ apiKey: 'key', baseURL: `${model.url}/v1`, maxRetries: 0 }), fake.tacho)
const ASK = { model: 'gpt-5', messages: [{ role: 'user' as const, content: 'Refund all' }] }

const langchainAgent = (scene: Scene) =>
  createAgent({
    model: new ChatOpenAI({
      model: 'gpt-5',
      apiKey: 'key',
      maxRetries: 0,
      configuration: { baseURL: `${scene.model.url}/v1` },
    }),
    tools: langchain.guardTools(
      [
        langchainTool(async ({ order }: { order: number }) => JSON.stringify(scene.refund(order)), {
          name: 'refund',
          description: 'Refunds',
          schema: REFUND,
        }),
      ],
      scene.fake.tacho,
    ),
  })
const LANGCHAIN_ASK = { messages: [{ role: 'user' as const, content: 'Refund all' }] }
const recordedIn = ({ fake }: Scene) => ({ callbacks: [langchain.recordCalls(fake.tacho)] })

/** Not the option `streaming` of the model, with which LangChain loads a table to estimate tokens from the network. */
async function langchainStream(scene: Scene) {
  const stream = await langchainAgent(scene).stream(LANGCHAIN_ASK, { ...recordedIn(scene), streamMode: 'messages' })
  for await (const _ of stream);
}

function agentsRun(scene: Scene, stream: boolean) {
  setTraceProcessors([agents.recordTraces(scene.fake.tacho)])
  const refund = agents.guardTool(
    agentsTool,
    scene.fake.tacho,
  )({
    name: 'refund',
    description: 'Refunds',
    parameters: REFUND,
    execute: async ({ order }) => scene.refund(order),
  })
  const provider = new OpenAIProvider({ apiKey: 'key', baseURL: `${scene.model.url}/v1`, useResponses: false })
  const runner = new Runner({ modelProvider: provider })
  const agent = new Agent({ name: 'Refunds', model: 'gpt-5', tools: [refund] })
  return stream
    ? runner.run(agent, 'Refund all', { stream: true }).then(({ completed }) => completed)
    : runner.run(agent, 'Refund all')
}

const mastraAgent = (scene: Scene) =>
  new MastraAgent({
    id: 'refunds',
    name: 'Refunds',
    instructions: 'Be brief',
    model: modelOf(scene) as MastraModelConfig,
    tools: {
      refund: mastra.guardTool(
        createTool,
        scene.fake.tacho,
      )({
        id: 'refund',
        description: 'Refunds',
        inputSchema: REFUND,
        execute: async ({ order }) => scene.refund(order),
      }),
    },
  })

function anthropicRun(scene: Scene, stream: boolean) {
  const client = anthropic.recordClient(
    new Anthropic({ apiKey: 'key', baseURL: scene.model.url, maxRetries: 0 }),
    scene.fake.tacho,
  )
  const tools = anthropic.guardTools(
    [
      {
        type: 'custom' as const,
        name: 'refund',
        description: 'Refunds',
        input_schema: { type: 'object' as const, properties: {} },
        parse: (input: unknown) => REFUND.parse(input),
        run: ({ order }: { order: number }) => JSON.stringify(scene.refund(order)),
      },
    ],
    scene.fake.tacho,
  )
  const body = { model: 'claude-opus-5-5', max_tokens: 100, messages: ASK.messages, tools }
  return client.beta.messages.toolRunner(stream ? { ...body, stream: false } : body).runUntilDone()
}

const ALL = [
  ['refund', 'unreadable'],
  ['teleport', 'unknown_tool'],
  ['refund', 'unfit'],
  ['refund', undefined],
] as const

/** The third was not read any more: its run had ended. */
const ENDED = [...ALL.slice(0, 2), ALL[3], ALL[3]]

const WAYS: Record<string, Way> = {
  'AI SDK': { run: (scene) => generateText(aiOptions(scene)) },
  'AI SDK, streamed': { run: (scene) => streamText({ ...aiOptions(scene), onError: () => undefined }).text },
  'OpenAI runTools': {
    run: (scene) =>
      openaiClient(scene)
        .chat.completions.runTools({ ...ASK, tools: openaiTools(scene) })
        .done(),
  },
  'OpenAI runTools, streamed': {
    run: (scene) =>
      openaiClient(scene)
        .chat.completions.runTools({ ...ASK, stream: true, tools: openaiTools(scene) })
        .done(),
  },
  LangChain: { run: (scene) => langchainAgent(scene).invoke(LANGCHAIN_ASK, recordedIn(scene)) },
  'LangChain, streamed': { run: langchainStream },
  Mastra: { run: (scene) => mastraAgent(scene).generate('Refund all') },
  'Mastra, streamed': { run: async (scene) => (await mastraAgent(scene).stream('Refund all')).text },
  // An unknown tool ends its run.
  'OpenAI Agents': { run: (scene) => agentsRun(scene, false), four: ENDED, refunded: [] },
  'OpenAI Agents, streamed': { run: (scene) => agentsRun(scene, true), four: ENDED, refunded: [] },
  // Its answers hold objects.
  Anthropic: { run: (scene) => anthropicRun(scene, false), four: ALL.slice(1) },
}

async function callsOf({ fake }: Scene) {
  const calls = (await fake.events()).filter(({ eventType }) => eventType === 'TOOL_CALL').map(({ payload }) => payload)
  return calls
}

for (const [name, { run, four = ALL, refunded = [4] }] of Object.entries(WAYS)) {
  test(`${name}: every call of an answer is recorded, and why it never ran`, async (t) => {
    const scene = await startScene(t, { ...FOUR, toolCalls: FOUR.toolCalls!.slice(name === 'Anthropic' ? 1 : 0) }, DONE)
    await scene.fake.tacho.run(async () => void (await run(scene))).catch(() => undefined)
    const calls = await callsOf(scene)
    const order = (reason: unknown) => ALL.findIndex(([, one]) => one === reason)
    assert.deepEqual(
      calls.map(({ toolName, reasonCode }) => [toolName, reasonCode]).toSorted((a, b) => order(a[1]) - order(b[1])),
      four,
    )
    assert.deepEqual(scene.refunded, refunded)
    const unread = calls.find(({ reasonCode }) => reasonCode === 'unreadable')
    if (four === ALL) assert.deepEqual([unread?.['outcome'], unread?.['arguments']], ['never_ran', UNREADABLE.text])
    for (const { outcome, toolCallId } of calls) assert.ok(outcome === 'returned' || typeof toolCallId === 'string')
  })

  for (const [what, cut] of [
    ['a cut call', CUT],
    ['a call that may be cut', SHORT],
  ] as const) {
    if (name === 'Anthropic' && cut === CUT) continue
    test(`${name}: ${what} does not run, and its arguments are kept as received`, async (t) => {
      const scene = await startScene(t, cut, DONE)
      await scene.fake.tacho.run(async () => void (await run(scene))).catch(() => undefined)
      assert.deepEqual(scene.refunded, [], 'it ran')
      const [call, ...more] = await callsOf(scene)
      assert.deepEqual([call?.['outcome'], call?.['reasonCode'], more], ['never_ran', 'cut', []])
      const raw = cut.toolCalls![0]!.text ?? JSON.stringify(cut.toolCalls![0]!.input)
      assert.equal(call?.['arguments'], raw)
      const [asked] = (await scene.fake.events()).filter(({ eventType }) => eventType === 'LLM_CALL')
      assert.partialDeepStrictEqual(asked?.payload['toolCalls'], [{ name: 'refund', problem: 'cut', arguments: raw }])
    })
  }
}
