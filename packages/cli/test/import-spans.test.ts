import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { ImportReport } from '../src/record/transcript/import-report.ts'
import { startServer } from './tacho.ts'

/** Files in the forms of the public schemas, with spans from a year ago. */

const server = await startServer()
after(() => server.stop())

const START = Date.now() - 365 * 86_400_000
const iso = (ms: number) => new Date(START + ms).toISOString()
const nanos = (ms: number) => `${START + ms}000000`

interface Shown {
  run: {
    status: string
    startedAt: string
    endedAt: string
    sessionId: string | null
    agent: { name: string }
    usage: { promptTokens: number; completionTokens: number; totalTokens: number; cost: number }
    unpricedCalls: number
  }
  events: { eventType: string; label: string; timestamp: string; payload: Record<string, unknown> }[]
}

async function importText(format: string, text: string, ...args: string[]) {
  const { code, stdout, stderr } = await server.tacho(['import', '-', '--format', format, '--json', ...args], text)
  assert.notEqual(stdout, '', stderr)
  return { code, report: JSON.parse(stdout) as ImportReport }
}

async function show(runId: string): Promise<Shown> {
  const { stdout } = await server.tacho(['runs', 'show', runId, '--full', '--json'])
  return JSON.parse(stdout) as Shown
}

const typesOf = ({ events }: Shown) => events.map(({ eventType }) => eventType).sort()
const jsonl = (...values: unknown[]) => values.map((value) => `${JSON.stringify(value)}\n`).join('')
const text = (key: string, stringValue: string) => ({ key, value: { stringValue } })
const int = (key: string, intValue: number) => ({ key, value: { intValue: String(intValue) } })
const [TRACE, ROOT, CALL] = ['5b8efff798038103d269b633813fc60c', 'eee19b7ec3c1b174', 'aaa19b7ec3c1b174']

function otlpRequest(traceId: string, parentSpanId: string) {
  const root = {
    traceId,
    spanId: ROOT,
    parentSpanId,
    name: 'invoke_agent airline',
    startTimeUnixNano: nanos(0),
    endTimeUnixNano: nanos(3_000),
    attributes: [text('gen_ai.operation.name', 'invoke_agent'), text('gen_ai.agent.name', 'airline')],
  }
  const call = {
    traceId,
    spanId: CALL,
    parentSpanId: ROOT,
    name: 'chat gpt-4o',
    startTimeUnixNano: nanos(1_000),
    endTimeUnixNano: nanos(2_000),
    attributes: [
      text('gen_ai.operation.name', 'chat'),
      text('gen_ai.request.model', 'gpt-4o'),
      int('gen_ai.usage.input_tokens', 120),
      int('gen_ai.usage.output_tokens', 8),
    ],
  }
  return {
    resourceSpans: [{ resource: { attributes: [] }, scopeSpans: [{ scope: { name: 's' }, spans: [call, root] }] }],
  }
}

test('a file of OTLP requests keeps its times, and its bad lines cost nothing but themselves', async () => {
  const bad = { resourceSpans: [{ scopeSpans: [{ spans: [{ spanId: 7, name: 'odd' }] }] }] }
  const file = `${jsonl(otlpRequest(TRACE, ''))}{"resourceSpans":\n${jsonl(bad, { resourceLogs: [] })}`
  const { code, report } = await importText('otlp', file)
  assert.deepEqual(
    report.problems.map(({ line, problem }) => [line, problem]),
    [
      [2, 'it is not valid JSON'],
      [3, 'span "odd": its span_id cannot be read'],
      [4, 'it has neither resourceSpans nor a spanId'],
    ],
  )
  assert.deepEqual([code, report.runs, report.acceptedEvents, report.rejectedEvents], [1, 1, 3, 0])
  const shown = await show(TRACE)
  assert.deepEqual(typesOf(shown), ['AGENT_STEP', 'LLM_CALL', 'SESSION_OUTCOME'])
  const { status, startedAt, endedAt, agent, usage } = shown.run
  assert.deepEqual([status, startedAt, endedAt], ['COMPLETED', iso(0), iso(3_000)])
  assert.deepEqual([agent.name, usage.promptTokens, usage.completionTokens], ['airline', 120, 8])
  const again = await importText('otlp', JSON.stringify(otlpRequest(TRACE, ''), null, 2))
  assert.deepEqual([again.code, again.report.acceptedEvents], [0, 3])
  assert.equal((await show(TRACE)).events.length, 3)
})

test('a trace whose parent is in no file is closed by its topmost span', async () => {
  const traceId = 'a'.repeat(32)
  const { report } = await importText('otlp', jsonl(otlpRequest(traceId, 'bbb19b7ec3c1b174')))
  assert.equal(report.closedRuns, 1)
  const { run } = await show(traceId)
  assert.deepEqual([run.status, run.endedAt], ['COMPLETED', iso(3_000)])
})

