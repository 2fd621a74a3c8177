/** OpenAI Agents: every way of defining a tool, and the life of a call (matrix.ts). */
import {
  Agent,
  handoff,
  MCPServerStdio,
  OpenAIProvider,
  RunState,
  Runner,
  setTraceProcessors,
  shellTool,
  tool,
  webSearchTool,
} from '@openai/agents'
import { guardMcpServer, guardTool, guardTools, recordTraces } from '@tacho/sdk/openai-agents'
import { z } from 'zod'
import { AMOUNT, ASKED, delegated, delegation, DONE, handedOff, lifeOf, together, type How } from './life.ts'
import { one, retried, testMatrix, TOOL, type Guarded, type Stage } from './matrix.ts'

setTraceProcessors([])

type Options = Parameters<typeof tool>[0]
type Given = { parameters: unknown; execute(input: unknown): unknown } & Record<string, unknown>

const made = ({ tacho }: Stage, given: Given) =>
  guardTool(tool, tacho)({ name: TOOL, description: 'Acts', ...given } as unknown as Options)

const agentOf = (stage: Stage, given: Given) =>
  new Agent({ name: 'Agent', model: 'gpt-5', tools: guardTools([made(stage, given)], stage.tacho) })

const runnerOf = ({ model }: Stage) =>
  new Runner({
    modelProvider: new OpenAIProvider({ apiKey: 'key', baseURL: `${model.url}/v1` }),
    tracingDisabled: true,
  })

const run = (define: (stage: Stage) => Given) => (stage: Stage) =>
  runnerOf(stage).run(agentOf(stage, define(stage)), 'Act')

const typed = (parameters: unknown, sent?: unknown, got?: unknown): Guarded =>
  one(
    run(({ act }) => ({ parameters, execute: async (input) => act(input) })),
    sent,
    got,
  )

const ORDER = z.object({ order: z.number() })
const LOOSE = { type: 'object', properties: {}, required: [], additionalProperties: true }
const loose = (define: (stage: Stage) => Partial<Given> = () => ({})) =>
  run((stage) => ({ parameters: LOOSE, strict: false, execute: async (input) => stage.act(input), ...define(stage) }))

const providerOf = ({ model }: Stage) =>
  new OpenAIProvider({ apiKey: 'key', baseURL: `${model.url}/v1`, useResponses: false })

const recordedRunner = (stage: Stage) => {
  setTraceProcessors([recordTraces(stage.tacho)])
  return new Runner({ modelProvider: providerOf(stage) })
}

const actingAgent = (stage: Stage) => agentOf(stage, { parameters: AMOUNT, execute: async (input) => stage.act(input) })

async function playAgent(stage: Stage, { stream, signal }: How, agent: Agent): Promise<unknown> {
  const runner = recordedRunner(stage)
  return stream ? (await runner.run(agent, 'Act', { signal, stream })).completed : runner.run(agent, 'Act', { signal })
}

const play = (stage: Stage, how: How) => playAgent(stage, how, actingAgent(stage))

const playFirst = (stage: Stage, how: How, more: object) =>
  playAgent(stage, how, new Agent({ name: 'First', model: 'gpt-5', ...more }))

function delegate(stage: Stage, how: How): Promise<unknown> {
  const billing = actingAgent(stage).asTool({
    toolName: 'billing',
    toolDescription: 'Asks',
    runConfig: { modelProvider: providerOf(stage) },
  })
  return playFirst(stage, how, { tools: [billing] })
}

