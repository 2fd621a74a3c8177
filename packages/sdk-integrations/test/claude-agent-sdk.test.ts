/**
 * `@tacho/sdk/claude-agent-sdk`. The binary of Claude Code has 364 MB, so most tests use a script of its messages and hooks.
 * Tests with the real binary need TACHO_TEST_FRAMEWORKS=1.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { inputHash } from '@tacho/policy/input/input-hash.ts'
import { guardQuery } from '@tacho/sdk/claude-agent-sdk'
import type * as Zod from 'zod'
import { CALL_COST, claudeCode, type Message, type QueryOptions } from '../src/claude-code.ts'
import { largePackages } from './large-packages.ts'
import { assertScene, DONE, onlyCall, startScene, threeRefunds, type Scene } from './scene.ts'

const TOOL = 'mcp__shop__refund'
const REFUNDS = threeRefunds(TOOL)
const { skip: withoutSdk, load } = largePackages(
  '430 MB',
  '@anthropic-ai/claude-agent-sdk@0.3.330',
  '@anthropic-ai/sdk@1.12.0',
  'zod@4.6.7',
)

type Query = (given: { prompt: string; options?: QueryOptions }) => AsyncGenerator<Message, void>

const scripted = ({ model, refund }: Scene): Query =>
  claudeCode(model.url, (_name, { order }) => JSON.stringify(refund(Number(order))))

interface RealSdk {
  query(given: { prompt: string; options: object }): AsyncGenerator<Message, void>
  createSdkMcpServer(given: object): unknown
  tool(name: string, description: string, input: object, act: (input: { order: number }) => Promise<unknown>): unknown
}

/** Starts the real Claude Code with an empty home directory and only the tool of the scene. */
async function real(t: TestContext, { model, refund }: Scene): Promise<Query> {
  const sdk = (await load('@anthropic-ai/claude-agent-sdk')) as RealSdk
  const { z } = (await load('zod')) as typeof Zod
  const home = mkdtempSync(path.join(tmpdir(), 'tacho-claude-'))
  t.after(() => rmSync(home, { recursive: true, force: true }))
  const refundTool = sdk.tool('refund', 'Refunds an order', { order: z.number() }, async ({ order }) => ({
    content: [{ type: 'text', text: JSON.stringify(refund(order)) }],
  }))
  const settings = {
    cwd: home,
    env: {
      PATH: process.env['PATH'],
      HOME: home,
      CLAUDE_CONFIG_DIR: home,
      ANTHROPIC_BASE_URL: model.url,
      ANTHROPIC_API_KEY: 'key',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    },
    model: 'claude-opus-5-5',
    tools: [],
    settingSources: [],
    mcpServers: { shop: sdk.createSdkMcpServer({ name: 'shop', tools: [refundTool] }) },
    allowedTools: [TOOL],
  }
  return ({ prompt, options }) => sdk.query({ prompt, options: { ...settings, ...options } })
}

async function consume(messages: AsyncIterable<Message>): Promise<Message[]> {
  const found: Message[] = []
  for await (const message of messages) found.push(message)
  return found
}

const KINDS = [
  ['a script of the SDK', false],
  ['the real SDK', withoutSdk],
] as const

