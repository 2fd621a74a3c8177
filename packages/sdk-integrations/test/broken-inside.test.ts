/**
 * If anything breaks inside the SDK, the host's function still runs once, with its own arguments, and its own result or error
 * is returned. Each function of the SDK throws once, in each way in which an integration calls the host.
 */
import assert from 'node:assert/strict'
import { inspect } from 'node:util'
import { before, test } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import type * as Ai from '@tacho/sdk/ai'
import type * as AnthropicEntry from '@tacho/sdk/anthropic'
import type * as Claude from '@tacho/sdk/claude-agent-sdk'
import type * as LangChain from '@tacho/sdk/langchain'
import type * as Mastra from '@tacho/sdk/mastra'
import type * as OpenAiEntry from '@tacho/sdk/openai'
import type * as Agents from '@tacho/sdk/openai-agents'
import type { fakeTacho as FakeTacho } from '@tacho/sdk/testing'
import { breakableSdk, type Breakable, type Place } from './breakable.ts'

interface Modules {
  fakeTacho: typeof FakeTacho
  ai: typeof Ai
  openai: typeof OpenAiEntry
  anthropic: typeof AnthropicEntry
  langchain: typeof LangChain
  agents: typeof Agents
  mastra: typeof Mastra
  claude: typeof Claude
}

const EXPORTED = `
export { fakeTacho } from './testing/fake-tacho.ts'
export * as ai from './integrations/ai.ts'
export * as openai from './integrations/openai.ts'
export * as anthropic from './integrations/anthropic.ts'
export * as langchain from './integrations/langchain.ts'
export * as agents from './integrations/openai-agents.ts'
export * as mastra from './integrations/mastra.ts'
export * as claude from './integrations/claude-agent-sdk.ts'
`
/** Functions that catch errors of the SDK, or that replace a function of the host. No code catches errors in these. */
const BORDER =
  /^(?:attempt|readSafely|hostCall|awaitedHostCall|safely|once|guarded|outcomeOf|get|pull|next|return|parseResponse|recorded|iterator|execute|guardedExecute|call)$/
/** The fake service is not part of the SDK. */
const OTHERS = /testing\/fake-/

type Kind = 'model' | 'tool'

let sdk: Breakable<Modules>
before(async () => {
  sdk = await breakableSdk<Modules>(EXPORTED)
  assert.ok(sdk.places.length > 500, `${sdk.places.length} functions`)
})

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const read: T[] = []
  for await (const item of items) read.push(item)
  return read
}

const failure = new TypeError('of the host')

function aiModel(log: unknown[]) {
  return {
    modelId: 'm',
    async doGenerate(...given: unknown[]): Promise<unknown> {
      log.push(given)
      if ((given[0] as { isFailing?: boolean }).isFailing) throw failure
      return { content: [{ type: 'text', text: 'Hello' }], finishReason: 'stop', usage: { inputTokens: 1 } }
    },
    async doStream(...given: unknown[]): Promise<unknown> {
      log.push(given)
      const parts = [{ type: 'text-delta', delta: 'Hel' }, { type: 'text-delta', delta: 'lo' }, { type: 'finish' }]
      return { stream: ReadableStream.from(parts) }
    },
  }
}

/** Options of a client whose service returns `answer`. `log` gets the requests. */
function clientOptions(log: unknown[], answer: unknown, status = 200) {
  const body = typeof answer === 'string' ? answer : JSON.stringify(answer)
  const type = typeof answer === 'string' ? 'text/event-stream' : 'application/json'
  return {
    apiKey: 'key',
    maxRetries: 0,
    async fetch(url: unknown, init?: { body?: unknown }) {
      log.push([String(url), init?.body])
      return new Response(body, { status, headers: { 'content-type': type } })
    },
  }
}

const CHAT = {
  id: 'c',
  model: 'gpt',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
}
const CHUNKS = ['Hel', 'lo'].map((content) => ({ id: 'c', model: 'gpt', choices: [{ index: 0, delta: { content } }] }))
const SSE = `${CHUNKS.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')}data: [DONE]\n\n`
const MESSAGES = [{ role: 'user' as const, content: 'Hi' }]
const MESSAGE = {
  id: 'a',
  type: 'message',
  role: 'assistant',
  model: 'c',
  content: [{ type: 'text', text: 'Hello' }],
  usage: {},
}

/** `wrap` runs before anything breaks. `log` gets each call of the host's own function. */
const SCENARIOS: Record<
  string,
  { kind: Kind; wrap(tacho: ReturnType<typeof FakeTacho>['tacho'], log: unknown[]): () => Promise<unknown> }
