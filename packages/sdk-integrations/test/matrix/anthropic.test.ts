/** `toolRunner` of the Anthropic client: every way of defining a tool, and the life of a call (matrix.ts). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema'
import { mcpTools } from '@anthropic-ai/sdk/helpers/beta/mcp'
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod'
import { guardTools, recordClient } from '@tacho/sdk/anthropic'
import { fakeTacho } from '@tacho/sdk/testing'
import { z } from 'zod'
import { AMOUNT, delegated, delegation, handedOff, lifeOf, type How } from './life.ts'
import { one, retried, testMatrix, TOOL, type Guarded, type Stage } from './matrix.ts'

type Tools = Parameters<Anthropic['beta']['messages']['toolRunner']>[0]['tools']

const clientOf = ({ model }: Stage) => new Anthropic({ apiKey: 'key', baseURL: model.url, maxRetries: 0 })

const requestOf = (stage: Stage, tools: readonly object[]) => ({
  model: 'claude-opus-5-5',
  max_tokens: 100,
  messages: [{ role: 'user' as const, content: 'Act' }],
  tools: guardTools(tools, stage.tacho) as unknown as Tools,
})

const run = (stage: Stage, tools: readonly object[]) =>
  clientOf(stage).beta.messages.toolRunner(requestOf(stage, tools)).runUntilDone()

const typed = (inputSchema: z.ZodType, sent?: unknown, got?: unknown): Guarded =>
  one(
    (stage) =>
      run(stage, [
        betaZodTool({ name: TOOL, description: 'Acts', inputSchema, run: async (input: unknown) => stage.act(input) }),
      ]),
    sent,
    got,
  )

const ORDER = z.object({ order: z.number() })
const SCHEMA = { type: 'object', properties: {} } as const

const NAMELESS = { description: 'Acts', inputSchema: SCHEMA }

const plain = (stage: Stage) => betaTool({ ...NAMELESS, name: TOOL, run: async (input: unknown) => stage.act(input) })

/** A tool whose code runs another agent with tools. */
async function delegate(stage: Stage, how: How): Promise<unknown> {
  const ask = async () => {
    await play(stage, how)
    return 'Done.'
  }
  return playWith(stage, how, { ...plain(stage), name: 'billing', run: ask })
}

function play(stage: Stage, how: How): Promise<unknown> {
  const run = async (input: unknown) => stage.act(input)
  return playWith(stage, how, betaZodTool({ name: TOOL, description: 'Acts', inputSchema: AMOUNT, run }))
}

async function playWith(stage: Stage, { stream, signal }: How, tool: object): Promise<unknown> {
  const body = requestOf(stage, [tool])
  const { messages } = recordClient(clientOf(stage), stage.tacho).beta
  if (!stream) return messages.toolRunner(body, { signal }).runUntilDone()
  for await (const answer of messages.toolRunner({ ...body, stream }, { signal })) await answer.finalMessage()
  return undefined
}

testMatrix({
  id: 'typescript-anthropic',
  name: 'Anthropic `toolRunner`',
  page: 'anthropic.md',
  tested: '@anthropic-ai/sdk 1.12.0',
  ways: {
    'typed model': typed(ORDER),
    'nested model': typed(z.object({ lines: z.array(ORDER), to: z.object({ name: z.string() }) }), {
      lines: [{ order: 1 }, { order: 2 }],
      to: { name: 'Ada' },
    }),
    'raw JSON schema': one((stage) => run(stage, [plain(stage)]), { order: 7, more: [1] }),
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
    alias: one(
      (stage) => {
        const parse = (input: unknown) => ({ order: (input as { order_id: number }).order_id })
        return run(stage, [{ ...plain(stage), parse }])
      },
      { order_id: 7 },
      { order: 7 },
    ),
    'extra keys': typed(ORDER, { order: 7, force: true }, { order: 7 }),
    dates: one(
      (stage) => {
        const parse = (input: unknown) => ({ on: new Date((input as { on: string }).on) })
        return run(stage, [{ ...plain(stage), parse }])
      },
      { on: '2026-01-02' },
      { on: '2026-01-02T00:00:00.000Z' },
    ),
    sync: one((stage) => run(stage, [{ ...plain(stage), run: (input: unknown) => stage.act(input) }])),
    async: one((stage) => run(stage, [plain(stage)])),
    method: one((stage) => {
      const { act } = stage
      const given = {
        ...plain(stage),
        act,
        run(this: { act: typeof act }, input: unknown) {
          return this.act(input)
        },
      }
      return run(stage, [given])
    }),
    streaming: one(async (stage) => {
      const runner = clientOf(stage).beta.messages.toolRunner({ ...requestOf(stage, [plain(stage)]), stream: true })
      for await (const stream of runner) await stream.finalMessage()
    }),
    'parallel calls': {
      ...one((stage) => run(stage, [plain(stage)])),
      sent: [{ order: 1 }, { order: 2 }, { order: 3 }],
      got: [{ order: 1 }, { order: 2 }, { order: 3 }],
    },
    retry: retried((stage) => run(stage, [plain(stage)])),
    'MCP server': one((stage) => {
      const client = {
        callTool: async ({ arguments: input }: { arguments?: unknown }) => ({
          content: [{ type: 'text' as const, text: stage.act(input) }],
        }),
      }
      return run(stage, mcpTools([{ name: TOOL, inputSchema: SCHEMA }], client as never))
    }),
    ...lifeOf({ play, lost: ['unknown_tool', 'unfit'], hasTexts: false }),
    'handed off': handedOff(true, delegation('billing'), delegate, delegated('billing', 'billing', 'toolu_1_0')),
    renamed: one((stage) => {
      const other = betaTool({ ...NAMELESS, name: 'other', run: async (input: unknown) => stage.act(input) })
      const tools = guardTools([other], stage.tacho).map((guarded) => ({ ...guarded, name: TOOL })) as unknown as Tools
      return clientOf(stage)
        .beta.messages.toolRunner({ ...requestOf(stage, []), tools })
        .runUntilDone()
    }),
    'hosted tool': {
      refuse: ({ tacho }, options) => guardTools([{ type: 'web_search_20250305', name: 'web_search' }], tacho, options),
    },
    'unknown shape': {
      refuse: ({ tacho }, options) =>
        guardTools([{ type: 'browser_toolset_20260801', run: () => 'ran' }], tacho, options),
    },
  },
  outside: [
    'Tools that your own loop runs: wrap each with `tacho.guard`.',
    'Tools of the provider (web search, code execution, MCP connector): the provider runs them.',
    'Toolsets (browser, computer), which run many tools.',
  ],
})

test('a toolset is refused, whatever names it has', async () => {
  const fake = fakeTacho({ agentName: 'Matrix' })
  const run = () => 'ran'
  for (const toolset of [
    { type: 'computer_20250124', toolsetName: 'computer', name: 'computer', run },
    { type: 'computer_toolset_20260801', name: 'computer', run },
    { type: 'later', run },
  ]) {
    assert.throws(() => guardTools([toolset], fake.tacho), TypeError)
  }
  await fake.close()
})