for (const [kind, skip] of KINDS) {
  const start = async (t: TestContext, scene: Scene) =>
    guardQuery(kind === 'the real SDK' ? await real(t, scene) : scripted(scene), scene.fake.tacho)

  test(`${kind}: calls are recorded, tools are guarded, a refusal is a tool error`, { skip }, async (t) => {
    const scene = await startScene(t, REFUNDS, DONE)
    const query = await start(t, scene)
    const messages = await scene.fake.tacho.run(() => consume(query({ prompt: 'Refund all' })))
    await assertScene(scene, { provider: 'anthropic', toolName: TOOL })
    assert.ok(!messages.some(({ type }) => type === 'stream_event'), 'the host did not ask for events of the stream')
    const events = await scene.fake.events()
    const of = (type: string) => events.filter(({ eventType }) => eventType === type).map(({ payload }) => payload)
    assert.deepEqual(of('USER_INPUT'), [{ text: 'Refund all' }])
    const [first, second] = of('LLM_CALL')
    assert.equal(typeof first?.['timeToFirstOutput'], 'number')
    const cost = messages.find(({ type }) => type === 'result')?.['total_cost_usd']
    assert.deepEqual([first?.['cost'], second?.['cost']], [0, cost], 'none is estimated in addition')
    assert.ok(of('TOOL_CALL').every(({ latency }) => typeof latency === 'number'))
    assert.ok(of('TOOL_CALL').some(({ approvalId }) => typeof approvalId === 'string'))
  })

  test(`${kind}: outside a run, a query is a run of its own, with its session`, { skip }, async (t) => {
    const scene = await startScene(t, DONE)
    const query = await start(t, scene)
    const [first] = await consume(query({ prompt: 'Hello', options: { includePartialMessages: true } }))
    const [run, ...others] = await scene.fake.runs()
    assert.deepEqual([run?.status, others.length, run?.events[0]?.sessionId], ['COMPLETED', 0, first?.['session_id']])
    assert.partialDeepStrictEqual(await onlyCall(scene), { finishReason: 'end_turn', output: { content: DONE.text } })
  })

  test(`${kind}: a query that the host leaves is cancelled`, { skip }, async (t) => {
    const scene = await startScene(t, { text: 'A long answer that is not read to its end' })
    const query = await start(t, scene)
    for await (const { type } of query({ prompt: 'Hello' })) if (type === 'assistant') break
    const [run] = await scene.fake.runs()
    assert.equal(run?.status, 'CANCELLED')
    assert.partialDeepStrictEqual(await onlyCall(scene), { finishReason: 'aborted' })
  })

  test(`${kind}: a hook of the host that changes the input does not get around a policy`, { skip }, async (t) => {
    const scene = await startScene(t, { toolCalls: [{ name: TOOL, input: { order: 1 } }] }, DONE)
    const query = await start(t, scene)
    const change = async () => ({
      hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'allow', updatedInput: { order: 2 } },
    })
    await consume(query({ prompt: 'Refund', options: { hooks: { PreToolUse: [{ hooks: [change] }] } } }))
    assert.deepEqual(scene.refunded, [])
  })
}

test('a call that a person declines after the decision never ran, and opens no issue', async (t) => {
  const scene = await startScene(t, { toolCalls: [{ name: TOOL, input: { order: 1 } }] }, DONE)
  const decline = async () => ({
    hookSpecificOutput: {
      hookEventName: 'PermissionRequest',
      decision: { behavior: 'deny', message: 'Too expensive' },
    },
  })
  const query = guardQuery(scripted(scene), scene.fake.tacho)
  await consume(query({ prompt: 'Refund', options: { hooks: { PermissionRequest: [{ hooks: [decline] }] } } }))
  const { payload } = await scene.fake.assertEvent('TOOL_CALL', { outcome: 'never_ran', reasonCode: 'declined' })
  assert.deepEqual(payload['error'], { message: 'Too expensive' })
  assert.equal(typeof payload['toolCallId'], 'string')
  assert.deepEqual([scene.refunded, await scene.fake.issues()], [[], []])
})

test('hooks that see the same input of one tool use share the decision: a person is asked once', async (t) => {
  const scene = await startScene(t, { toolCalls: [{ name: TOOL, input: { order: 3 } }] }, DONE)
  const same = async () => ({
    hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'allow', updatedInput: { order: 3 } },
  })
  const query = guardQuery(scripted(scene), scene.fake.tacho)
  await consume(query({ prompt: 'Refund', options: { hooks: { PreToolUse: [{ hooks: [same] }] } } }))
  assert.deepEqual([scene.refunded, (await scene.fake.approvals()).length], [[3], 1])
})

