/** The API that hosts use: the overloads of `run`, `span` and `record`, times of calls, incoming and outgoing trace ids. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as sdk from '../src/index.ts'
import * as ai from '../src/integrations/ai.ts'
import * as anthropic from '../src/integrations/anthropic.ts'
import * as claudeAgentSdk from '../src/integrations/claude-agent-sdk.ts'
import * as langchain from '../src/integrations/langchain.ts'
import * as mastra from '../src/integrations/mastra.ts'
import * as openai from '../src/integrations/openai.ts'
import * as openaiAgents from '../src/integrations/openai-agents.ts'
import * as record from '../src/record.ts'
import * as testing from '../src/testing/fake-tacho.ts'
import { acceptAll, simulate } from './simulation.ts'

const { Tacho } = sdk

function client() {
  const simulation = simulate(acceptAll)
  const options = { apiKey: 'key', baseUrl: 'http://tacho.test', compression: 'never' } as const
  const tacho = new Tacho({ ...options, onDiagnostic: () => undefined }, simulation.runtime)
  const events = async () => {
    await simulation.pass(2_000)
    return simulation.requests.flatMap((request) => request.events)
  }
  return { ...simulation, tacho, events, now: () => simulation.runtime.now() }
}

test('an entry exports what its page names, and nothing of the inside', () => {
  assert.deepEqual(Object.keys(sdk).sort(), ['Tacho', 'ToolBlockedError'])
  assert.deepEqual(Object.getOwnPropertyNames(Tacho).sort(), ['length', 'name', 'prototype'])
  const entries = { record, ai, openai, anthropic, claudeAgentSdk, langchain, mastra, openaiAgents, testing }
  assert.deepEqual(
    Object.fromEntries(Object.entries(entries).map(([name, entry]) => [name, Object.keys(entry).sort()])),
    {
      record: ['Recorder'],
      ai: ['guardTools', 'recordModel'],
      openai: ['guardTools', 'recordClient'],
      anthropic: ['guardTools', 'recordClient'],
      claudeAgentSdk: ['guardQuery'],
      langchain: ['guardTools', 'recordCalls'],
      mastra: ['guardTool'],
      openaiAgents: ['guardMcpServer', 'guardTool', 'guardTools', 'recordTraces'],
      testing: ['fakeTacho', 'replay'],
    },
  )
})

test('`run` and `withRun` take a function alone, or options before it', async () => {
  const { tacho, events } = client()
  assert.equal(await tacho.run((run) => run.runId.length), 36)
  assert.equal(await tacho.run({ runId: 'own' }, (run) => run.runId), 'own')
  const alone = tacho.withRun(() => 1)
  const named = tacho.withRun({ runId: 'serverless', waitUntil: () => undefined }, (run) => run.runId)
  const recorded = await events()
  assert.deepEqual([await alone, await named], [1, 'serverless'])
  assert.deepEqual(recorded.map(({ runId }) => runId).slice(1), ['own', recorded[2]?.runId, 'serverless'])
})

test('a span records what was set on it, also if it fails; the latest value counts', async () => {
  const { tacho, events, pass } = client()
  const run = tacho.startRun()
  const found = run.span('search', (span) => {
    span.set({ hits: 1, query: 'refund' })
    span.set({ hits: 2 })
    return 'found'
  })
  assert.equal(found, 'found')
  const failing = run.span('rank', async (span) => {
    span.set({ model: 'small' })
    await pass(0)
    throw new RangeError('on purpose')
  })
  await assert.rejects(failing, RangeError)
  const [search, rank] = await events()
  assert.deepEqual(search?.payload, { latency: 0, hits: 2, query: 'refund' })
  const { error, model } = (rank?.payload ?? {}) as Record<string, unknown>
  assert.deepEqual([error, model], ['RangeError: on purpose', 'small'])
})

test('`record` takes one object, and nothing else in it counts', async () => {
  const { tacho, events, now } = client()
  const at = new Date(now() - 60_000)
  const given = { type: 'HANDOVER', label: 'to a person', payload: { reason: 'angry' }, at, eventId: 'order-7' }
  tacho.startRun().record({ ...given, isLast: true, span: { spanId: 'x' } } as sdk.NewEvent)
  await tacho.run(() => tacho.record({ type: 'NOTE', label: 'inside', at: now() - 1_000 }))
  const [event, note] = await events()
  const { eventType, label, payload, timestamp, eventId, spanId } = event ?? {}
  assert.deepEqual(
    { eventType, label, payload, timestamp, eventId },
    {
      eventType: 'HANDOVER',
      label: 'to a person',
      payload: { reason: 'angry' },
      timestamp: at.getTime(),
      eventId: 'order-7',
    },
  )
  assert.match(String(spanId), /^[0-9a-f]{16}$/)
  assert.equal(note?.timestamp, now() - 3_000)
})

test('a call with the time of its start has the time of its end, and its latency', async () => {
  const { tacho, events, now, pass } = client()
  const begun = now()
  await pass(420)
  const run = tacho.startRun()
  run.llmCall({ model: 'small-1', startedAt: begun })
  run.toolCall({ toolName: 'find', startedAt: new Date(begun), latency: 80 })
  run.toolCall({ toolName: 'later', startedAt: now() + 5_000 })
  run.toolCall({ toolName: 'faulty', startedAt: new Date(Number.NaN), latency: 3 })
  const timed = (await events()).map(({ timestamp, payload }) => [timestamp - begun, payload])
  assert.deepEqual(timed, [
    [420, { model: 'small-1', latency: 420 }],
    [80, { toolName: 'find', latency: 80 }],
    [5_420, { toolName: 'later', latency: 0 }],
    [420, { toolName: 'faulty', startedAt: null, latency: 3 }],
  ])
})

const INCOMING = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00'

test('a run that serves a request continues its trace: events name it, and own requests carry it on', async () => {
  const { tacho, events } = client()
  const run = tacho.startRun({ traceparent: INCOMING })
  run.step('one')
  const inside = run.span('ask', () => run.traceparent)
  const [step, ask] = await events()
  const [, traceId, traceSpanId] = INCOMING.split('-')
  assert.deepEqual(step?.payload, { traceId, traceSpanId })
  assert.equal(run.traceparent, `00-${traceId}-${String(step?.spanId)}-00`)
  assert.equal(inside, `00-${traceId}-${String(ask?.spanId)}-00`)
  assert.equal(run.toHandle().traceparent, INCOMING)
})

test('a run without a trace begins one when its `traceparent` is read', async () => {
  const { tacho, events } = client()
  const run = tacho.startRun()
  run.step('before')
  const given = run.traceparent
  run.step('after')
  assert.equal(run.traceparent, given)
  const [before, after] = await events()
  const [, traceId] = /^00-([0-9a-f]{32})-[0-9a-f]{16}-01$/.exec(given) ?? []
  assert.deepEqual(before?.payload, {})
  assert.deepEqual(after?.payload, { traceId, traceSpanId: after?.spanId })
  assert.equal(given.split('-')[2], after?.spanId)
})

test('a faulty traceparent counts as none, and never throws', async () => {
  const { tacho, events } = client()
  for (const traceparent of ['', '00-x', `01${INCOMING.slice(2)}`, 7, null, {}, Object.create(null)] as never[])
    tacho.startRun({ traceparent }).step('one')
  for (const { payload } of await events()) assert.deepEqual(payload, {})
})
