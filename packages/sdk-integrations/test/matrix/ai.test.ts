/** The Vercel AI SDK: every way of defining a tool, and the life of a call (matrix.ts). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMCPClient } from '@ai-sdk/mcp'
import { createOpenAI } from '@ai-sdk/openai'
import { guardTools, recordModel } from '@tacho/sdk/ai'
import { fakeTacho } from '@tacho/sdk/testing'
import {
  dynamicTool,
  generateText,
  isStepCount,
  jsonSchema,
  streamText,
  tool,
  ToolLoopAgent,
  type ModelMessage,
  type Tool,
} from 'ai'
import { z } from 'zod'
import { startMcpServer } from '../../src/mcp-server.ts'
import { AMOUNT, delegated, delegation, handedOff, lifeOf, type How } from './life.ts'
import { one, retried, testMatrix, TOOL, type Guarded, type Stage } from './matrix.ts'

const modelOf = ({ model }: Stage) => createOpenAI({ apiKey: 'key', baseURL: `${model.url}/v1` })('gpt-5')

const optionsOf = (stage: Stage, given: Tool) => ({
  model: modelOf(stage),
  tools: guardTools({ [TOOL]: given }, stage.tacho),
  prompt: 'Act',
  maxRetries: 0,
  stopWhen: isStepCount(4),
})

const run = (define: (stage: Stage) => Tool) => (stage: Stage) => generateText(optionsOf(stage, define(stage)))

/** A tool with this input schema. */
const typed = (inputSchema: z.ZodType, sent?: unknown, got?: unknown): Guarded =>
  one(
    run(({ act }) => tool({ inputSchema, execute: async (input) => act(input) })),
    sent,
    got,
  )

const ORDER = z.object({ order: z.number() })

const recordedOf = ({ model, tacho }: Stage) =>
  recordModel(createOpenAI({ apiKey: 'key', baseURL: `${model.url}/v1` }).chat('gpt-5'), tacho)

const actTool = ({ act }: Stage) => tool({ inputSchema: AMOUNT, execute: async (input) => act(input) })

function play(stage: Stage, { stream, signal }: How, given = actTool(stage)): PromiseLike<unknown> {
  const options = { ...optionsOf(stage, given), model: recordedOf(stage), abortSignal: signal }
  return stream ? streamText({ ...options, onError: () => undefined }).text : generateText(options)
}

/** An agent as a tool of another. */
function delegate(stage: Stage, how: How): PromiseLike<unknown> {
  const billing = new ToolLoopAgent({
    model: recordedOf(stage),
    tools: guardTools({ [TOOL]: actTool(stage) }, stage.tacho),
    stopWhen: isStepCount(4),
  })
  const ask = tool({
    inputSchema: z.object({ prompt: z.string() }),
    execute: async ({ prompt }) =>
      (await (how.stream ? billing.stream({ prompt }) : billing.generate({ prompt }))).text,
  })
  const tools = guardTools({ billing: ask }, stage.tacho)
  const options = { model: recordedOf(stage), tools, prompt: 'Act', stopWhen: isStepCount(4) }
  return how.stream ? streamText(options).text : generateText(options)
}

