/** LangChain and LangGraph: every way of defining a tool, and the life of a call (matrix.ts). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StructuredTool, Tool } from '@langchain/core/tools'
import { RunnableLambda } from '@langchain/core/runnables'
import { ToolMessage } from '@langchain/core/messages'
import { Command, END, interrupt, MemorySaver, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph'
import { ChatOpenAI } from '@langchain/openai'
import { guardTools, recordCalls } from '@tacho/sdk/langchain'
import { fakeTacho } from '@tacho/sdk/testing'
import { MultiServerMCPClient } from '@langchain/mcp-adapters'
import { createAgent, humanInTheLoopMiddleware, tool, toolRetryMiddleware } from 'langchain'
import { z } from 'zod'
import { startMcpServer } from '../../src/mcp-server.ts'
import { AMOUNT, ASKED, delegated, delegation, DONE, handedOff, lifeOf, together, type How } from './life.ts'
import { one, retried, testMatrix, TOOL, type Guarded, type Stage } from './matrix.ts'

process.env['LANGSMITH_TRACING'] = 'false'

const modelOf = ({ model }: Stage) =>
  new ChatOpenAI({ model: 'gpt-5', apiKey: 'key', maxRetries: 0, configuration: { baseURL: `${model.url}/v1` } })

const INPUT = { messages: [{ role: 'user' as const, content: 'Act' }] }

type Tools = readonly StructuredTool[]
const guardedTools = ({ tacho }: Stage, given: object) => guardTools([given] as unknown as Tools, tacho)

const agentOf = (stage: Stage, given: object, more: object = {}) =>
  createAgent({ model: modelOf(stage), tools: guardedTools(stage, given) as never, ...more })

const run = (define: (stage: Stage) => object) => (stage: Stage) =>
  agentOf(stage, define(stage)).invoke(INPUT, { callbacks: [recordCalls(stage.tacho)] })

const FIELDS = { name: TOOL, description: 'Acts' }

const typed = (schema: unknown, sent?: unknown, got?: unknown): Guarded =>
  one(
    run(({ act }) => tool(async (input: unknown) => act(input), { ...FIELDS, schema: schema as z.ZodObject })),
    sent,
    got,
  )

const ORDER = z.object({ order: z.number() })

class OwnTool extends StructuredTool {
  name = TOOL
  description = 'Acts'
  schema = ORDER
  readonly #act: Stage['act']

  constructor(act: Stage['act']) {
    super()
    this.#act = act
  }

  async _call(input: z.infer<typeof ORDER>): Promise<string> {
    return this.#act(input)
  }
}

class TextTool extends Tool {
  name = TOOL
  description = 'Acts'
  readonly #act: Stage['act']

  constructor(act: Stage['act']) {
    super()
    this.#act = act
  }

  async _call(input: string): Promise<string> {
    return this.#act(input)
  }
}

const orderTool = ({ act }: Stage) => tool(async (input) => act(input), { ...FIELDS, schema: ORDER })

type Graph = Pick<ReturnType<typeof createAgent>, 'invoke' | 'stream'>

/** Streams the graph. With the model's option `streaming`, LangChain would download a table for token estimates. */
async function playGraph(stage: Stage, { stream, signal }: How, graph: Graph): Promise<unknown> {
  const options = { callbacks: [recordCalls(stage.tacho)], signal }
  if (!stream) return graph.invoke(INPUT, options)
  for await (const _ of await graph.stream(INPUT, { ...options, streamMode: 'messages' }));
  return undefined
}

const actTool = ({ act }: Stage) => tool(async (input) => act(input), { ...FIELDS, schema: AMOUNT })

const play = (stage: Stage, how: How) => playGraph(stage, how, agentOf(stage, actTool(stage)))

