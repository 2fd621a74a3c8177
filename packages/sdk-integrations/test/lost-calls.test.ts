/** Calls that never reached their tool. Each framework reports them in its own words, or not at all. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import { fakeTacho } from '@tacho/sdk/testing'
import * as ai from '@tacho/sdk/ai'
import * as anthropic from '@tacho/sdk/anthropic'
import * as langchain from '@tacho/sdk/langchain'
import * as openai from '@tacho/sdk/openai'
import { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { AIMessage } from '@langchain/core/messages'
import { generateText, isStepCount, streamText, tool, type LanguageModel } from 'ai'
import { MockLanguageModelV3 } from 'ai/test'
import { createAgent, tool as langchainTool } from 'langchain'
import OpenAI from 'openai'
import { z } from 'zod'

process.env['LANGSMITH_TRACING'] = 'false'

/** The validation errors of this schema contain words that a person uses to decline a call. */
const ORDER = z.object({
  order: z.number(),
  status: z.enum(['approved', 'rejected', 'denied', 'not found']).optional(),
})
const UNFIT = { order: 7, status: 'declined' }
const FIT = { order: 7 }

interface Call {
  readonly id: string
  readonly input: unknown
}

interface Answer {
  readonly calls: readonly Call[]
  readonly reason: string
}

/** Runs an agent with the tool `refund`. Its model answers with the calls, then with a text. @param steps maximum of steps */
type Play = (stage: Stage, answer: Answer, steps: number) => Promise<unknown>

interface Stage {
  readonly tacho: ReturnType<typeof fakeTacho>['tacho']
  readonly ran: unknown[]
}

async function openStage(t: TestContext) {
  const fake = fakeTacho({ capture: 'full' })
  t.after(fake.close)
  await fake.tacho.configuration.ready()
  const ran: unknown[] = []
  const lost = async () =>
    (await fake.events())
      .filter(({ eventType }) => eventType === 'TOOL_CALL')
      .map(({ payload }) => [payload['outcome'], payload['reasonCode'], payload['arguments']])
  return { fake, tacho: fake.tacho, ran, lost }
}

/** A `fetch` that returns these bodies in turn. */
const bodies = (...given: object[]) => {
  let next = 0
  return async () => Response.json(given[Math.min(next++, given.length - 1)])
}

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}

const partOf = ({ id, input }: Call) => ({
  type: 'tool-call' as const,
  toolCallId: id,
  toolName: 'refund',
  input: JSON.stringify(input),
})

const aiTools = ({ tacho, ran }: Stage) =>
  ai.guardTools({ refund: tool({ inputSchema: ORDER, execute: async (input) => (ran.push(input), 'ok') }) }, tacho)

const aiSdk: Play = async (stage, { calls, reason }, steps) => {
  let next = 0
  const model = new MockLanguageModelV3({
    doGenerate: async () => {
      const isFirst = next++ === 0
      const content = isFirst ? calls.map(partOf) : [{ type: 'text' as const, text: 'Done.' }]
      const unified = isFirst ? reason.replace('tool_use', 'tool-calls') : 'stop'
      return { content, finishReason: { unified: unified as 'stop', raw: unified }, usage: USAGE, warnings: [] }
    },
  })
  const recorded = ai.recordModel(model, stage.tacho)
  await generateText({ model: recorded, tools: aiTools(stage), prompt: 'Refund', stopWhen: isStepCount(steps) })
}

const ofAnthropic: Play = async ({ tacho, ran }, { calls, reason }, steps) => {
  const base = { id: 'm', type: 'message', role: 'assistant', model: 'claude', stop_sequence: null }
  const usage = { input_tokens: 1, output_tokens: 1 }
  const content = calls.map(({ id, input }) => ({ type: 'tool_use', id, name: 'refund', input }))
  const done = { ...base, usage, content: [{ type: 'text', text: 'Done.' }], stop_reason: 'end_turn' }
  const fetch = bodies({ ...base, usage, content, stop_reason: reason }, done)
  const client = anthropic.recordClient(new Anthropic({ apiKey: 'key', fetch }), tacho)
  const refund = {
    type: 'custom' as const,
    name: 'refund',
    input_schema: { type: 'object' as const },
    parse: (input: unknown) => ORDER.parse(input),
    run: (input: unknown) => (ran.push(input), 'ok'),
  }
  const messages = [{ role: 'user' as const, content: 'Refund' }]
  const tools = anthropic.guardTools([refund], tacho)
  const body = { model: 'claude', max_tokens: 9, messages, tools, max_iterations: steps }
  await client.beta.messages.toolRunner(body as never).runUntilDone()
}

