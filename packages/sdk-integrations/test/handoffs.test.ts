/** What another agent of a run does names it, and the hand-over is an event. Several candidates of an answer stay apart. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ToolMessage } from '@langchain/core/messages'
import { Command, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph'
import { ChatOpenAI } from '@langchain/openai'
import { Agent, OpenAIProvider, Runner, setTraceProcessors, tool } from '@openai/agents'
import * as langchain from '@tacho/sdk/langchain'
import * as openai from '@tacho/sdk/openai'
import * as agents from '@tacho/sdk/openai-agents'
import { createAgent, tool as langchainTool } from 'langchain'
import OpenAI from 'openai'
import { z } from 'zod'
import { startScene, type Scene } from './scene.ts'

type Told = readonly [type: string, agent: unknown, more?: unknown]

async function told({ fake }: Scene): Promise<Told[]> {
  const events = await fake.events()
  return events.flatMap(({ eventType, payload }): Told[] => {
    if (eventType === 'LLM_CALL') return [[eventType, payload['agent']]]
    if (eventType === 'HANDOFF')
      return [[eventType, payload['agent'], [payload['from'], payload['to'], payload['toolCallId']]]]
    return eventType === 'TOOL_CALL' ? [[eventType, payload['agent'], payload['toolName']]] : []
  })
}

const HANDED_OVER: Told[] = [
  ['LLM_CALL', undefined],
  ['HANDOFF', undefined, ['Triage', 'Billing', 'call_1_0']],
  ['LLM_CALL', 'Billing'],
  ['TOOL_CALL', 'Billing', 'refund'],
  ['LLM_CALL', 'Billing'],
]

for (const stream of [false, true]) {
  test(`OpenAI Agents${stream ? ', streamed' : ''}: a hand-off is an event, and what follows names the agent`, async (t) => {
    const scene = await startScene(
      t,
      { toolCalls: [{ name: 'transfer_to_Billing', input: {} }] },
      { toolCalls: [{ name: 'refund', input: { order: 1 } }] },
      { text: 'Done.' },
    )
    const { tacho } = scene.fake
    setTraceProcessors([agents.recordTraces(tacho)])
    const refund = agents.guardTool(
      tool,
      tacho,
    )({
      name: 'refund',
      description: 'Refunds',
      parameters: z.object({ order: z.number() }),
      execute: async ({ order }) => scene.refund(order),
    })
    const billing = new Agent({ name: 'Billing', model: 'gpt-5', tools: [refund] })
    const triage = new Agent({ name: 'Triage', model: 'gpt-5', handoffs: [billing] })
    const modelProvider = new OpenAIProvider({ apiKey: 'key', baseURL: `${scene.model.url}/v1`, useResponses: false })
    const runner = new Runner({ modelProvider })
    await tacho.run(async () => {
      if (stream) await (await runner.run(triage, 'Refund 1', { stream })).completed
      else await runner.run(triage, 'Refund 1')
    })
    assert.deepEqual(await told(scene), HANDED_OVER)
    assert.deepEqual(scene.refunded, [1])
  })
}

test('LangGraph: a transfer tool hands over, and what follows names the agent', async (t) => {
  const scene = await startScene(
    t,
    { toolCalls: [{ name: 'transfer_to_billing', input: {} }] },
    { toolCalls: [{ name: 'refund', input: { order: 1 } }] },
    { text: 'Done.' },
  )
  const { tacho } = scene.fake
  const configuration = { baseURL: `${scene.model.url}/v1` }
  const model = new ChatOpenAI({ model: 'gpt-5', apiKey: 'key', maxRetries: 0, configuration })
  const transfer = langchainTool(
    (_: object, { toolCallId }: { toolCallId: string }) => {
      const answer = new ToolMessage({ content: 'Transferred.', tool_call_id: toolCallId })
      return new Command({ goto: 'billing', graph: Command.PARENT, update: { messages: [answer] } })
    },
    { name: 'transfer_to_billing', description: 'Hands over', schema: z.object({}) },
  )
  const refund = langchainTool(({ order }: { order: number }) => JSON.stringify(scene.refund(order)), {
    name: 'refund',
    description: 'Refunds',
    schema: z.object({ order: z.number() }),
  })
  const triage = createAgent({ model, name: 'triage', tools: langchain.guardTools([transfer], tacho) })
  const billing = createAgent({ model, name: 'billing', tools: langchain.guardTools([refund], tacho) })
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('triage', triage.graph, { ends: ['billing'] })
    .addNode('billing', billing.graph)
    .addEdge(START, 'triage')
    .compile()
  await tacho.run(() =>
    graph.invoke({ messages: [{ role: 'user', content: 'Refund 1' }] }, { callbacks: [langchain.recordCalls(tacho)] }),
  )
  const events = await told(scene)
  assert.deepEqual(events, [
    ['LLM_CALL', undefined],
    ['TOOL_CALL', undefined, 'transfer_to_billing'],
    ['HANDOFF', undefined, ['triage', 'billing', 'call_1_0']],
    ['LLM_CALL', 'billing'],
    ['TOOL_CALL', 'billing', 'refund'],
    ['LLM_CALL', 'billing'],
  ])
  assert.deepEqual(scene.refunded, [1])
})

const call = (id: string, text: string) => ({ id, type: 'function', function: { name: 'refund', arguments: text } })
/** The second candidate was cut. */
const CHOICES = [
  { content: 'First.', calls: [call('a', '{"order":1}')], reason: 'tool_calls' },
  { content: 'Second.', calls: [call('b', '{"order":2')], reason: 'length' },
]

