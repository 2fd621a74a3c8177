/** `runTools` of the OpenAI client: every way of defining a tool, and the life of a call (matrix.ts). */
import assert from 'node:assert/strict'
import { guardTools, recordClient } from '@tacho/sdk/openai'
import OpenAI from 'openai'
import { ResponsesToolRunner, runnerFunction } from 'openai/helpers/responses-tool-runner'
import { zodFunction, zodResponsesFunction } from 'openai/helpers/zod'
import { z } from 'zod'
import { AMOUNT, delegated, delegation, handedOff, lifeOf, type How } from './life.ts'
import { one, retried, testMatrix, TOOL, type Guarded, type Stage } from './matrix.ts'

type Tools = Parameters<OpenAI['chat']['completions']['runTools']>[0]['tools']

const clientOf = ({ model }: Stage) => new OpenAI({ apiKey: 'key', baseURL: `${model.url}/v1`, maxRetries: 0 })

type Wrap = (tools: readonly object[], tacho: Stage['tacho']) => readonly object[]

function runTools(stage: Stage, tools: readonly object[], wrap: Wrap = guardTools): Promise<unknown> {
  const guarded = wrap(tools, stage.tacho) as unknown as Tools
  const messages = [{ role: 'user' as const, content: 'Act' }]
  return clientOf(stage).chat.completions.runTools({ model: 'gpt-5', messages, tools: guarded }).finalContent()
}

const PARAMETERS = { type: 'object', properties: {} }

const plain = (stage: Stage, more: object) => ({
  type: 'function',
  function: { name: TOOL, parameters: PARAMETERS, function: async (input: unknown) => stage.act(input), ...more },
})

const parsing = (sent?: unknown, got?: unknown): Guarded =>
  one((stage) => runTools(stage, [plain(stage, { parse: JSON.parse })]), sent, got)

const typed = (parameters: z.ZodObject, sent?: unknown, got?: unknown): Guarded =>
  one(
    (stage) =>
      runTools(stage, [zodFunction({ name: TOOL, parameters, function: async (input: object) => stage.act(input) })]),
    sent,
    got,
  )

const ORDER = z.object({ order: z.number() })

function play(stage: Stage, { stream, signal }: How): Promise<unknown> {
  const { tacho } = stage
  const parse = (text: string) => AMOUNT.parse(JSON.parse(text))
  const tools = guardTools([plain(stage, { parse })], tacho) as unknown as Tools
  const body = { model: 'gpt-5', messages: [{ role: 'user' as const, content: 'Act' }], tools }
  const { completions } = recordClient(clientOf(stage), tacho).chat
  return stream
    ? completions.runTools({ ...body, stream }, { signal }).done()
    : completions.runTools(body, { signal }).done()
}

/** A tool whose code runs another agent with tools. */
function delegate(stage: Stage, how: How): Promise<unknown> {
  const { completions } = recordClient(clientOf(stage), stage.tacho).chat
  const ask = async () => {
    await play(stage, how)
    return 'Done.'
  }
  const tools = guardTools(
    [plain(stage, { name: 'billing', parse: JSON.parse, function: ask })],
    stage.tacho,
  ) as unknown as Tools
  const body = { model: 'gpt-5', messages: [{ role: 'user' as const, content: 'Ask' }], tools }
  return how.stream ? completions.runTools({ ...body, stream: true }).done() : completions.runTools(body).done()
}