testMatrix({
  id: 'typescript-ai',
  name: 'Vercel AI SDK',
  page: 'vercel-ai-sdk.md',
  tested: 'ai 7.0.173, @ai-sdk/mcp 2.0.99',
  ways: {
    'typed model': typed(ORDER),
    'nested model': typed(z.object({ lines: z.array(ORDER), to: z.object({ name: z.string() }) }), {
      lines: [{ order: 1 }, { order: 2 }],
      to: { name: 'Ada' },
    }),
    'raw JSON schema': one(
      run(({ act }) =>
        dynamicTool({ inputSchema: jsonSchema({ type: 'object' }), execute: async (input) => act(input) }),
      ),
      { order: 7, more: [1] },
    ),
    'string input': typed(z.string(), '{"order":7}', { input: '{"order":7}' }),
    union: typed(z.object({ given: z.union([z.object({ name: z.string() }), z.array(z.number())]) }), {
      given: [1, 2],
    }),
    default: typed(
      z.object({ order: z.number(), amount: z.number().default(500) }),
      { order: 7 },
      { order: 7, amount: 500 },
    ),
    coercion: typed(z.object({ order: z.coerce.number() }), { order: '500' }, { order: 500 }),
    trim: typed(z.object({ to: z.string().trim() }), { to: ' ada ' }, { to: 'ada' }),
    alias: typed(
      z.object({ order_id: z.number() }).transform(({ order_id: order }) => ({ order })),
      { order_id: 7 },
      { order: 7 },
    ),
    'extra keys': typed(z.looseObject({ order: z.number() }), { order: 7, force: true }),
    dates: typed(
      z.object({ on: z.string().transform((text) => new Date(text)) }),
      { on: '2026-01-02' },
      { on: '2026-01-02T00:00:00.000Z' },
    ),
    sync: one(run(({ act }) => tool({ inputSchema: ORDER, execute: (input) => act(input) }))),
    async: typed(ORDER),
    method: one(
      run((stage) => {
        const given = {
          inputSchema: ORDER,
          act: stage.act,
          execute(input: unknown) {
            return this.act(input)
          },
        }
        return given as unknown as Tool
      }),
    ),
    streaming: one(
      (stage) =>
        streamText(optionsOf(stage, tool({ inputSchema: ORDER, execute: async (input) => stage.act(input) }))).text,
    ),
    'parallel calls': {
      ...typed(ORDER),
      sent: [{ order: 1 }, { order: 2 }, { order: 3 }],
      got: [{ order: 1 }, { order: 2 }, { order: 3 }],
    },
    'sub-agent': one((stage) => {
      const agent = new ToolLoopAgent(
        optionsOf(stage, tool({ inputSchema: ORDER, execute: async (input) => stage.act(input) })),
      )
      return agent.generate({ prompt: 'Act' })
    }),
    'hosted tool': {
      refuse: ({ tacho, model }, options) => {
        const openai = createOpenAI({ apiKey: 'key', baseURL: `${model.url}/v1` })
        return guardTools({ search: openai.tools.webSearch({}) }, tacho, options)
      },
    },
    generator: one(async (stage) => {
      const execute = async function* (input: unknown) {
        yield 'acting'
        yield stage.act(input)
      }
      const { toolResults } = await generateText({
        ...optionsOf(stage, tool({ inputSchema: ORDER, execute })),
        stopWhen: isStepCount(1),
      })
      assert.ok(toolResults.every(({ output }) => output === 'acted'))
    }),
    'changed argument': one(
      run(({ act }) =>
        tool({
          inputSchema: z.looseObject({ order: z.number() }),
          execute: async (input) => {
            const answer = act(input)
            Object.assign(input, { order: 2 })
            return answer
          },
        }),
      ),
    ),
    retry: retried(run(({ act }) => tool({ inputSchema: ORDER, execute: async (input) => act(input) }))),
    'MCP server': one(async (stage) => {
      const server = await startMcpServer(TOOL, stage.act)
      const client = await createMCPClient({ transport: { type: 'http', url: server.url } })
      try {
        const { [TOOL]: given } = await client.tools()
        await generateText(optionsOf(stage, given as Tool))
      } finally {
        await client.close()
        await server.close()
      }
    }),
    'human in the loop': one(async (stage) => {
      const options = optionsOf(stage, tool({ inputSchema: ORDER, execute: async (input) => stage.act(input) }))
      const approving = { ...options, toolApproval: { [TOOL]: 'user-approval' as const } }
      const prompt: ModelMessage[] = [{ role: 'user', content: 'Act' }]
      const { content, response } = await generateText({ ...approving, prompt })
      const requests = content.filter((part) => part.type === 'tool-approval-request')
      const answers = requests.map(({ approvalId }) => ({
        type: 'tool-approval-response' as const,
        approvalId,
        approved: true,
      }))
      await generateText({
        ...approving,
        prompt: [...prompt, ...response.messages, { role: 'tool', content: answers }],
      })
    }),
    renamed: {
      cannot: 'policies see the key under which the tool was guarded. Guard the same object that the agent gets.',
    },
    ...lifeOf({ play }),
    'handed off': handedOff(true, delegation('billing'), delegate, delegated('billing', 'billing', 'call_1_0')),
    'unknown shape': {
      refuse: ({ tacho }, options) => guardTools({ [TOOL]: { run: () => 'ran' } }, tacho, options),
    },
  },
  outside: [
    'Tools of the provider, such as a web search: the provider runs them.',
    'Your code in `onToolCall` (a chat in the browser, realtime): wrap it with `tacho.guard`.',
  ],
})

test('a tool that the provider runs is refused, also if it has a function', async () => {
  const fake = fakeTacho({ agentName: 'Matrix' })
  const search = { type: 'provider', id: 'own.search', args: {}, isProviderExecuted: true, execute: () => 'ran' }
  assert.throws(() => guardTools({ search }, fake.tacho), TypeError)
  await fake.close()
})
