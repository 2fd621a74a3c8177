/** Mastra: every way of defining a tool, and the life of a call (matrix.ts). */
import assert from 'node:assert/strict'
import { createOpenAI } from '@ai-sdk/openai'
import { Agent } from '@mastra/core/agent'
import type { MastraModelConfig } from '@mastra/core/llm'
import { createTool } from '@mastra/core/tools'
import { MCPClient } from '@mastra/mcp'
import { guardTools, recordModel } from '@tacho/sdk/ai'
import { guardTool } from '@tacho/sdk/mastra'
import { z } from 'zod'
import { startMcpServer } from '../../src/mcp-server.ts'
import { AMOUNT, delegated, delegation, handedOff, lifeOf, type How } from './life.ts'
import { one, retried, testMatrix, TOOL, type Guarded, type Stage } from './matrix.ts'

type Options = Omit<Parameters<typeof createTool>[0], 'id' | 'description'>

function agentOf({ tacho, model }: Stage, options: Options) {
  const openai = createOpenAI({ apiKey: 'key', baseURL: `${model.url}/v1` })
  const tool = guardTool(createTool, tacho)({ id: TOOL, description: 'Acts', ...options } as never)
  return new Agent({
    id: 'agent',
    name: 'Agent',
    instructions: 'Be brief',
    model: openai('gpt-5') as MastraModelConfig,
    tools: { [TOOL]: tool },
  })
}

const typed = (inputSchema: z.ZodType, sent?: unknown, got?: unknown): Guarded =>
  one(
    (stage) =>
      agentOf(stage, { inputSchema, execute: async (input: unknown) => stage.act(input) } as Options).generate('Act'),
    sent,
    got,
  )

const ORDER = z.object({ order: z.number() })

const toolsOfServer = await listTools()

/** The tools of an MCP server, which Mastra creates itself. */
async function listTools() {
  const server = await startMcpServer(TOOL, () => assert.fail('not called'))
  const client = new MCPClient({ servers: { shop: { url: new URL(server.url) } } })
  const tools = await client.listTools()
  await client.disconnect()
  await server.close()
  return tools
}

const recordedOf = ({ model, tacho }: Stage) =>
  recordModel(createOpenAI({ apiKey: 'key', baseURL: `${model.url}/v1` }).chat('gpt-5'), tacho) as MastraModelConfig

const agentNamed = (stage: Stage, id: string, more: object) =>
  new Agent({ id, name: id, description: id, instructions: 'Be brief', model: recordedOf(stage), ...more })

async function delegate(stage: Stage, { stream }: How): Promise<unknown> {
  const billing = agentNamed(stage, 'billing', { tools: { [TOOL]: actTool(stage) } })
  const first = agentNamed(stage, 'first', { agents: { billing } })
  return stream ? (await first.stream('Act')).text : first.generate('Act')
}

async function play(stage: Stage, { stream, signal }: How): Promise<unknown> {
  const agent = new Agent({
    id: 'agent',
    name: 'Agent',
    instructions: 'Be brief',
    model: recordedOf(stage),
    tools: { [TOOL]: actTool(stage) },
  })
  const options = { abortSignal: signal }
  return stream ? (await agent.stream('Act', options)).text : agent.generate('Act', options)
}

const actTool = ({ tacho, act }: Stage) =>
  guardTool(
    createTool,
    tacho,
  )({ id: TOOL, description: 'Acts', inputSchema: AMOUNT, execute: async (input) => act(input) })

testMatrix({
  id: 'typescript-mastra',
  name: 'Mastra',
  page: 'mastra.md',
  tested: '@mastra/core 1.71.0, @mastra/mcp 2.0.0',
  ways: {
    'typed model': typed(ORDER),
    'nested model': typed(z.object({ lines: z.array(ORDER), to: z.object({ name: z.string() }) }), {
      lines: [{ order: 1 }, { order: 2 }],
      to: { name: 'Ada' },
    }),
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
    sync: one((stage) =>
      agentOf(stage, { inputSchema: ORDER, execute: (input: unknown) => stage.act(input) } as never).generate('Act'),
    ),
    async: typed(ORDER),
    streaming: one(async (stage) => {
      const agent = agentOf(stage, {
        inputSchema: ORDER,
        execute: async (input: unknown) => stage.act(input),
      } as Options)
      return (await agent.stream('Act')).text
    }),
    'parallel calls': {
      ...typed(ORDER),
      sent: [{ order: 1 }, { order: 2 }, { order: 3 }],
      got: [{ order: 1 }, { order: 2 }, { order: 3 }],
    },
    retry: retried((stage) =>
      agentOf(stage, { inputSchema: ORDER, execute: async (input: unknown) => stage.act(input) } as Options).generate(
        'Act',
      ),
    ),
    renamed: { cannot: 'policies see the `id` of `createTool`, also if the agent gives the tool another name.' },
    ...lifeOf({ play }),
    'handed off': handedOff(
      true,
      delegation('agent-billing'),
      delegate,
      delegated('billing', 'agent-billing', 'call_1_0'),
    ),
    'MCP server': {
      refuse: ({ tacho }, options) => guardTools(toolsOfServer, tacho, options),
    },
    'unknown shape': {
      refuse: ({ tacho }, options) => {
        const tool = createTool({ id: TOOL, description: 'Acts', inputSchema: ORDER, execute: async () => 'ran' })
        return guardTools({ [TOOL]: tool }, tacho, options)
      },
    },
  },
  outside: [
    'Tools that do not come from the guarded `createTool`: of a package, of Mastra itself (workspaces, memory, agents and workflows that an agent runs as tools), of an MCP server. Put the MCP guard in front of MCP servers.',
    'Tools of the provider, such as a web search: the provider runs them.',
    '`resumeData` of a tool that was suspended: it is not part of the input. With `autoResumeSuspendedTools` the model writes it, so leave that off for guarded tools.',
  ],
})
