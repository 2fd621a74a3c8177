/**
 * The scene that every integration must pass. A model calls three refunds at once: the first runs, a policy blocks the second,
 * and a person approves the third. Then the model answers.
 */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { inputHash } from '@tacho/policy/input/input-hash.ts'
import { fakeTacho, type FakeTacho } from '@tacho/sdk/testing'
import { hostRuntime } from '../../sdk/src/delivery/runtime.ts'
import { inTurn, startModelServer, type Answer, type ModelServer } from '../src/model-server.ts'

// A slow machine must not count as a late start.
hostRuntime.lateStartMs = Infinity

const policy = (policyId: string, condition: string, action: 'BLOCK' | 'REQUIRE_APPROVAL') => ({
  policyId,
  name: policyId,
  version: '1',
  condition,
  severity: 'HIGH' as const,
  action,
})

const POLICIES = [
  policy('no-second', 'tool.name.endsWith("refund") && tool.input.order == 2.0', 'BLOCK'),
  policy('ask-third', 'tool.name.endsWith("refund") && tool.input.order == 3.0', 'REQUIRE_APPROVAL'),
]

/** The answer with the three calls. `name`: the tool. */
export function threeRefunds(name: string): Answer {
  return { text: 'I refund.', toolCalls: [1, 2, 3].map((order) => ({ name, input: { order } })) }
}
export const THREE_REFUNDS = threeRefunds('refund')
/** A call for a second turn. */
export const FOURTH: Answer = { text: 'One more.', toolCalls: [{ name: 'refund', input: { order: 4 } }] }
export const DONE: Answer = { text: 'Two of three are refunded.' }

export interface Scene {
  fake: FakeTacho
  model: ModelServer
  /** The tool's own code; keeps its calls. */
  refund(order: number): { refunded: number }
  refunded: number[]
}

/** Starts a scene, which closes after the test. */
export async function startScene(t: TestContext, ...answers: Answer[]): Promise<Scene> {
  const model = await startModelServer(inTurn(...answers))
  const fake = fakeTacho({
    agentName: 'Refunds',
    deployedPolicies: POLICIES,
    approvals: 'approve',
  })
  await fake.tacho.configuration.ready()
  t.after(async () => {
    await fake.close()
    await model.close()
  })
  const refunded: number[] = []
  return {
    fake,
    model,
    refunded,
    refund(order) {
      refunded.push(order)
      return { refunded: order }
    },
  }
}

/** Asserts that the whole scene is recorded, and that the model got the reason why one call did not run. */
export async function assertScene(
  { fake, model, refunded }: Scene,
  {
    toolName: expectedName = 'refund',
    hasCallIds = true,
    ...expected
  }: {
    provider?: string
    toolName?: string
    /** Whether a tool gets the model's id of the call. */ hasCallIds?: boolean
  } = {},
): Promise<void> {
  assert.deepEqual(
    refunded.toSorted((a, b) => a - b),
    [1, 3],
  )
  const told = JSON.stringify(model.requests[1]?.body)
  assert.match(told, /refund was not run\. A policy forbids this call/)
  const events = await fake.events()
  const of = (type: string) => events.filter(({ eventType }) => eventType === type)
  const [run, ...otherRuns] = await fake.runs()
  assert.deepEqual([run?.status, otherRuns], ['COMPLETED', []])
  const [first, second, ...more] = of('LLM_CALL')
  assert.equal(more.length, 0)
  const usage = { promptTokens: 20, completionTokens: 10, cachedTokens: 5 }
  assert.partialDeepStrictEqual(first?.payload, {
    usage,
    ...expected,
    messages: [{ role: 'user', content: 'Refund all' }],
  })
  assert.partialDeepStrictEqual(first?.payload['output'], { role: 'assistant', content: 'I refund.' })
  const calls = first?.payload['output'] as
    | { toolCalls: { id?: unknown; name: string; arguments: unknown }[] }
    | undefined
  assert.deepEqual(
    calls?.toolCalls.map(({ name, arguments: input }) => [name, input]),
    [1, 2, 3].map((order) => [expectedName, { order }]),
  )
  const [approval, ...others] = await fake.approvals()
  // The model's id of the call distinguishes its approval from others with the same input, even in the next process.
  const third = calls?.toolCalls.find(({ arguments: input }) => (input as { order: number }).order === 3)
  const asked = [run?.runId, expectedName, approval?.inputHash, 'ask-third', '1', hasCallIds ? third?.id : 0]
  assert.deepEqual([approval?.clientRequestId, others], [inputHash('approval', asked), []])
  assert.equal(typeof first?.payload['latency'], 'number')
  assert.partialDeepStrictEqual(second?.payload, { output: { role: 'assistant', content: DONE.text } })
  const messages = (second?.payload['messages'] ?? []) as { role: string; toolCallId?: unknown }[]
  const results = messages.filter(({ role }) => role === 'tool')
  assert.equal(new Set(results.map(({ toolCallId }) => toolCallId)).size, 3, 'one message for each result')
  assert.deepEqual(
    of('TOOL_CALL')
      .map(({ payload: { toolName, input, output } }) => ({
        toolName,
        input,
        // Tools of Anthropic and LangChain return a text.
        output: typeof output === 'string' ? (JSON.parse(output) as unknown) : output,
      }))
      .toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b))),
    [1, 3].map((order) => ({ toolName: expectedName, input: { order }, output: { refunded: order } })),
  )
  assert.deepEqual((await fake.decisions()).map(({ action }) => action).toSorted(), ['BLOCK', 'REQUIRE_APPROVAL'])
  const spans = new Set(events.map(({ spanId }) => spanId))
  const root = events.find(({ eventType }) => eventType === 'SESSION_OUTCOME')?.spanId
  for (const call of of('LLM_CALL')) assert.notEqual(call.spanId, root)
  for (const { eventType, parentSpanId } of events) {
    if (eventType !== 'SESSION_OUTCOME') assert.ok(spans.has(String(parentSpanId)), `${eventType} nests`)
  }
}

/** The only model call. */
export async function onlyCall({ fake }: Scene) {
  const calls = (await fake.events()).filter(({ eventType }) => eventType === 'LLM_CALL')
  assert.equal(calls.length, 1)
  return (calls[0]?.payload ?? {}) as Record<string, unknown>
}