testMatrix({
  id: 'typescript-openai-agents',
  name: 'OpenAI Agents',
  page: 'openai-agents.md',
  tested: '@openai/agents 0.20.0',
  ways: {
    'typed model': typed(ORDER),
    'nested model': typed(z.object({ lines: z.array(ORDER), to: z.object({ name: z.string() }) }), {
      lines: [{ order: 1 }, { order: 2 }],
      to: { name: 'Ada' },
    }),
    'raw JSON schema': one(loose(), { order: 7, more: [1] }),
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
    'duplicate keys': { ...one(loose(), {}, { order: 2 }), answers: [raw('{"order":1,"order":2}'), { text: 'Done.' }] },
    'large number': {
      ...one(loose(), {}, { order: 9007199254740992 }),
      answers: [raw('{"order":9007199254740993}'), { text: 'Done.' }],
    },
    sync: one(run(({ act }) => ({ parameters: ORDER, execute: (input) => act(input) }))),
    async: typed(ORDER),
    method: one(
      run(({ act }) => ({
        parameters: ORDER,
        act,
        execute(this: { act: Stage['act'] }, input: unknown) {
          return this.act(input)
        },
      })),
    ),
    streaming: one(async (stage) => {
      const agent = agentOf(stage, { parameters: ORDER, execute: async (input) => stage.act(input) })
      const stream = await runnerOf(stage).run(agent, 'Act', { stream: true })
      await stream.completed
    }),
    'parallel calls': {
      ...typed(ORDER),
      sent: [{ order: 1 }, { order: 2 }, { order: 3 }],
      got: [{ order: 1 }, { order: 2 }, { order: 3 }],
    },
    retry: retried(run(({ act }) => ({ parameters: ORDER, execute: async (input) => act(input) }))),
    'hand-off': {
      ...one((stage) => {
        const second = agentOf(stage, { parameters: ORDER, execute: async (input) => stage.act(input) })
        const first = new Agent({ name: 'First', model: 'gpt-5', handoffs: [handoff(second)] })
        return runnerOf(stage).run(first, 'Act')
      }),
      answers: [
        { toolCalls: [{ name: 'transfer_to_Agent', input: {} }] },
        { toolCalls: [{ name: TOOL, input: { order: 7 } }] },
        { text: 'Done.' },
      ],
    },
    'sub-agent': {
      ...one((stage) => {
        const inner = agentOf(stage, { parameters: ORDER, execute: async (input) => stage.act(input) })
        const first = new Agent({
          name: 'First',
          model: 'gpt-5',
          tools: [
            inner.asTool({
              toolName: 'inner',
              toolDescription: 'Asks',
              runConfig: { modelProvider: new OpenAIProvider({ apiKey: 'key', baseURL: `${stage.model.url}/v1` }) },
            }),
          ],
        })
        return runnerOf(stage).run(first, 'Act')
      }),
      answers: [
        { toolCalls: [{ name: 'inner', input: { input: 'Act' } }] },
        { toolCalls: [{ name: TOOL, input: { order: 7 } }] },
        { text: 'Done.' },
      ],
    },
    'agent as a tool': {
      refuse: ({ tacho }, options) => {
        const inner = new Agent({ name: 'Inner', model: 'gpt-5' })
        return guardTools([inner.asTool({ toolName: 'inner', toolDescription: 'Asks' })], tacho, options)
      },
    },
    'MCP server': {
      ...one((stage) => {
        const server = new MCPServerStdio({ command: process.execPath, args: ['-e', ''] })
        // Provides the tools of an MCP server without starting its process.
        Object.assign(server, {
          listTools: async () => [{ name: TOOL, inputSchema: LOOSE }],
          callTool: async (_name: string, input: unknown) => [{ type: 'text', text: stage.act(input) }],
        })
        const mcpServers = [guardMcpServer(server, stage.tacho)]
        return runnerOf(stage).run(new Agent({ name: 'Agent', model: 'gpt-5', mcpServers }), 'Act')
      }),
    },
    'human in the loop': one(async (stage) => {
      const agent = agentOf(stage, {
        parameters: ORDER,
        needsApproval: true,
        execute: async (input) => stage.act(input),
      })
      const runner = runnerOf(stage)
      const { state, interruptions } = await runner.run(agent, 'Act')
      for (const item of interruptions) state.approve(item)
      return runner.run(agent, state)
    }),
    resumed: one(async (stage) => {
      const agent = agentOf(stage, {
        parameters: ORDER,
        needsApproval: true,
        execute: async (input) => stage.act(input),
      })
      const runner = runnerOf(stage)
      const first = await runner.run(agent, 'Act')
      const state = await RunState.fromString(agent, JSON.stringify(first.state))
      for (const item of state.getInterruptions()) state.approve(item)
      return runner.run(agent, state)
    }),
    shell: {
      ...one(
        (stage) => {
          const shell = {
            run: async (action: unknown) => ({
              output: [{ stdout: stage.act(action), stderr: '', outcome: { type: 'exit' as const, exitCode: 0 } }],
            }),
          }
          const tools = guardTools([shellTool({ name: TOOL, shell })], stage.tacho)
          return runnerOf(stage).run(new Agent({ name: 'Agent', model: 'gpt-5', tools }), 'Act')
        },
        { commands: ['ls'] },
      ),
      answers: [
        {
          items: [
            { type: 'shell_call', id: 'sh_1', call_id: 'call_1', status: 'completed', action: { commands: ['ls'] } },
          ],
        },
        { text: 'Done.' },
      ],
    },
    // An unknown tool ends the run, so the third call is never read.
    ...lifeOf({ play, endsAtLost: true }),
    'handed off': together({
      'by a transfer': handedOff(
        true,
        [{ toolCalls: [{ name: 'transfer_to_Agent', input: {} }] }, ASKED, DONE],
        (stage, how) => playFirst(stage, how, { handoffs: [actingAgent(stage)] }),
        [
          ['LLM_CALL', undefined],
          ['HANDOFF', undefined, ['First', 'Agent', 'call_1_0']],
          ['LLM_CALL', 'Agent'],
          ['TOOL_CALL', 'Agent', TOOL],
          ['LLM_CALL', 'Agent'],
        ],
      ),
      'as a tool': handedOff(
        true,
        delegation('billing', 'input'),
        delegate,
        delegated('Agent', 'billing', 'call_1_0', 'First'),
      ),
    }),
    renamed: one((stage) => {
      const other = made(stage, { name: 'other', parameters: ORDER, execute: async (input) => stage.act(input) })
      const tools = guardTools([{ ...other, name: TOOL }], stage.tacho)
      return runnerOf(stage).run(new Agent({ name: 'Agent', model: 'gpt-5', tools }), 'Act')
    }),
    'hosted tool': { refuse: ({ tacho }, options) => guardTools([webSearchTool()], tacho, options) },
    'unknown shape': {
      refuse: ({ tacho }, options) => {
        const plain = tool({ name: TOOL, description: 'Acts', parameters: ORDER, execute: async () => 'ran' })
        return guardTools([plain], tacho, options)
      },
    },
  },
  outside: [
    'Tools that are not made by the guarded `tool`, if you do not pass them through `guardTools`.',
    'Hosted tools (web search, file search, code interpreter, hosted MCP): the provider runs them. A computer: the framework calls it method by method.',
    'MCP servers that are not wrapped with `guardMcpServer`.',
    '`onHandoff` of a hand-off with an `inputType`: the framework calls it with the arguments of the model.',
    'Sandboxes, whose shell and files are tools of the framework.',
  ],
})

/** The model calls the tool with this text as arguments. */
function raw(text: string) {
  return { toolCalls: [{ name: TOOL, input: undefined, text }] }
}
