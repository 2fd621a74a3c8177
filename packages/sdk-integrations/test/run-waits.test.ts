/** A run ends after the model calls that its framework makes in the background, and with their outcome. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createOpenAI } from '@ai-sdk/openai'
import Anthropic from '@anthropic-ai/sdk'
import { recordClient as recordAnthropic } from '@tacho/sdk/anthropic'
import { guardTools, recordModel } from '@tacho/sdk/ai'
import { recordClient } from '@tacho/sdk/openai'
import { isStepCount, pipeUIMessageStreamToResponse, streamText, toUIMessageStream, tool } from 'ai'
import OpenAI from 'openai'
import { z } from 'zod'
import { hostRuntime } from '../../sdk/src/delivery/runtime.ts'
import type { Answer } from '../src/model-server.ts'
import { openStage, TOOL, type Stage } from './matrix/matrix.ts'

const quiet = { maxRetries: 0, onError: () => undefined }

const modelOf = ({ model, tacho }: Stage) =>
  recordModel(createOpenAI({ apiKey: 'key', baseURL: `${model.url}/v1` }).chat('gpt-5'), tacho)

/** The events and the outcome of the only run. */
async function outcomeOf({ fake }: Stage) {
  const [run, ...others] = await fake.runs()
  assert.equal(others.length, 0)
  return { status: run?.status, types: run?.events.map(({ eventType }) => eventType), events: run?.events ?? [] }
}

test('a run that returns a streamText ends with its last call', async (t) => {
  const stage = await openStage(t, [{ toolCalls: [{ name: TOOL, input: { order: 7 } }] }, { text: 'Done.' }])
  const tools = guardTools(
    { [TOOL]: tool({ inputSchema: z.object({ order: z.number() }), execute: async (input) => stage.act(input) }) },
    stage.tacho,
  )
  const { text } = await stage.tacho.run(() =>
    streamText({ model: modelOf(stage), tools, prompt: 'Act', stopWhen: isStepCount(3), ...quiet }),
  )
  assert.equal((await stage.fake.runs())[0]?.status ?? 'RUNNING', 'RUNNING')
  assert.equal(await text, 'Done.')
  const { status, types, events } = await outcomeOf(stage)
  assert.equal(status, 'COMPLETED')
  assert.deepEqual(types, ['LLM_CALL', 'TOOL_START', 'TOOL_CALL', 'LLM_CALL', 'SESSION_OUTCOME'])
  const times = events.map(({ timestamp }) => timestamp)
  assert.deepEqual(
    times,
    times.toSorted((a, b) => a - b),
  )
})

const FAILED: Answer = { status: 500 }

for (const [title, answers, status] of [
  ['a streamText whose only call failed', [FAILED], 'FAILED'],
  ['a failed call, and another one that made up for it', [FAILED, { text: 'Done.' }], 'COMPLETED'],
] as const) {
  test(`the run of ${title} is ${status}`, async (t) => {
    const stage = await openStage(t, answers)
    await stage.tacho.run(async () => {
      for (const _ of answers) {
        for await (const _ of streamText({ model: modelOf(stage), prompt: 'Act', ...quiet }).textStream);
      }
    })
    assert.equal((await outcomeOf(stage)).status, status)
  })
}

/** A server with this one route. */
async function serve(t: TestContext, route: Parameters<typeof createServer>[1] & {}): Promise<string> {
  const server = createServer(route).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('a route that pipes its answer in withRun: the run ends with the answer', async (t) => {
  const stage = await openStage(t, [{ text: 'Hello there.' }])
  const url = await serve(t, (_request, response) => {
    void stage.tacho.withRun(() => {
      const { stream } = streamText({ model: modelOf(stage), prompt: 'Act', ...quiet })
      void pipeUIMessageStreamToResponse({ response, stream: toUIMessageStream({ stream }) })
    })
  })
  assert.match(await (await fetch(url)).text(), /Hell/)
  const { status, types } = await outcomeOf(stage)
  assert.deepEqual([status, types], ['COMPLETED', ['LLM_CALL', 'SESSION_OUTCOME']])
})

test('a call that its run was ended before says so', async (t) => {
  const stage = await openStage(t, [{ text: 'Done.' }])
  const client = recordClient(new OpenAI({ apiKey: 'key', baseURL: `${stage.model.url}/v1` }), stage.tacho)
  const run = stage.tacho.startRun()
  const asked = run.within(() =>
    client.chat.completions.create({ model: 'gpt-5', messages: [{ role: 'user', content: 'Act' }] }).then(String),
  )
  run.end()
  await asked
  await stage.fake.assertEvent('LLM_CALL', { outlivedRun: true, finishReason: 'stop' })
})

for (const stream of [false, true]) {
  test(`asResponse${stream ? ', streamed' : ''}: the answer is recorded as the host reads it`, async (t) => {
    const stage = await openStage(t, [{ text: 'Hello there.' }])
    const messages = [{ role: 'user' as const, content: 'Act' }]
    const openai = recordClient(new OpenAI({ apiKey: 'key', baseURL: `${stage.model.url}/v1` }), stage.tacho)
    const anthropic = recordAnthropic(new Anthropic({ apiKey: 'key', baseURL: stage.model.url }), stage.tacho)
    await stage.tacho.run(async () => {
      const chat = await openai.chat.completions.create({ model: 'gpt-5', messages, stream }).asResponse()
      assert.ok(chat instanceof Response)
      assert.match(await chat.text(), /Hell/)
      const message = await anthropic.messages.create({ model: 'claude', max_tokens: 9, messages, stream }).asResponse()
      assert.match(await message.text(), /Hell/)
      const both = await openai.chat.completions.create({ model: 'gpt-5', messages }).withResponse()
      assert.equal(both.data.choices[0]?.message.content, 'Hello there.')
    })
    const calls = (await stage.fake.events()).filter(({ eventType }) => eventType === 'LLM_CALL')
    const contents = calls.map(({ payload }) => (payload['output'] as { content: unknown }).content)
    assert.deepEqual(contents, ['Hello there.', 'Hello there.', 'Hello there.'])
  })
}

test('a body that nobody reads, as for HEAD, cancels its run after 10 seconds', async (t) => {
  const { timer } = hostRuntime
  t.mock.method(hostRuntime, 'timer', (ms: number, act: () => void, hold?: boolean) =>
    timer(ms === 10_000 && !hold ? 20 : ms, act, hold),
  )
  const stage = await openStage(t, [{ text: 'Hello there.' }])
  await stage.tacho.run(() => {
    stage.tacho.record({ type: 'NOTE', label: 'asked' })
    return streamText({ model: modelOf(stage), prompt: 'Act', ...quiet }).toTextStreamResponse()
  })
  await delay(100)
  assert.equal((await outcomeOf(stage)).status, 'CANCELLED')
})
