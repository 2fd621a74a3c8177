/** How streams end, with each framework. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import { createOpenAI } from '@ai-sdk/openai'
import { ChatOpenAI } from '@langchain/openai'
import { Agent, OpenAIProvider, Runner, setTraceProcessors } from '@openai/agents'
import * as ai from '@tacho/sdk/ai'
import * as anthropic from '@tacho/sdk/anthropic'
import * as langchain from '@tacho/sdk/langchain'
import * as openai from '@tacho/sdk/openai'
import * as agents from '@tacho/sdk/openai-agents'
import { streamText } from 'ai'
import OpenAI from 'openai'
import { RESULTS, type Stage } from './matrix.ts'
import { MEANINGS, testStreams, type HostStream, type Streaming } from './streams.ts'

process.env['LANGSMITH_TRACING'] = 'false'

const MESSAGES = [{ role: 'user' as const, content: 'Act' }]
const OPENAI = { apiKey: 'key', maxRetries: 0 }

const teed = (stream: ReadableStream<unknown>) =>
  ({ items: stream, tee: () => stream.tee(), web: () => stream }) as unknown as HostStream

/** Streaming with the clients of OpenAI and Anthropic. */
const ofClient = (
  stream: AsyncIterable<unknown> & { tee(): [AsyncIterable<unknown>, AsyncIterable<unknown>] } & {
    toReadableStream(): ReadableStream<unknown>
  },
) => ({ items: stream, tee: () => stream.tee(), web: () => stream.toReadableStream() })

const openaiOf = ({ model, tacho }: Stage) =>
  openai.recordClient(new OpenAI({ ...OPENAI, baseURL: `${model.url}/v1` }), tacho)

const agentsOn =
  (useResponses: boolean): Streaming['open'] =>
  async ({ model, tacho }, signal) => {
    setTraceProcessors([agents.recordTraces(tacho)])
    const client = openai.recordClient(new OpenAI({ ...OPENAI, baseURL: `${model.url}/v1` }), tacho)
    const modelProvider = new OpenAIProvider({ openAIClient: client as never, useResponses })
    const agent = new Agent({ name: 'Agent', model: 'gpt-5' })
    const stream = await new Runner({ modelProvider }).run(agent, 'Act', { stream: true, signal })
    return teed(stream.toStream() as ReadableStream<unknown>)
  }

const STREAMING: readonly Streaming[] = [
  {
    name: 'OpenAI',
    async open(stage, signal) {
      const body = { model: 'gpt-5', messages: MESSAGES, stream: true as const }
      return ofClient(await openaiOf(stage).chat.completions.create(body, { signal }))
    },
  },
  {
    name: 'OpenAI responses',
    async open(stage, signal) {
      return ofClient(
        await openaiOf(stage).responses.create({ model: 'gpt-5', input: 'Act', stream: true }, { signal }),
      )
    },
  },
  {
    name: 'Anthropic',
    async open({ model, tacho }, signal) {
      const client = anthropic.recordClient(new Anthropic({ apiKey: 'key', baseURL: model.url, maxRetries: 0 }), tacho)
      const body = { model: 'claude', max_tokens: 9, messages: MESSAGES, stream: true as const }
      return ofClient(await client.messages.create(body, { signal }))
    },
  },
  {
    name: 'AI SDK',
    isSilent: true,
    open({ model, tacho }, signal) {
      const recorded = ai.recordModel(createOpenAI({ apiKey: 'key', baseURL: `${model.url}/v1` }).chat('gpt-5'), tacho)
      const { textStream } = streamText({
        model: recorded,
        prompt: 'Act',
        maxRetries: 0,
        abortSignal: signal,
        onError() {},
      })
      return teed(textStream as unknown as ReadableStream<unknown>)
    },
  },
  {
    name: 'LangChain',
    async open({ model, tacho }, signal) {
      const chat = new ChatOpenAI({ model: 'gpt-5', ...OPENAI, configuration: { baseURL: `${model.url}/v1` } })
      return teed(await chat.stream('Act', { signal, callbacks: [langchain.recordCalls(tacho)] }))
    },
  },
  { name: 'OpenAI Agents', open: agentsOn(true) },
  { name: 'OpenAI Agents, chat completions', open: agentsOn(false) },
]

for (const streaming of STREAMING) testStreams(streaming)

const PAGE = new URL('../../../../docs/integrations/streams.md', import.meta.url)

test('docs/integrations/streams.md says what these tests and those of Python prove', () => {
  const python = JSON.parse(readFileSync(new URL('streams.json', RESULTS), 'utf8')) as Record<string, string[]>
  const ways = Object.keys(MEANINGS)
  const table = (names: readonly string[], has: (name: string, way: string) => boolean) =>
    [
      ['', ...names],
      ['---', ...names.map(() => '---')],
      ...ways.map((way) => [way, ...names.map((name) => (has(name, way) ? 'recorded' : '–'))]),
    ]
      .map((cells) => `| ${cells.join(' | ')} |`)
      .join('\n')
  const page = `# How streams end

Every integration observes the stream of a model in the same way: it never reads faster than the host, never changes what the host
reads, and records one LLM_CALL however the stream ends. Each cell is a test with the real framework, inside a run and outside of one.

| | Recorded is |
| --- | --- |
${ways.map((way) => `| ${way} | ${MEANINGS[way]} |`).join('\n')}

## TypeScript

${table(
  STREAMING.map(({ name }) => name),
  () => true,
)}

Mastra uses the models of the AI SDK. OpenAI Agents do not show the text of a stream that breaks or is left: record their client too, with
\`setDefaultOpenAIClient(recordClient(new OpenAI(), tacho))\`, as these tests do. It stays one call.

A run ends after the model calls that began in it, also if its function returned before: \`tacho.run(() => streamText(…))\`, or a route that
pipes its answer. It does not wait for calls that wait for a person, or for a stream that nobody reads. A call that ends after the outcome of
its run says \`outlivedRun: true\`. A body that nobody begins to read within 10 seconds, as for HEAD, cancels its run.

## Python

OpenAI Agents: of an agent from \`guard_agent\`. Each stream is read by asyncio; "aborted" is a task that was cancelled.

A run ends with its block, and records the streams that are open then. A call that ends later says \`outlivedRun: true\`.

${table(Object.keys(python), (name, way) => python[name]?.includes(way) ?? false)}

The tests write this page: \`UPDATE_DOCS=1 npm test -- sdk-integrations/test/matrix\`.
`
  if (process.env['UPDATE_DOCS']) writeFileSync(PAGE, page)
  assert.ok(readFileSync(PAGE, 'utf8') === page, 'stale: run UPDATE_DOCS=1 npm test -- sdk-integrations/test/matrix')
})