test('a permission function of the host that changes the input does not get around a policy', async (t) => {
  const { fake } = await startScene(t)
  const allow = (order: number) => async () => ({ behavior: 'allow', updatedInput: { order } })
  const ask = async (order: number) => {
    let asked: { canUseTool(name: string, input: object, options: object): Promise<unknown> } | undefined
    const capture = (given: { prompt: string; options: object }) => {
      asked = given.options as typeof asked
      return (async function* () {})()
    }
    guardQuery(capture, fake.tacho)({ prompt: 'Refund', options: { canUseTool: allow(order) } })
    return await asked?.canUseTool(TOOL, { order: 1 }, { toolUseID: 'toolu_1', signal: new AbortController().signal })
  }
  assert.deepEqual(await ask(4), { behavior: 'allow', updatedInput: { order: 4 } })
  assert.partialDeepStrictEqual(await ask(2), { behavior: 'deny' })
})

test('an approval does not count for the input that a hook of the settings makes of it', async (t) => {
  const scene = await startScene(t, { toolCalls: [{ name: TOOL, input: { order: 3 } }] }, DONE)
  const ran: unknown[] = []
  const changing = claudeCode(scene.model.url, (_name, input) => `ran ${ran.push(input)}`, {
    changeInput: ({ order }) => ({ order: Number(order) + 1 }),
  })
  await consume(guardQuery(changing, scene.fake.tacho)({ prompt: 'Refund' }))
  assert.deepEqual(ran, [{ order: 4 }], 'Claude Code runs it without asking')
  const [approval] = await scene.fake.approvals()
  const facts = { inputHash: inputHash(TOOL, { order: 4 }), approvalId: approval?.id }
  // The service compares this hash with the hash of the approval, and reports that they differ.
  await scene.fake.assertEvent('TOOL_CALL', { input: { order: 4 }, ...facts })
  assert.notEqual(approval?.inputHash, facts.inputHash)
  await scene.fake.assertEvent('ERROR', {
    code: 'changed_after_approval',
    toolName: TOOL,
    judgedInputHash: approval?.inputHash,
    ...facts,
  })
  const [issue] = await scene.fake.issues()
  assert.partialDeepStrictEqual(issue, {
    detectionType: 'INPUT_CHANGED',
    payload: { toolName: TOOL, reasonCode: 'changed_after_approval' },
    evidence: facts,
  })
})

test('a tool whose hook is not called is noticed', async (t) => {
  const scene = await startScene(t, { toolCalls: [{ name: TOOL, input: { order: 2 } }] }, DONE)
  const settings = { disableAllHooks: true }
  const query = claudeCode(scene.model.url, (_name, { order }) => JSON.stringify(scene.refund(Number(order))), settings)
  await consume(guardQuery(query, scene.fake.tacho)({ prompt: 'Refund' }))
  assert.deepEqual(scene.refunded, [2])
  await scene.fake.assertEvent('ERROR', { code: 'not_judged', toolName: TOOL })
  assert.deepEqual(
    (await scene.fake.issues()).map(({ detectionType, payload }) => [detectionType, payload['reasonCode']]),
    [['TOOL_NOT_JUDGED', 'not_judged']],
  )
})

test('a tool that fails is recorded with its error, and the cost of the turn with its last call', async (t) => {
  const scene = await startScene(t, { toolCalls: [{ name: TOOL, input: { order: 7 } }] }, DONE)
  const failing = claudeCode(scene.model.url, () => {
    throw new Error('no such order')
  })
  await consume(guardQuery(failing, scene.fake.tacho)({ prompt: 'Refund' }))
  const call = (await scene.fake.events()).find(({ eventType }) => eventType === 'TOOL_CALL')
  assert.partialDeepStrictEqual(call?.payload, { error: 'no such order', latency: 21 })
  assert.deepEqual(await costs(scene), [0, 2 * CALL_COST])
})

test('a query that fails stays the same error, and its run failed', async (t) => {
  const scene = await startScene(t, { status: 400 })
  const query = guardQuery(scripted(scene), scene.fake.tacho)
  await assert.rejects(consume(query({ prompt: 'Hello' })), /The script says no/)
  assert.equal((await scene.fake.runs())[0]?.status, 'FAILED')
  assert.match(String((await onlyCall(scene))['error']), /The script says no/)
})

/** The costs of the model calls that have one. */
async function costs({ fake }: Scene): Promise<unknown[]> {
  const calls = (await fake.events()).filter(({ eventType }) => eventType === 'LLM_CALL')
  return calls.map(({ payload }) => payload['cost']).filter((cost) => cost !== undefined)
}