function answerOf(stream: boolean): Response {
  const base = { id: 'x', created: 1, model: 'gpt-5', object: stream ? 'chat.completion.chunk' : 'chat.completion' }
  if (!stream) {
    const choices = CHOICES.map(({ content, calls, reason }, index) => ({
      index,
      message: { role: 'assistant', content, tool_calls: calls },
      finish_reason: reason,
    }))
    return Response.json({ ...base, choices })
  }
  // Pieces of the candidates alternate.
  const deltas = [
    ...CHOICES.map(({ content }, index) => ({ index, delta: { role: 'assistant', content } })),
    ...CHOICES.map(({ calls }, index) => ({
      index,
      delta: { tool_calls: calls.map((one) => ({ ...one, index: 0 })) },
    })),
    ...CHOICES.map(({ reason }, index) => ({ index, delta: {}, finish_reason: reason })),
  ]
  const lines = deltas.map((choice) => `data: ${JSON.stringify({ ...base, choices: [choice] })}\n\n`)
  return new Response(`${lines.join('')}data: [DONE]\n\n`, { headers: { 'content-type': 'text/event-stream' } })
}

for (const stream of [false, true]) {
  test(`OpenAI${stream ? ', streamed' : ''}: the texts and calls of several candidates stay apart`, async (t) => {
    const scene = await startScene(t, {})
    const { tacho } = scene.fake
    const client = openai.recordClient(new OpenAI({ apiKey: 'key', fetch: async () => answerOf(stream) }), tacho)
    await tacho.run(async () => {
      const body = { model: 'gpt-5', n: 2, messages: [{ role: 'user' as const, content: 'Refund' }] }
      if (stream) for await (const _ of await client.chat.completions.create({ ...body, stream }));
      else await client.chat.completions.create(body)
    })
    const [recorded] = (await scene.fake.events()).filter(({ eventType }) => eventType === 'LLM_CALL')
    assert.partialDeepStrictEqual(recorded?.payload, {
      output: [
        { content: 'First.', toolCalls: [{ id: 'a', arguments: { order: 1 } }] },
        { content: 'Second.', toolCalls: [{ id: 'b', arguments: '{"order":2' }] },
      ],
      finishReason: 'tool_calls',
    })
    assert.deepEqual(recorded?.payload['toolCalls'], [
      { id: 'a', name: 'refund' },
      { id: 'b', name: 'refund', arguments: '{"order":2', problem: 'cut' },
    ])
  })
}