class Answering extends BaseChatModel {
  readonly #answers: AIMessage[]

  constructor(answers: AIMessage[]) {
    super({})
    this.#answers = answers
  }

  _llmType() {
    return 'answering'
  }

  override bindTools(tools: unknown[]) {
    return this.withConfig({ tools } as never) as never
  }

  async _generate() {
    const message = this.#answers.shift() ?? new AIMessage('Done.')
    return { generations: [{ text: '', message }] }
  }
}

const ofLangchain: Play = async ({ tacho, ran }, { calls, reason }) => {
  const tool_calls = calls.map(({ id, input: args }) => ({
    id,
    name: 'refund',
    args: args as object,
    type: 'tool_call',
  }))
  const responses = [
    new AIMessage({ content: '', tool_calls: tool_calls as never, response_metadata: { stop_reason: reason } }),
    new AIMessage('Done.'),
  ]
  const model = new Answering(responses)
  const refund = langchainTool(async (input) => (ran.push(input), 'ok'), { name: 'refund', schema: ORDER })
  const agent = createAgent({ model, tools: langchain.guardTools([refund], tacho) })
  const callbacks = [langchain.recordCalls(tacho)]
  await agent.invoke({ messages: [{ role: 'user', content: 'Refund' }] }, { callbacks } as never)
}

const ofOpenai: Play = async ({ tacho, ran }, { calls, reason }, steps) => {
  const tool_calls = calls.map(({ id, input }) => ({
    id,
    type: 'function',
    function: { name: 'refund', arguments: JSON.stringify(input) },
  }))
  const answer = (message: object, finish_reason: string) => ({
    id: 'c',
    model: 'gpt-5',
    choices: [{ index: 0, finish_reason, message: { role: 'assistant', content: null, ...message } }],
  })
  const fetch = bodies(answer({ tool_calls }, reason), answer({ content: 'Done.' }, 'stop'))
  const client = openai.recordClient(new OpenAI({ apiKey: 'key', fetch }), tacho)
  const parse = (text: string) => ORDER.parse(JSON.parse(text))
  const run = (input: unknown) => (ran.push(input), 'ok')
  const refund = { type: 'function', function: { name: 'refund', parameters: {}, parse, function: run } }
  const tools = openai.guardTools([refund], tacho)
  const body = { model: 'gpt-5', messages: [{ role: 'user' as const, content: 'Refund' }], tools }
  const runner = client.chat.completions.runTools(body as never, { maxChatCompletions: steps })
  await runner.done()
}

const WAYS: Readonly<Record<string, Play>> = {
  'AI SDK': aiSdk,
  Anthropic: ofAnthropic,
  LangChain: ofLangchain,
  OpenAI: ofOpenai,
}

for (const [name, play] of Object.entries(WAYS)) {
  test(`${name}: arguments that do not fit are no refusal, whatever words the error quotes`, async (t) => {
    const { fake, tacho, ran, lost } = await openStage(t)
    await tacho.run(
      async () => void (await play({ tacho, ran }, { calls: [{ id: 'a', input: UNFIT }], reason: 'tool_use' }, 3)),
    )
    assert.deepEqual([ran, await lost()], [[], [['never_ran', 'unfit', JSON.stringify(UNFIT)]]])
    const issues = (await fake.issues()).map(({ detectionType, payload }) => [detectionType, payload['reasonCode']])
    assert.deepEqual(issues, [['TOOL_FAILED', 'unfit']])
  })

  test(`${name}: an answer that a filter or a refusal ended has no whole calls`, async (t) => {
    // After a paused turn, Anthropic's own helper continues without the calls of that turn.
    const own = name === 'Anthropic' ? ['pause_turn'] : []
    for (const reason of [...own, 'refusal', 'guardrail_intervened', 'model_length', 'a_reason_of_tomorrow']) {
      const { tacho, ran, lost } = await openStage(t)
      const answer = { calls: [{ id: 'a', input: FIT }], reason }
      await tacho.run(async () => void (await play({ tacho, ran }, answer, 3))).catch(() => undefined)
      assert.deepEqual([ran, await lost()], [[], [['never_ran', 'cut', JSON.stringify(FIT)]]], reason)
    }
  })

  // With LangChain, no step is the last: the model is called until the graph throws.
  if (name === 'LangChain') continue
  test(`${name}: a call that does not fit is recorded if no step follows`, async (t) => {
    const { fake, tacho, ran, lost } = await openStage(t)
    const calls = [
      { id: 'a', input: UNFIT },
      { id: 'b', input: FIT },
    ]
    await tacho
      .run(async () => void (await play({ tacho, ran }, { calls, reason: 'tool_use' }, 1)))
      .catch(() => undefined)
    const never = (await lost()).filter(([outcome]) => outcome === 'never_ran')
    assert.deepEqual([ran, never], [[FIT], [['never_ran', 'unfit', JSON.stringify(UNFIT)]]])
    assert.equal((await fake.issues()).length, 1)
  })
}

