/** `@tacho/sdk/langchain` with the real LangChain and LangGraph. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { InMemoryCache } from '@langchain/core/caches'
import { AIMessage } from '@langchain/core/messages'
import { interrupt, MemorySaver, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph'
import { ToolNode } from '@langchain/langgraph/prebuilt'
import { ChatOpenAI } from '@langchain/openai'
import { guardTools, recordCalls } from '@tacho/sdk/langchain'
import { createAgent, tool } from 'langchain'
import { z } from 'zod'
import { assertScene, DONE, onlyCall, startScene, THREE_REFUNDS, type Scene } from './scene.ts'

process.env['LANGSMITH_TRACING'] = 'false'

const modelOf = ({ model }: Scene, options: { cache?: InMemoryCache } = {}) =>
  new ChatOpenAI({
    ...options,
    model: 'gpt-5',
    apiKey: 'key',
    maxRetries: 0,
    configuration: { baseURL: `${model.url}/v1` },
  })

const toolsOf = ({ fake, refund }: Scene) =>
  guardTools(
    [
      tool(async ({ order }) => JSON.stringify(refund(order)), {
        name: 'refund',
        description: 'Refunds an order',
        schema: z.object({ order: z.number() }),
      }),
    ],
    fake.tacho,
  )

const INPUT = { messages: [{ role: 'user' as const, content: 'Refund all' }] }

test('an agent: calls are recorded, tools are guarded, a refusal is an answer', async (t) => {
  const scene = await startScene(t, THREE_REFUNDS, DONE)
  const agent = createAgent({ model: modelOf(scene), tools: toolsOf(scene) })
  const callbacks = [recordCalls(scene.fake.tacho)]
  const { messages } = await scene.fake.tacho.run(() => agent.invoke(INPUT, { callbacks }))
  assert.equal(messages.at(-1)?.text, DONE.text)
  await assertScene(scene)
})

test('a stream is recorded whole, with the time to its first output', async (t) => {
  const scene = await startScene(t, THREE_REFUNDS)
  const callbacks = [recordCalls(scene.fake.tacho)]
  await scene.fake.tacho.run(async () => {
    for await (const _ of await modelOf(scene).stream('Refund all', { callbacks }));
  })
  const call = await onlyCall(scene)
  assert.partialDeepStrictEqual(call, {
    output: { role: 'assistant', content: 'I refund.' },
    usage: { promptTokens: 20, completionTokens: 10, cachedTokens: 5 },
  })
  assert.equal((call['output'] as { toolCalls: unknown[] }).toolCalls.length, 3)
  assert.equal(typeof call['timeToFirstOutput'], 'number')
})

test('outside a run, the outermost chain is a run of its own, with its guarded tools', async (t) => {
  const scene = await startScene(t, THREE_REFUNDS, DONE)
  const agent = createAgent({ model: modelOf(scene), tools: toolsOf(scene) })
  await agent.invoke(INPUT, { callbacks: [recordCalls(scene.fake.tacho)] })
  await assertScene(scene)
})

test('a tool that is not guarded is recorded too, and guarded tools work in a ToolNode', async (t) => {
  const scene = await startScene(t, DONE)
  const plain = tool(() => 'sunny', { name: 'weather', description: 'Weather', schema: z.object({}) })
  const node = new ToolNode([plain, ...toolsOf(scene)])
  const call = (name: string, args: object) => ({ type: 'tool_call' as const, id: name, name, args })
  const message = new AIMessage({ content: '', tool_calls: [call('weather', {}), call('refund', { order: 2 })] })
  const callbacks = [recordCalls(scene.fake.tacho)]
  await scene.fake.tacho.run(() => node.invoke({ messages: [message] }, { callbacks }))
  const tools = (await scene.fake.events()).filter(({ eventType }) => eventType === 'TOOL_CALL')
  assert.deepEqual(
    tools.map(({ payload: { toolName, output } }) => [toolName, output]),
    [['weather', 'sunny']],
  )
  assert.equal((await scene.fake.decisions()).length, 1)
})

test('an error of the model stays the same error, and is recorded', async (t) => {
  const scene = await startScene(t, { status: 400 })
  const callbacks = [recordCalls(scene.fake.tacho)]
  await assert.rejects(
    scene.fake.tacho.run(() => modelOf(scene).invoke('Refund all', { callbacks })),
    /The script says no/,
  )
  assert.match(String((await onlyCall(scene))['error']), /The script says no/)
})

test('what is no tool of LangChain is refused, and never runs unguarded', async (t) => {
  const scene = await startScene(t, DONE)
  const loose = { name: 'refund', func: () => 'ran', invoke: () => 'ran' }
  assert.throws(() => guardTools([loose], scene.fake.tacho), TypeError)
})

test('nodes of a graph are recorded, what they call below them; a failure says why the run failed', async (t) => {
  const scene = await startScene(t, DONE)
  const weather = tool(() => 'sunny', { name: 'weather', description: 'Weather', schema: z.object({}) })
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('look', async (_state, config) => ({ messages: [new AIMessage(await weather.invoke({}, config))] }))
    .addNode('pay', () => {
      throw new TypeError('no money', { cause: new Error('the bank is closed') })
    })
    .addEdge(START, 'look')
    .addEdge('look', 'pay')
    .compile()
  await assert.rejects(graph.invoke({ messages: [] }, { callbacks: [recordCalls(scene.fake.tacho)] }), /no money/)
  const events = await scene.fake.events()
  assert.deepEqual(
    events.map(({ eventType, label }) => `${eventType} ${label}`),
    ['TOOL_CALL weather', 'AGENT_STEP look', 'AGENT_STEP pay', 'SESSION_OUTCOME failed'],
  )
  const [call, look, pay, end] = events
  assert.ok(call && look && pay && end)
  assert.equal(call.parentSpanId, look.spanId)
  assert.equal(pay.payload['error'], 'TypeError: no money')
  for (const { payload } of [pay, end]) {
    const { type, causes } = payload['exception'] as { type: string; causes: unknown }
    assert.deepEqual([type, causes], ['TypeError', [{ type: 'Error', message: 'the bank is closed' }]])
  }
})

test('a graph that pauses has not failed', async (t) => {
  const scene = await startScene(t, DONE)
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('ask', () => ({ messages: [new AIMessage(String(interrupt('Refund?')))] }))
    .addEdge(START, 'ask')
    .compile({ checkpointer: new MemorySaver() })
  const callbacks = [recordCalls(scene.fake.tacho)]
  await scene.fake.tacho.run(() => graph.invoke({ messages: [] }, { callbacks, configurable: { thread_id: 'x' } }))
  const [ask] = await scene.fake.events()
  assert.partialDeepStrictEqual(ask, { eventType: 'AGENT_STEP', label: 'ask', payload: { paused: 'GraphInterrupt' } })
  assert.ok(ask && !('error' in ask.payload))
})

test("an answer of LangChain's cache is recorded, and says that no sum counts it", async (t) => {
  const scene = await startScene(t, DONE)
  const callbacks = [recordCalls(scene.fake.tacho)]
  const model = modelOf(scene, { cache: new InMemoryCache() })
  await scene.fake.tacho.run(async () => {
    for (let times = 0; times < 2; times++) await model.invoke('Refund all', { callbacks })
  })
  const calls = (await scene.fake.events()).filter(({ eventType }) => eventType === 'LLM_CALL')
  assert.deepEqual(
    calls.map(({ payload }) => payload?.['notCounted']),
    [undefined, 'cache'],
  )
})
