/** `@tacho/sdk/openai-agents` with the real OpenAI Agents. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Agent, OpenAIProvider, Runner, setTraceProcessors, tool } from '@openai/agents'
import { guardTool, recordTraces } from '@tacho/sdk/openai-agents'
import { z } from 'zod'
import { assertScene, DONE, startScene, THREE_REFUNDS, type Scene } from './scene.ts'

function agentOf({ fake, refund }: Scene) {
  const refundTool = guardTool(
    tool,
    fake.tacho,
  )({
    name: 'refund',
    description: 'Refunds an order',
    parameters: z.object({ order: z.number() }),
    execute: async ({ order }) => refund(order),
  })
  return new Agent({ name: 'Refunds', model: 'gpt-5', tools: [refundTool] })
}

const runnerOf = ({ model }: Scene, useResponses = true) =>
  new Runner({ modelProvider: new OpenAIProvider({ apiKey: 'key', baseURL: `${model.url}/v1`, useResponses }) })

for (const [name, useResponses] of [
  ['responses', true],
  ['chat completions', false],
] as const) {
  test(`an agent on ${name}: calls are recorded, tools are guarded, a refusal is the output of the tool`, async (t) => {
    const scene = await startScene(t, THREE_REFUNDS, DONE)
    setTraceProcessors([recordTraces(scene.fake.tacho)])
    const runner = runnerOf(scene, useResponses)
    const { finalOutput } = await scene.fake.tacho.run(() => runner.run(agentOf(scene), 'Refund all'))
    assert.equal(finalOutput, DONE.text)
    await assertScene(scene)
  })
}

test('a stream is recorded like any other call, as a part of its agent', async (t) => {
  const scene = await startScene(t, THREE_REFUNDS, DONE)
  setTraceProcessors([recordTraces(scene.fake.tacho)])
  await scene.fake.tacho.run(async () => {
    const stream = await runnerOf(scene).run(agentOf(scene), 'Refund all', { stream: true })
    await stream.completed
  })
  await assertScene(scene)
  const steps = (await scene.fake.events()).filter(({ eventType }) => eventType === 'AGENT_STEP')
  // A span without a name is recorded under the name of its type.
  assert.deepEqual(
    ['agent Refunds', 'turn'].filter((label) => !steps.some((step) => step.label === label)),
    [],
  )
})

test('outside a run, a trace is a run of its own, with its group as session', async (t) => {
  const scene = await startScene(t, DONE)
  setTraceProcessors([recordTraces(scene.fake.tacho)])
  const runner = new Runner({
    modelProvider: new OpenAIProvider({ apiKey: 'key', baseURL: `${scene.model.url}/v1` }),
    groupId: 'conversation-7',
  })
  await runner.run(agentOf(scene), 'Refund all')
  const [run, ...others] = await scene.fake.runs()
  assert.deepEqual([run?.status, others.length, run?.events[0]?.sessionId], ['COMPLETED', 0, 'conversation-7'])
})

test('agents as tools in parallel: each guarded call hangs below its own agent', async (t) => {
  const ask = { text: 'I ask.', toolCalls: ['first', 'second'].map((name) => ({ name, input: { input: '?' } })) }
  const refund = (order: number) => ({ text: 'I refund.', toolCalls: [{ name: 'refund', input: { order } }] })
  const scene = await startScene(t, ask, refund(4), refund(5), DONE, DONE, DONE)
  setTraceProcessors([recordTraces(scene.fake.tacho)])
  const { tools } = agentOf(scene)
  const asTool = (name: string) =>
    new Agent({ name, model: 'gpt-5', tools }).asTool({
      toolName: name,
      toolDescription: 'Asks',
      runConfig: { modelProvider: runnerOf(scene).config.modelProvider },
    })
  const outer = new Agent({ name: 'Outer', model: 'gpt-5', tools: [asTool('first'), asTool('second')] })
  await scene.fake.tacho.run(() => runnerOf(scene).run(outer, 'Refund both'))
  const events = await scene.fake.events()
  const above = (spanId: unknown): string[] => {
    const around = events.find((event) => event.spanId === spanId && event.eventType === 'AGENT_STEP')
    return around ? [around.label, ...above(around.parentSpanId)] : []
  }
  const calls = events.filter(({ eventType, label }) => eventType === 'TOOL_CALL' && label === 'refund')
  assert.deepEqual(new Set(scene.refunded), new Set([4, 5]))
  const agents = calls.map(({ parentSpanId }) => above(parentSpanId).find((label) => label.startsWith('agent ')))
  assert.deepEqual(new Set(agents), new Set(['agent first', 'agent second']))
  assert.equal(agents.length, 2)
})