function langfuseTrace(id: string, level = 'DEFAULT') {
  return {
    id,
    timestamp: iso(0),
    name: 'refund chat',
    userId: 'ada',
    sessionId: 's-1',
    tags: ['prod'],
    release: null,
    input: { question: 'Where is my order?' },
    output: 'On its way.',
    metadata: { tier: 'gold' },
    observations: [
      {
        id: `${id}-generation`,
        traceId: id,
        type: 'GENERATION',
        name: 'answer',
        level: 'DEFAULT',
        startTime: iso(100),
        endTime: iso(900),
        parentObservationId: null,
        model: 'gpt-4o',
        input: [{ role: 'user', content: 'Where is my order?' }],
        output: { role: 'assistant', content: 'Let me look.' },
        usageDetails: { input: 100, input_cached_tokens: 20, output: 10, total: 130 },
        calculatedTotalCost: 0.0123,
      },
      {
        id: `${id}-silent`,
        traceId: id,
        type: 'GENERATION',
        name: 'no usage',
        level: 'DEFAULT',
        model: 'own-model',
        startTime: iso(900),
        endTime: iso(950),
        parentObservationId: null,
        usage: { input: 0, output: 0, total: 0 },
      },
      {
        id: `${id}-tool`,
        traceId: id,
        type: 'TOOL',
        name: 'look_up',
        level,
        statusMessage: 'no such order',
        startTime: iso(1_000),
        endTime: iso(1_500),
        parentObservationId: null,
        input: { order: 7 },
        output: 'found',
      },
    ],
  }
}

test('a trace of Langfuse keeps calls, tools, usage, costs, session and times', async () => {
  const { code, report } = await importText('langfuse', jsonl(langfuseTrace('order-4711'), { id: 3 }))
  assert.deepEqual(report.problems, [{ line: 2, problem: 'it is neither a trace nor an observation' }])
  assert.deepEqual([code, report.runs, report.acceptedEvents], [1, 1, 5])
  const shown = await show('order-4711')
  assert.deepEqual(typesOf(shown), ['AGENT_STEP', 'LLM_CALL', 'LLM_CALL', 'SESSION_OUTCOME', 'TOOL_CALL'])
  const { run, events } = shown
  assert.deepEqual([run.status, run.startedAt, run.endedAt, run.sessionId], ['COMPLETED', iso(0), iso(1_500), 's-1'])
  assert.deepEqual([run.usage.totalTokens, run.usage.cost, run.unpricedCalls], [130, 0.0123, 1])
  const payloadOf = (label: string) => events.find((event) => event.label === label)?.payload
  assert.deepEqual(payloadOf('look_up')?.['input'], { order: 7 })
  assert.deepEqual(payloadOf('look_up')?.['toolName'], 'look_up')
  assert.equal(payloadOf('no usage')?.['usage'], undefined)
  assert.deepEqual(payloadOf('answer')?.['output'], { role: 'assistant', content: 'Let me look.' })
})

test('a trace of Langfuse whose last observation is an error has failed', async () => {
  const { observations, ...trace } = langfuseTrace('order-4712', 'ERROR')
  // One trace in the form in which Langfuse's UI downloads it.
  await importText('langfuse', JSON.stringify({ trace, observations }))
  assert.equal((await show('order-4712')).run.status, 'FAILED')
})

test('observations of a blob export of Langfuse, in snake case, become a run', async () => {
  const [call] = langfuseTrace('order-4713').observations
  const row = {
    id: 'o1',
    trace_id: 'order-4713',
    type: 'GENERATION',
    name: 'answer',
    parent_observation_id: null,
    start_time: iso(0).replace('T', ' ').replace('Z', '000'),
    end_time: iso(50),
    provided_model_name: 'gpt-4o',
    usage_details: call && 'usageDetails' in call ? call.usageDetails : null,
    total_cost: 0.5,
    session_id: 's-2',
  }
  await importText('langfuse', jsonl(row))
  const { run } = await show('order-4713')
  assert.deepEqual([run.status, run.startedAt, run.sessionId, run.usage.cost], ['COMPLETED', iso(0), 's-2', 0.5])
})

