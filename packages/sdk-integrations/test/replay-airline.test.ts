/** Tapes of 150 runs of an airline's agent. Unchanged, no replay differs; each change of the agent is found at its step. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Tacho } from '@tacho/sdk'
import * as openai from '@tacho/sdk/openai'
import { fakeTacho } from '@tacho/sdk/testing'
import OpenAI from 'openai'
import { ReplayHost } from '../../cli/src/record/tape/host.ts'
import { recordedSteps } from '../../cli/src/record/tape/recorded-steps.ts'
import type { Tape, ToolStep } from '../../cli/src/record/tape/tape.ts'
import { REAL_TRANSCRIPTS, withoutRealTranscripts } from '../../cli/test/real-transcripts.ts'
import { madeTape, readBack } from '../../cli/test/tape/made-tape.ts'

type Message = OpenAI.ChatCompletionMessageParam
interface Call {
  name: string
  input: Record<string, unknown>
}

/** A change that a developer made to the agent. */
interface Change {
  prompt?: (text: string) => string
  /** Changes a call. @param call number of the call, from 0 */
  call?: (asked: Call, call: number) => Call
}

const quiet = { guard: { loop: false }, onDiagnostic: () => undefined } as const

/** Runs the agent of a transcript: it calls the model for each user message, and runs the tools that the model calls. */
async function runAgent(
  transcript: readonly Message[],
  tacho: Tacho,
  client: OpenAI,
  tools: (name: string) => unknown,
  { prompt = (text) => text, call: changed = (asked) => asked }: Change = {},
): Promise<void> {
  const asking = openai.recordClient(client, tacho)
  await tacho.run(async (run) => {
    const messages: Message[] = []
    let calls = 0
    for (const message of transcript) {
      if (message.role === 'system') messages.push({ role: 'system', content: prompt(message.content as string) })
      if (message.role === 'user') {
        const text = message.content as string
        run.userInput(text)
        messages.push({ role: 'user', content: text })
      }
      if (message.role !== 'assistant') continue
      const reply = (await asking.chat.completions.create({ model: 'gpt-4o', messages })).choices[0]?.message
      assert.ok(reply)
      messages.push(reply)
      for (const called of reply.tool_calls ?? []) {
        assert.ok(called.type === 'function')
        const input = JSON.parse(called.function.arguments) as Call['input']
        const asked = changed({ name: called.function.name, input }, calls++)
        const tool = tacho.guard((_: Call['input']) => tools(asked.name), { name: asked.name })
        messages.push({ role: 'tool', tool_call_id: called.id, content: String(await tool(asked.input)) })
      }
    }
  })
}

async function recorded(transcript: readonly Message[]): Promise<Tape> {
  const answers = transcript.filter(({ role }) => role === 'assistant')
  const outputs = transcript.filter(({ role }) => role === 'tool').map(({ content }) => content)
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
  const model = async () =>
    Response.json({
      id: 'c',
      object: 'chat.completion',
      model: 'gpt-4o',
      choices: [{ index: 0, message: answers.shift() }],
      usage,
    })
  const fake = fakeTacho({ agentName: 'Airline', ...quiet })
  await runAgent(transcript, fake.tacho, new OpenAI({ apiKey: 'key', fetch: model }), () => outputs.shift())
  const { steps, obstacles } = recordedSteps(await fake.events())
  await fake.close()
  assert.deepEqual(obstacles, [])
  return readBack(madeTape(steps, { agent: 'Airline' }))
}

/** The step at which the agent differs from the tape. No tool runs. */
async function departure(tape: Tape, transcript: readonly Message[], change: Change = {}) {
  const host = new ReplayHost(tape, { mode: 'strict', ignored: [] })
  const origin = (process.env['TACHO_REPLAY'] = await host.start())
  const tacho = new Tacho({ apiKey: 'replay', agentName: 'Airline', ...quiet })
  const client = new OpenAI({ apiKey: 'key', baseURL: `${origin}/openai/v1`, maxRetries: 0 })
  try {
    await runAgent(transcript, tacho, client, () => assert.fail('a tool ran'), change).catch(() => undefined)
    await tacho.shutdown()
    return host.result().departure
  } finally {
    delete process.env['TACHO_REPLAY']
    await host.close()
  }
}

test(
  'the tapes of real runs differ nowhere, and another prompt, order and input are found at their step',
  {
    skip: withoutRealTranscripts,
    timeout: 900_000,
  },
  async (t) => {
    const runs = readFileSync(REAL_TRANSCRIPTS, 'utf8').trim().split('\n')
    const found = { same: 0, prompt: 0, order: 0, input: 0 }
    for (const [index, line] of runs.entries()) {
      const { messages } = JSON.parse(line) as { messages: Message[] }
      const tape = await recorded(messages)
      assert.equal((await departure(tape, messages))?.sentence, undefined, `run ${index}`)
      found.same++

      const first = tape.steps.find(({ kind }) => kind === 'model')
      const rude = await departure(tape, messages, { prompt: (text) => text.replace('Airline', 'Railway') })
      assert.equal(rude?.step, first?.step, `run ${index}: ${rude?.sentence}`)
      assert.match(String(rude?.sentence), /another system text: .*Airline.* is now .*Railway/)
      found.prompt++

      const tools = tape.steps.filter((step): step is ToolStep => step.kind === 'tool')
      const asText = ({ tool, input }: ToolStep) => JSON.stringify([tool, input])
      const at = tools.findIndex((step, n) => n + 1 < tools.length && asText(step) !== asText(tools[n + 1] as ToolStep))
      const [one, other] = [tools[at], tools[at + 1]]
      if (one && other) {
        const swapped = (asked: Call, call: number): Call => {
          const step = call === at ? other : call === at + 1 ? one : undefined
          return step ? { name: step.tool, input: step.input as Call['input'] } : asked
        }
        const turned = await departure(tape, messages, { call: swapped })
        assert.equal(turned?.step, one.step, `run ${index}: ${turned?.sentence}`)
        assert.ok(turned?.sentence.includes(`the agent asks ${other.tool} `), turned?.sentence)
        found.order++
      }

      const middle = Math.floor(tools.length / 2)
      const step = tools[middle]
      if (step) {
        const noted = ({ name, input }: Call, call: number) => ({
          name,
          input: call === middle ? { ...input, note: 1 } : input,
        })
        const changed = await departure(tape, messages, { call: noted })
        assert.equal(changed?.step, step.step, `run ${index}: ${changed?.sentence}`)
        assert.deepEqual(changed?.differences, [{ path: 'input.note', tape: undefined, now: 1 }])
        found.input++
      }
    }
    t.diagnostic(JSON.stringify(found))
    assert.ok(found.same === runs.length && found.prompt === runs.length && found.order > 100 && found.input > 100)
  },
)