> = {
  'AI SDK, an answer': {
    kind: 'model',
    wrap(tacho, log) {
      const model = sdk.modules.ai.recordModel(aiModel(log), tacho)
      return () => model.doGenerate({ prompt: [] }, 'more')
    },
  },
  'AI SDK, a failure': {
    kind: 'model',
    wrap(tacho, log) {
      const model = sdk.modules.ai.recordModel(aiModel(log), tacho)
      return () => model.doGenerate({ isFailing: true })
    },
  },
  'AI SDK, a stream': {
    kind: 'model',
    wrap(tacho, log) {
      const model = sdk.modules.ai.recordModel(aiModel(log), tacho)
      return async () => {
        const { stream } = (await model.doStream({ prompt: [] })) as { stream: ReadableStream }
        return all(stream)
      }
    },
  },
  'OpenAI, an answer': {
    kind: 'model',
    wrap(tacho, log) {
      const client = sdk.modules.openai.recordClient(new OpenAI(clientOptions(log, CHAT)), tacho)
      return async () => (await client.chat.completions.create({ model: 'gpt', messages: MESSAGES })).choices
    },
  },
  'OpenAI, a failure': {
    kind: 'model',
    wrap(tacho, log) {
      const client = sdk.modules.openai.recordClient(
        new OpenAI(clientOptions(log, { error: { message: 'no' } }, 400)),
        tacho,
      )
      return async () => client.chat.completions.create({ model: 'gpt', messages: MESSAGES })
    },
  },
  'OpenAI, a stream': {
    kind: 'model',
    wrap(tacho, log) {
      const client = sdk.modules.openai.recordClient(new OpenAI(clientOptions(log, SSE)), tacho)
      return async () => all(await client.chat.completions.create({ model: 'gpt', messages: MESSAGES, stream: true }))
    },
  },
  'Anthropic, an answer': {
    kind: 'model',
    wrap(tacho, log) {
      const client = sdk.modules.anthropic.recordClient(new Anthropic(clientOptions(log, MESSAGE)), tacho)
      return async () => (await client.messages.create({ model: 'c', max_tokens: 9, messages: MESSAGES })).content
    },
  },
  'LangChain, a handler': {
    kind: 'model',
    wrap(tacho) {
      const handler = sdk.modules.langchain.recordCalls(tacho)
      return async () => {
        handler.handleChainStart({}, {}, 'chain')
        handler.handleChatModelStart({}, [[]], 'call', 'chain')
        handler.handleLLMEnd({ generations: [] }, 'call')
        handler.handleToolStart({ name: 't' }, 'in', 'tool', 'chain')
        handler.handleToolEnd('out', 'tool')
        handler.handleChainError(failure, 'chain')
      }
    },
  },
  'OpenAI Agents, a trace': {
    kind: 'model',
    wrap(tacho) {
      const processor = sdk.modules.agents.recordTraces(tacho)
      return async () => {
        const span = { spanId: 's', traceId: 't', spanData: { type: 'generation', model: 'm' } }
        await processor.onTraceStart({ traceId: 't' })
        await processor.onSpanStart(span)
        await processor.onSpanEnd(span)
        await processor.onTraceEnd({ traceId: 't' })
      }
    },
  },
  'Claude Agent SDK, a query': {
    // A tool, because the hooks of the query guard its tools.
    kind: 'tool',
    wrap(tacho, log) {
      const query = (given: { prompt: string }) => {
        log.push(given.prompt)
        return (async function* () {
          yield { type: 'assistant', message: { id: 'a', content: [{ type: 'text', text: 'Hello' }] } }
          yield { type: 'result', subtype: 'success' }
        })()
      }
      const guarded = sdk.modules.claude.guardQuery(query, tacho)
      return async () => all(guarded({ prompt: 'Hi' }))
    },
  },
  'AI SDK, a tool': {
    kind: 'tool',
    wrap(tacho, log) {
      const execute = async ({ id }: { id: number }) => {
        log.push(id)
        return { id }
      }
      const { tool } = sdk.modules.ai.guardTools({ tool: { execute } }, tacho)
      return () => (tool.execute as (...given: unknown[]) => Promise<unknown>)({ id: 1 }, { toolCallId: 'c' })
    },
  },
  'Mastra, a tool': {
    kind: 'tool',
    wrap(tacho, log) {
      const createTool = (options: { id: string; execute(input: { id: number }): Promise<unknown> }) => options
      const execute = async ({ id }: { id: number }) => {
        log.push(id)
        throw failure
      }
      const tool = sdk.modules.mastra.guardTool(createTool, tacho)({ id: 'tool', execute })
      return () => tool.execute({ id: 1 })
    },
  },
}

/** The result that a caller gets, or the error. */
async function outcomeOf(act: () => Promise<unknown>): Promise<string> {
  return (async () => act())().then(
    (result) => inspect(result, { depth: 9 }),
    (error: unknown) => `throws ${error === failure ? 'its own error' : String((error as Error).message)}`,
  )
}

for (const [name, { kind, wrap }] of Object.entries(SCENARIOS)) {
  test(name, async (t) => {
    t.mock.method(console, 'warn', () => undefined)
    const play = async (place: Place | undefined) => {
      const fake = sdk.modules.fakeTacho({ guard: { whenUnconfigured: 'allow' }, onDiagnostic: () => undefined })
      const { tacho } = fake
      await tacho.configuration.ready()
      const log: unknown[] = []
      const act = wrap(tacho, log)
      if (kind === 'tool') await outcomeOf(() => tacho.guardedCall({ name: 'first', input: {}, call: () => 1 }))
      sdk.breakAt(place)
      const outcome = await outcomeOf(act)
      const ran = sdk.breakAt(undefined)
      await fake.close()
      return { outcome, calls: inspect(log, { depth: 9 }), count: log.length, ran }
    }
    const whole = await play(undefined)
    const wrong: string[] = []
    const inner = whole.ran.filter((place) => !BORDER.test(place.name) && !OTHERS.test(place.file))
    for (const place of inner) {
      const { outcome, calls, count } = await play(place)
      const isSame = outcome === whole.outcome && calls === whole.calls
      // A guard that cannot decide refuses, and the tool does not run.
      const isRefused = kind === 'tool' && count === 0 && outcome.startsWith('throws ')
      if (!isSame && !isRefused) wrong.push(`${place.file} ${place.name}: ${outcome} after ${count} calls`)
    }
    assert.deepEqual(wrong, [])
    assert.ok(inner.length > 10, `${inner.length} functions ran`)
    t.diagnostic(`${inner.length} functions broke`)
  })
}