/** Hands over as supervisors and swarms of LangGraph do. */
function transfer(stage: Stage, how: How): Promise<unknown> {
  const move = tool(
    (_: object, { toolCallId }: { toolCallId: string }) => {
      const answer = new ToolMessage({ content: 'Transferred.', tool_call_id: toolCallId })
      return new Command({ goto: 'billing', graph: Command.PARENT, update: { messages: [answer] } })
    },
    { name: 'transfer_to_billing', description: 'Hands over', schema: z.object({}) },
  )
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('triage', agentOf(stage, move, { name: 'triage' }).graph, { ends: ['billing'] })
    .addNode('billing', agentOf(stage, actTool(stage), { name: 'billing' }).graph)
    .addEdge(START, 'triage')
    .compile()
  return playGraph(stage, how, graph as unknown as Graph)
}

/** A supervisor whose edge leads to a worker, and back to it when the worker is done. */
const supervised =
  (worker: (stage: Stage) => (state: typeof MessagesAnnotation.State) => unknown) => (stage: Stage, how: How) => {
    const graph = new StateGraph(MessagesAnnotation)
      .addNode('triage', async ({ messages }) => ({ messages: [await modelOf(stage).invoke(messages)] }))
      .addNode('billing', worker(stage) as never)
      .addEdge(START, 'triage')
      .addConditionalEdges('triage', ({ messages }) => (messages.length < 3 ? 'pay' : 'done'), {
        pay: 'billing',
        done: END,
      })
      .addEdge('billing', 'triage')
      .compile()
    return playGraph(stage, how, graph as unknown as Graph)
  }

const workers = {
  'to an agent': (stage: Stage) => agentOf(stage, actTool(stage), { name: 'billing' }).graph as never,
  'to a function that asks an agent': (stage: Stage) => async (state: typeof MessagesAnnotation.State) => ({
    messages: (await agentOf(stage, actTool(stage)).invoke(state)).messages.slice(-1),
  }),
  'to a function with a model':
    (stage: Stage) =>
    async ({ messages }: typeof MessagesAnnotation.State) => {
      const [guarded] = guardedTools(stage, actTool(stage))
      const asked = await modelOf(stage)
        .bindTools([guarded as never])
        .invoke(messages)
      const [call] = asked.tool_calls ?? []
      const done = (await guarded?.invoke({ ...call, type: 'tool_call' } as never)) as never
      return { messages: [await modelOf(stage).invoke([...messages, asked, done])] }
    },
}

/** A node that calls a model hands over with a `Command`. */
function goOn(stage: Stage, how: How): Promise<unknown> {
  const triage = async ({ messages }: typeof MessagesAnnotation.State) => {
    await modelOf(stage).invoke(messages)
    return new Command({ goto: 'billing' })
  }
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('triage', triage, { ends: ['billing'] })
    .addNode('billing', agentOf(stage, actTool(stage), { name: 'billing' }).graph)
    .addEdge(START, 'triage')
    .compile()
  return playGraph(stage, how, graph as unknown as Graph)
}

/** Events of a handoff by code of the node triage. */
const ofCode = [
  ['LLM_CALL', undefined],
  ['HANDOFF', undefined, ['triage', 'billing', undefined]],
  ['LLM_CALL', 'billing'],
  ['TOOL_CALL', 'billing', TOOL],
  ['LLM_CALL', 'billing'],
] as const

function delegate(stage: Stage, how: How): Promise<unknown> {
  const ask = tool(
    async ({ prompt }) => {
      const { messages } = await agentOf(stage, actTool(stage)).invoke({
        messages: [{ role: 'user', content: prompt }],
      })
      return messages.at(-1)?.text ?? ''
    },
    { name: 'billing', description: 'Asks', schema: z.object({ prompt: z.string() }) },
  )
  return playGraph(stage, how, agentOf(stage, ask))
}