test('counts and costs of Langfuse are read in every spelling, and one that nobody can read is said', async () => {
  const cases: [name: string, fields: object, tokens: number, cost: number, unpriced: number, said: RegExp][] = [
    ['columns', { inputUsage: 100, outputUsage: 5, totalUsage: 105, totalCost: 0.2 }, 105, 0.2, 0, /^$/],
    ['zero', { usageDetails: { input: 100, output: 0 }, totalCost: 0, costDetails: { input: 0.1 } }, 100, 0.1, 0, /^$/],
    ['parts', { costDetails: { input: 0.1, output: 0.2 }, usage: { input: 1, output: 2 } }, 3, 0.3, 0, /^$/],
    ['total', { costDetails: { input: 0.1 }, totalCost: 0.3, usage: { input: 1, output: 2 } }, 3, 0.3, 0, /^$/],
    [
      'bad part',
      { costDetails: { input: 0.1, output: '$1' }, usage: { input: 1, output: 2 } },
      3,
      0,
      1,
      /payload.cost/,
    ],
    ['bad total', { calculatedTotalCost: '$1', usage: { input: 1, output: 2 } }, 3, 0, 1, /payload.cost/],
    ['bad count', { totalCost: 0.1, usageDetails: { input: 'many', output: 2 } }, 2, 0.1, 0, /payload.usage/],
  ]
  for (const [name, fields, tokens, cost, unpriced, said] of cases) {
    const id = `spelling-${name}`
    const times = { startTime: iso(0), endTime: iso(5) }
    const row = { id: `${id}-call`, traceId: id, type: 'GENERATION', name: 'answer', model: 'own-model', ...times }
    const { report } = await importText('langfuse', jsonl({ ...row, ...fields }))
    const { run } = await show(id)
    assert.deepEqual([name, run.usage.totalTokens, run.usage.cost], [name, tokens, cost])
    assert.equal(run.unpricedCalls, unpriced, name)
    assert.match(report.problems.map(({ problem }) => problem).join(), said, name)
  }
})

const PHOENIX = 'c'.repeat(32)
const phoenixRows = [
  {
    name: 'agent',
    span_kind: 'AGENT',
    parent_id: null,
    start_time: iso(0),
    end_time: iso(800),
    status_code: 'OK',
    status_message: '',
    events: [],
    'context.trace_id': PHOENIX,
    'context.span_id': ROOT,
    'attributes.input.value': 'Where?',
  },
  {
    name: 'ChatCompletion',
    span_kind: 'LLM',
    parent_id: ROOT,
    start_time: START + 100,
    end_time: START + 700,
    status_code: 'UNSET',
    status_message: '',
    events: [],
    'context.trace_id': PHOENIX,
    'context.span_id': CALL,
    'attributes.llm.model_name': 'gpt-4o',
    'attributes.llm.token_count.prompt': 50,
    'attributes.llm.token_count.completion': 5,
    'attributes.llm.input_messages': [{ 'message.role': 'user', 'message.content': 'Where?' }],
    'attributes.metadata': null,
  },
]

test('rows of the data frame of Phoenix, and spans of its API, become a run', async () => {
  const { report } = await importText('phoenix', jsonl(...phoenixRows, { name: 'no ids' }), '--agent-name', 'Old agent')
  assert.deepEqual(report.problems, [{ line: 3, problem: 'it has no context with trace_id and span_id' }])
  const { run, events } = await show(PHOENIX)
  assert.deepEqual([run.status, run.startedAt, run.endedAt], ['COMPLETED', iso(0), iso(800)])
  assert.deepEqual([run.agent.name, run.usage.promptTokens, run.usage.completionTokens], ['Old agent', 50, 5])
  const call = events.find(({ eventType }) => eventType === 'LLM_CALL')
  assert.deepEqual(call?.payload['messages'], [{ role: 'user', content: 'Where?' }])
  assert.equal(call?.timestamp, iso(100))
  const api = {
    name: 'agent',
    context: { trace_id: 'd'.repeat(32), span_id: ROOT },
    span_kind: 'AGENT',
    parent_id: null,
    start_time: iso(0),
    end_time: iso(5),
    status_code: 'ERROR',
    attributes: { 'input.value': 'x' },
  }
  await importText('phoenix', JSON.stringify({ data: [api], next_cursor: null }))
  assert.equal((await show('d'.repeat(32))).run.status, 'FAILED')
})

test('columns of the data frame, as pandas writes them unasked, are read too', async () => {
  const columns = Object.fromEntries(
    Object.keys(phoenixRows[0] ?? {}).map((name) => [name, { 0: phoenixRows[0]?.[name as 'name'] }]),
  )
  const { report } = await importText('phoenix', JSON.stringify(columns), '--dry-run')
  assert.deepEqual([report.runs, report.events, report.problemLines], [1, 2, 0])
})

test('only an import may bring events that are older than 30 days', async () => {
  const event = {
    eventId: 'old',
    clientId: 'c',
    runId: 'old-run',
    agentName: 'a',
    eventType: 'AGENT_STEP',
    label: 'l',
    timestamp: START,
  }
  const { TACHO_API_KEY = '' } = server.variables
  const answer = async (headers: Record<string, string>) => {
    const reply = await fetch(`${server.url}/openapi/v1/events/batch`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-API-Key': TACHO_API_KEY, ...headers },
      body: JSON.stringify([event]),
    })
    return ((await reply.json()) as { rejections?: { code: string }[] }).rejections?.[0]?.code
  }
  assert.equal(await answer({}), 'timestamp_too_old')
  assert.equal(await answer({ 'X-Tacho-Import': 'true' }), undefined)
})