/** A model of the AI SDK whose stream has these parts. At `null`, the stream fails. */
function streaming(parts: readonly unknown[], before: Promise<unknown> = Promise.resolve()): MockLanguageModelV3 {
  let next = 0
  const stream = () =>
    new ReadableStream({
      async start(controller) {
        if (next++ > 0) return controller.close()
        for (const part of parts) {
          // Wait until the parts so far have been read.
          await new Promise((resolve) => void setTimeout(resolve, 5))
          if (part === null) return controller.error(new Error('socket hang up'))
          if (part === parts.at(-1)) await before
          controller.enqueue(part)
        }
        controller.close()
      },
    })
  return new MockLanguageModelV3({ doStream: async () => ({ stream: stream() as never }) })
}

const finish = (unified: string, raw: string | null = unified) => ({
  type: 'finish',
  finishReason: { unified, raw: raw ?? undefined },
  usage: USAGE,
})

async function readAll(stage: Stage, model: LanguageModel): Promise<void> {
  const tools = aiTools(stage)
  const text = streamText({ model, tools, prompt: 'Refund', onError() {}, stopWhen: isStepCount(2) })
  await text.consumeStream()
}

test('AI SDK: a stream that fails or ends without a reason leaves its whole call as one that never ran', async (t) => {
  const call = partOf({ id: 'a', input: FIT })
  for (const parts of [[call, null], [call], [call, finish('other', null)]]) {
    const { tacho, ran, lost } = await openStage(t)
    await tacho.run(() => readAll({ tacho, ran }, ai.recordModel(streaming(parts), tacho))).catch(() => undefined)
    assert.deepEqual([ran, await lost()], [[], [['never_ran', 'cut', JSON.stringify(FIT)]]])
  }
})

test('AI SDK: calls of two runs with one id are two calls: neither waits for the other, or has its end', async (t) => {
  const { fake, tacho, ran } = await openStage(t)
  const stage = { tacho, ran }
  const isOver = Promise.withResolvers<void>()
  const part = (order: number) => partOf({ id: 'functions.refund:0', input: { order } })
  const cut = streaming([part(7), finish('length')], isOver.promise)
  const slow = tacho.run(() => readAll(stage, ai.recordModel(cut, tacho)))
  await new Promise((resolve) => void setTimeout(resolve, 50))
  await tacho.run(() => readAll(stage, ai.recordModel(streaming([part(8), finish('tool-calls')]), tacho)))
  assert.deepEqual(ran, [{ order: 8 }])
  isOver.resolve()
  await slow.catch(() => undefined)
  assert.deepEqual(ran, [{ order: 8 }])
  await fake.assertEvent('TOOL_CALL', { outcome: 'never_ran', reasonCode: 'cut' })
})

test("AI SDK: the agent of a call is its own run's, also if another run has a call with its id", async (t) => {
  const { fake, tacho, ran } = await openStage(t)
  const stage = { tacho, ran }
  const [asked, isOver] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const ask = async () => {
    await aiSdk(stage, { calls: [{ id: 'same', input: UNFIT }], reason: 'tool_use' }, 1)
    asked.resolve()
    await isOver.promise
    return 'ok'
  }
  const tools = ai.guardTools({ ask: tool({ inputSchema: z.object({}), execute: ask }) }, tacho)
  const call = { ...partOf({ id: 'k', input: {} }), toolName: 'ask' }
  const outer = ai.recordModel(streaming([call, finish('tool-calls')]), tacho)
  const first = tacho.run(() => streamText({ model: outer, tools, prompt: 'Ask', onError() {} }).consumeStream())
  await asked.promise
  await tacho.run(() =>
    tacho.guardedCall({
      name: 'none',
      input: {},
      call: () => aiTools(stage).refund.execute?.(FIT, { toolCallId: 'same', messages: [] } as never),
    }),
  )
  isOver.resolve()
  await first
  const { payload } = await fake.assertEvent('TOOL_CALL', { toolName: 'refund', outcome: 'returned' })
  assert.equal(payload['agent'], undefined)
})