testMatrix({
  id: 'typescript-langchain',
  name: 'LangChain, LangGraph',
  page: 'langchain.md',
  tested: 'langchain 1.5.14, @langchain/core 1.4.0, @langchain/langgraph 1.7.3, @langchain/mcp-adapters 1.1.4',
  ways: {
    'typed model': typed(ORDER),
    'nested model': typed(z.object({ lines: z.array(ORDER), to: z.object({ name: z.string() }) }), {
      lines: [{ order: 1 }, { order: 2 }],
      to: { name: 'Ada' },
    }),
    'raw JSON schema': typed({ type: 'object', properties: { order: { type: 'number' } } }, { order: 7, more: [1] }),
    'string input': one(
      run(({ act }) => new TextTool(act)),
      { input: '{"order":7}' },
      { input: '{"order":7}' },
    ),
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
    'extra keys': typed(ORDER, { order: 7, force: true }, { order: 7 }),
    dates: typed(
      z.object({ on: z.string().transform((text) => new Date(text)) }),
      { on: '2026-01-02' },
      { on: '2026-01-02T00:00:00.000Z' },
    ),
    generator: one(
      run(({ act }) =>
        tool(
          async function* (input: unknown) {
            yield 'acting'
            return act(input)
          },
          { ...FIELDS, schema: ORDER },
        ),
      ),
    ),
    resumed: {
      ...one(async (stage) => {
        const pausing = tool(
          async (input) => {
            interrupt('sure?')
            return stage.act(input)
          },
          { ...FIELDS, schema: ORDER },
        )
        const agent = agentOf(stage, pausing, { checkpointer: new MemorySaver() })
        const config = { configurable: { thread_id: '1' } }
        await agent.invoke(INPUT, config)
        await agent.invoke(new Command({ resume: 'yes' }) as never, config)
        await stage.fake.assertNoEvent('TOOL_CALL', { error: 'GraphInterrupt' })
        assert.deepEqual(
          (await stage.fake.issues()).filter(({ detectionType }) => detectionType === 'TOOL_FAILED'),
          [],
        )
      }),
      // The tool runs twice: until the pause, and again after the resume.
      calls: 2,
    },
    sync: one(run(({ act }) => tool((input) => act(input), { ...FIELDS, schema: ORDER }))),
    async: typed(ORDER),
    method: one(run(({ act }) => new OwnTool(act))),
    streaming: one(async (stage) => {
      for await (const _ of await agentOf(stage, orderTool(stage)).stream(INPUT));
    }),
    'parallel calls': {
      ...typed(ORDER),
      sent: [{ order: 1 }, { order: 2 }, { order: 3 }],
      got: [{ order: 1 }, { order: 2 }, { order: 3 }],
    },
    batch: {
      ...one(async (stage) => {
        const [guarded] = guardedTools(stage, orderTool(stage))
        await guarded?.batch([{ order: 1 }, { order: 2 }])
      }),
      sent: [],
      got: [{ order: 1 }, { order: 2 }],
    },
    artifact: one(
      run(({ act }) =>
        tool(async (input) => [act(input), { kept: 1 }], {
          ...FIELDS,
          schema: ORDER,
          responseFormat: 'content_and_artifact',
        }),
      ),
    ),
    'sub-agent': {
      ...one((stage) => {
        const inner = agentOf(stage, orderTool(stage))
        const ask = tool(
          async () => {
            const { messages } = await inner.invoke(INPUT)
            return messages.at(-1)?.text ?? ''
          },
          { name: 'inner', description: 'Asks', schema: z.object({}) },
        )
        return createAgent({ model: modelOf(stage), tools: [ask] }).invoke(INPUT)
      }),
      answers: [
        { toolCalls: [{ name: 'inner', input: {} }] },
        { toolCalls: [{ name: TOOL, input: { order: 7 } }] },
        { text: 'Done.' },
      ],
    },
    'agent as a tool': one(
      run((stage) =>
        tool(
          async (input) => {
            const inner = createAgent({ model: modelOf(stage), tools: [] })
            await inner.invoke(INPUT)
            return stage.act(input)
          },
          { ...FIELDS, schema: ORDER },
        ),
      ),
    ),
    // Without this, an error of a tool ends the agent.
    retry: {
      ...retried((stage) => {
        const middleware = [toolRetryMiddleware({ maxRetries: 1, initialDelayMs: 0 })]
        return agentOf(stage, orderTool(stage), { middleware }).invoke(INPUT)
      }),
      answers: [{ toolCalls: [{ name: TOOL, input: { order: 7 } }] }, { text: 'Done.' }],
    },
    'MCP server': one(async (stage) => {
      const server = await startMcpServer(TOOL, stage.act)
      const client = new MultiServerMCPClient({ mcpServers: { shop: { url: server.url } } })
      try {
        const [given] = await client.getTools()
        await agentOf(stage, given as object).invoke(INPUT)
      } finally {
        await client.close()
        await server.close()
      }
    }),
    'human in the loop': one(async (stage) => {
      const middleware = [humanInTheLoopMiddleware({ interruptOn: { [TOOL]: true } } as never)]
      const agent = agentOf(stage, orderTool(stage), { middleware, checkpointer: new MemorySaver() })
      const config = { configurable: { thread_id: '1' } }
      await agent.invoke(INPUT, config)
      await agent.invoke(new Command({ resume: { decisions: [{ type: 'approve' }] } }) as never, config)
    }),
    ...lifeOf({ play }),
    'handed off': together({
      'by a transfer': handedOff(
        true,
        [{ toolCalls: [{ name: 'transfer_to_billing', input: {} }] }, ASKED, DONE],
        transfer,
        [
          ['LLM_CALL', undefined],
          ['TOOL_CALL', undefined, 'transfer_to_billing'],
          ['HANDOFF', undefined, ['triage', 'billing', 'call_1_0']],
          ['LLM_CALL', 'billing'],
          ['TOOL_CALL', 'billing', TOOL],
          ['LLM_CALL', 'billing'],
        ],
      ),
      'by a node': handedOff(true, [DONE, ASKED, DONE], goOn, ofCode),
      ...Object.fromEntries(
        Object.entries(workers).map(([name, worker]) => [
          `by an edge ${name}`,
          handedOff(true, [DONE, ASKED, DONE, DONE], supervised(worker), [...ofCode, ['LLM_CALL', undefined]]),
        ]),
      ),
      'as a tool': handedOff(true, delegation('billing'), delegate, delegated('billing', 'billing', 'call_1_0')),
    }),
    renamed: one((stage) => {
      const [guarded] = guardedTools(
        stage,
        tool(async (input) => stage.act(input), { ...FIELDS, name: 'other', schema: ORDER }),
      )
      assert.ok(guarded)
      guarded.name = TOOL
      return createAgent({ model: modelOf(stage), tools: [guarded] }).invoke(INPUT)
    }),
    'unknown shape': {
      refuse: ({ tacho }, options) => {
        const runnable = RunnableLambda.from(async (input: z.infer<typeof ORDER>) => input)
        return guardTools([runnable.asTool({ ...FIELDS, schema: ORDER })], tacho, options)
      },
    },
    'own runner': {
      refuse: ({ tacho }, options) => {
        class Own extends OwnTool {
          override async invoke() {
            return 'ran' as never
          }
        }
        return guardTools([new Own(() => 'ran')], tacho, options)
      },
    },
    'hosted tool': { refuse: ({ tacho }, options) => guardTools([{ type: 'web_search' }], tacho, options) },
  },
  outside: [
    'Tools of the provider, given as plain objects: the provider runs them.',
    'Tools that are not passed through `guardTools`. With `recordCalls`, they are recorded.',
    'The answer that `interrupt` returns when a run is resumed: it is not part of the input.',
    '`beforeToolCall` of `@langchain/mcp-adapters` runs inside the tool: what it changes in the arguments is not judged.',
  ],
})

test('no tool passes for one of LangChain that runs its calls itself', async () => {
  const fake = fakeTacho({ agentName: 'Matrix' })
  class Named extends OwnTool {
    override get lc_namespace() {
      return ['own']
    }
    override async invoke() {
      return 'ran' as never
    }
  }
  const changed = orderTool({ act: () => 'ran' } as unknown as Stage)
  changed.invoke = async () => 'ran' as never
  Object.defineProperty(changed, 'lc_namespace', { value: ['own'] })
  for (const given of [new Named(() => 'ran'), changed]) assert.throws(() => guardTools([given], fake.tacho), TypeError)
  await fake.close()
})