testMatrix({
  id: 'typescript-openai',
  name: 'OpenAI `runTools`',
  page: 'openai.md',
  tested: 'openai 7.57.0',
  ways: {
    'typed model': typed(ORDER),
    'nested model': typed(z.object({ lines: z.array(ORDER), to: z.object({ name: z.string() }) }), {
      lines: [{ order: 1 }, { order: 2 }],
      to: { name: 'Ada' },
    }),
    'raw JSON schema': parsing({ order: 7, more: [1] }),
    'string input': one((stage) => runTools(stage, [plain(stage, {})]), { order: 7 }, { input: '{"order":7}' }),
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
        const parse = (text: string) => ({ order: (JSON.parse(text) as { order_id: number }).order_id })
        return runTools(stage, [plain(stage, { parse })])
      },
      { order_id: 7 },
      { order: 7 },
    ),
    'extra keys': typed(ORDER, { order: 7, force: true }, { order: 7 }),
    'duplicate keys': {
      ...parsing({}, { order: 2 }),
      answers: [raw('{"order":1,"order":2}'), { text: 'Done.' }],
    },
    'large number': {
      ...parsing({}, { order: 9007199254740992 }),
      answers: [raw('{"order":9007199254740993}'), { text: 'Done.' }],
    },
    dates: one(
      (stage) => {
        const parse = (text: string) => ({ on: new Date((JSON.parse(text) as { on: string }).on) })
        return runTools(stage, [plain(stage, { parse })])
      },
      { on: '2026-01-02' },
      { on: '2026-01-02T00:00:00.000Z' },
    ),
    sync: one((stage) =>
      runTools(stage, [plain(stage, { parse: JSON.parse, function: (input: unknown) => stage.act(input) })]),
    ),
    async: parsing(),
    method: one((stage) => {
      const { act } = stage
      const more = {
        act,
        parse: JSON.parse,
        function(this: { act: typeof act }, input: unknown) {
          return this.act(input)
        },
      }
      return runTools(stage, [plain(stage, more)])
    }),
    streaming: one((stage) => {
      const tools = guardTools([plain(stage, { parse: JSON.parse })], stage.tacho) as unknown as Tools
      const messages = [{ role: 'user' as const, content: 'Act' }]
      const { completions } = clientOf(stage).chat
      return completions.runTools({ model: 'gpt-5', messages, tools, stream: true }).finalContent()
    }),
    'Responses API': one(
      (stage) => {
        const given = { name: TOOL, parameters: z.object({ order: z.coerce.number() }), function: stage.act }
        const [tool] = guardTools([zodResponsesFunction(given)], stage.tacho)
        const runner = new ResponsesToolRunner({ functions: [runnerFunction(tool as never)] })
        return runner.run(clientOf(stage), { model: 'gpt-5', input: 'Act' })
      },
      { order: '7' },
      { order: 7 },
    ),
    'parallel calls': {
      ...parsing(),
      sent: [{ order: 1 }, { order: 2 }, { order: 3 }],
      got: [{ order: 1 }, { order: 2 }, { order: 3 }],
    },
    // An error of a tool ends the run, so the host starts another one.
    retry: retried((stage) => {
      const run = () => runTools(stage, [plain(stage, { parse: JSON.parse })])
      return run().catch((error: Error) => (error.message === 'busy' ? run() : assert.fail(error)))
    }),
    renamed: one((stage) => {
      const [other] = guardTools([plain(stage, { name: 'other', parse: JSON.parse })], stage.tacho)
      return runTools(stage, [{ ...other, function: { ...other?.function, name: TOOL } }], (tools) => tools)
    }),
    ...lifeOf({ play }),
    // Tools of `runTools` do not get the model's id of the call.
    'handed off': handedOff(true, delegation('billing'), delegate, delegated('billing', 'billing', undefined)),
    'own runner': {
      refuse: ({ tacho }, options) => {
        const parameters = z.object({ order: z.number() })
        const typed = zodResponsesFunction({ name: TOOL, parameters, function: () => 'ran' })
        return guardTools([runnerFunction(typed)], tacho, options)
      },
    },
    'unknown shape': {
      refuse: ({ tacho }, options) =>
        guardTools([{ type: 'function', function: { name: TOOL, parameters: PARAMETERS } }], tacho, options),
    },
  },
  outside: [
    'Tools that your own loop runs: wrap each with `tacho.guard`.',
    'Hosted tools of the Responses API: the provider runs them.',
    'A tool of `runnerFunction` is refused, because it parses its arguments itself. Pass a typed tool through `guardTools` first. The framework itself runs the browser and the computer of that runner.',
  ],
})

/** The model calls the tool with this text as arguments. */
function raw(text: string) {
  return { toolCalls: [{ name: TOOL, input: undefined, text }] }
}
