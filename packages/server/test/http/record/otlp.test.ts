/** OTLP over HTTP, as its specification and docs/otlp.md say: runs, retries, limits and errors. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import {
  anyValue,
  nanos,
  newSpanId,
  newTraceId,
  otlpClient,
  pairs,
  PARENT,
  request,
  span,
  type Value,
} from '../../setup/otlp-requests.ts'
import { ReplySchema, SpanSchema } from '../../../src/domain/record/otlp/otlp_pb.ts'
import { startService, type Service } from '../../setup/service.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

const { send, sendProtobuf, eventOf, timeline } = otlpClient(() => service)

test('a span is one event at its start, with the trace as its run and its attributes in the payload', async () => {
  const sent = span({ name: 'plan', attributes: { 'shop.items': 3, 'shop.deep': { list: [1, 2.5, true, 'x'] } } })
  await send(request([sent]))
  const run = await timeline(sent.traceId)
  const [event] = run.events
  assert.equal(run.agent.name, 'shop')
  assert.deepEqual(
    [event?.eventId, event?.eventType, event?.label, event?.runId],
    [sent.spanId, 'AGENT_STEP', 'plan', sent.traceId],
  )
  assert.equal(Date.parse(String(event?.timestamp)), Number(sent.startTimeUnixNano.slice(0, -6)))
  assert.deepEqual(event?.payload, {
    latency: 250,
    attributes: { 'shop.items': 3, 'shop.deep': { list: [1, 2.5, true, 'x'] } },
    resource: { 'service.name': 'shop' },
    scope: { name: 'tests', version: '1' },
  })
})

test('the root of a trace ends the run, as failed if it failed', async () => {
  for (const [code, status] of [
    [0, 'COMPLETED'],
    [2, 'FAILED'],
  ] as const) {
    const root = span({ parentSpanId: '', status: { code, message: 'out of stock' } })
    await send(request([root]))
    const run = await timeline(root.traceId)
    assert.equal(run.status, status)
    assert.deepEqual(
      run.events.map(({ eventId, eventType }) => [eventId, eventType]),
      [
        [root.spanId, 'AGENT_STEP'],
        [`${root.spanId}-outcome`, 'SESSION_OUTCOME'],
      ],
    )
    if (code === 2) assert.deepEqual(run.events[0]?.payload['error'], { message: 'out of stock' })
  }
})

test('spans that are sent again, in another order or split over requests, are stored and counted once', async () => {
  const traceId = newTraceId()
  const usage = { 'gen_ai.operation.name': 'chat', 'gen_ai.usage.input_tokens': 10, 'gen_ai.usage.output_tokens': 5 }
  const spans = [
    span({ traceId, parentSpanId: '' }),
    ...Array.from({ length: 30 }, () => span({ traceId, attributes: usage })),
  ]
  const orders = [spans, spans.toReversed(), spans.slice(0, 7), spans.slice(3)]
  const answers = await Promise.all(orders.map((order) => send(request(order))))
  for (const { status, body } of answers) assert.deepEqual([status, body], [200, {}])
  const run = await timeline(traceId)
  assert.equal(run.events.length, 32)
  assert.deepEqual(run.usage, { promptTokens: 300, completionTokens: 150, totalTokens: 450, cost: 0 })
})

test('agent, session and run come from their attributes', async () => {
  const runId = `order-${newSpanId()}`
  const attributes = {
    'tacho.run.id': runId,
    'gen_ai.conversation.id': 'talk-1',
    'gen_ai.agent.name': 'Refunds',
    'gen_ai.agent.id': 'agent-7',
  }
  await send(request([span({ attributes })]))
  const run = await timeline(runId)
  assert.equal(run.agent.name, 'Refunds')
  const { body } = await service.operator<{ items: { sessionId: string; agentId: string }[] }>(
    `/environments/${service.environmentId}/runs/${run.id}/events`,
  )
  assert.deepEqual([body.items[0]?.sessionId, body.items[0]?.agentId], ['talk-1', 'agent-7'])
})

test('a run belongs to the agent that a span names, although the span of the agent ends last', async () => {
  const traceId = newTraceId()
  const [agent, inner] = [newSpanId(), newSpanId()]
  const start = Date.now() - 5_000
  // More spans than one part holds, and an agent inside the agent.
  const calls = Array.from({ length: 2 * LIMITS.batchEvents }, () => span({ traceId, parentSpanId: inner }))
  const named = (name: string) => ({ 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': name })
  await send(
    request([
      ...calls,
      span({
        traceId,
        spanId: inner,
        parentSpanId: agent,
        startTimeUnixNano: nanos(start + 1),
        attributes: named('Lookup'),
      }),
      span({ traceId, spanId: agent, parentSpanId: '', startTimeUnixNano: nanos(start), attributes: named('Refunds') }),
    ]),
  )
  const run = await timeline(traceId)
  assert.equal(run.agent.name, 'Refunds')
  assert.equal(run.status, 'COMPLETED')
})

test('invalid spans are counted and reported, the others are stored', async () => {
  const good = span()
  const old = span({ startTimeUnixNano: nanos(Date.now() - LIMITS.eventPastMs - 60_000) })
  const named = span({ attributes: { 'tacho.run.id': 'zeros' } })
  const zeros = [
    { ...named, traceId: '0'.repeat(32) },
    { ...named, spanId: '0'.repeat(16), parentSpanId: '' },
  ]
  const unreadable = [{ ...span(), spanId: '' }, { ...span(), spanId: 'no hex' }, { ...span(), attributes: 'x' }, 7]
  const { status, body } = await send(request([good, old, ...zeros, ...unreadable]))
  assert.equal(status, 200)
  assert.equal(body.partialSuccess?.rejectedSpans, '7')
  assert.match(body.partialSuccess?.errorMessage ?? '', /30 days in the past/)
  assert.equal((await timeline(good.traceId)).events.length, 1)
  assert.equal((await service.api('/runs/zeros')).status, 404)
  const found = await service.operator<{ outcome: string; rejection: { code: string } }>(
    `/environments/${service.environmentId}/runs/${old.traceId}/events/${old.spanId}/trace`,
  )
  assert.deepEqual([found.body.outcome, found.body.rejection?.code], ['rejected', 'timestamp_too_old'])
})

test('a span that cannot be stored names itself and its reason, in the reply and in its trace', async () => {
  const good = span()
  const faults: [object, RegExp][] = [
    [span({ traceId: '7'.repeat(30), name: 'pay' }), /"pay": its traceId must have 32 hex digits/],
    [span({ spanId: 'not hex', name: 'pay' }), /"pay": its spanId is not in hex/],
    [span({ startTimeUnixNano: '0', name: 'pay' }), /span [0-9a-f]{16} "pay": it has no startTimeUnixNano/],
    [span({ startTimeUnixNano: String(Date.now()), name: 'pay' }), /"pay": its startTimeUnixNano must be nanoseconds/],
    [{ ...span({ name: 'pay' }), attributes: 'x' }, /"pay": its attributes cannot be read/],
    [{ ...span({ name: 'pay' }), events: [{ attributes: [{ key: 7 }] }] }, /"pay": its key cannot be read/],
  ]
  for (const [sent, reason] of faults) {
    const { status, body } = await send(request([sent, good]))
    assert.deepEqual([status, body.partialSuccess?.rejectedSpans], [200, '1'])
    assert.match(body.partialSuccess?.errorMessage ?? '', reason)
  }
  assert.equal((await timeline(good.traceId)).events.length, 1)
  const unreadable = { ...span(), attributes: 'x' }
  await send(request([unreadable]))
  const found = await service.operator<{ outcome: string; rejection: { code: string; message: string } }>(
    `/environments/${service.environmentId}/runs/${unreadable.traceId}/events/${unreadable.spanId}/trace`,
  )
  assert.equal(found.body.outcome, 'rejected')
  const { code, message } = found.body.rejection
  assert.deepEqual([code, message], ['unreadable', 'its attributes cannot be read'])
})

test('half an emoji, NaN without quotes, and a value of the wrong type cost no span', async () => {
  const [half, nan, wrong, good] = [span(), span(), span(), span()]
  const text = JSON.stringify(request([half, nan, wrong, good].map((sent, at) => ({ ...sent, name: `step ${at}` }))))
    .replace('"step 0"', String.raw`"cut \ud83d \ud83d\ude00 \\ud83d"`)
    .replace('"attributes":[]', '"attributes":[]')
  const attributes = (at: number, values: string) => (body: string) =>
    body
      .replace(`"name":"step ${at}"`, `"name":"step ${at}","x":0`)
      .replace(new RegExp(`("name":"step ${at}".*?"attributes":)\\[\\]`), `$1[${values}]`)
  const body = [
    attributes(1, '{"key":"score","value":{"doubleValue":NaN}},{"key":"low","value":{"doubleValue":-Infinity}}'),
    attributes(2, '{"key":"count","value":{"intValue":1.5}},{"key":"on","value":{"boolValue":"yes"}}'),
  ].reduce((before, change) => change(before), text)
  assert.deepEqual((await send(Buffer.from(body))).body, {})
  const eventOfTrace = async ({ traceId }: { traceId: string }) => (await timeline(traceId)).events[0]
  assert.equal((await eventOfTrace(half))?.label, 'cut \ufffd \u{1f600} \\ud83d')
  const payloadOf = async (sent: { traceId: string }) => (await eventOfTrace(sent))?.payload['attributes']
  assert.deepEqual(await payloadOf(nan), { score: 'NaN', low: '-Infinity' })
  assert.deepEqual(await payloadOf(wrong), { count: '1.5', on: 'yes' })
  assert.ok(await eventOfTrace(good))
})

test('half an emoji in protobuf costs no span', async () => {
  const sent = span()
  const bytes = Buffer.from(
    toBinary(
      SpanSchema,
      create(SpanSchema, {
        traceId: Buffer.from(sent.traceId, 'hex'),
        spanId: Buffer.from(sent.spanId, 'hex'),
        parentSpanId: Buffer.from(PARENT, 'hex'),
        name: 'cut ***',
        startTimeUnixNano: BigInt(sent.startTimeUnixNano),
      }),
    ),
  )
  bytes.set([0xed, 0xa0, 0xbd], bytes.indexOf('***'))
  const embedded = (field: number, inner: Buffer) => Buffer.concat([Buffer.from([field, inner.length]), inner])
  const { status } = await sendProtobuf(embedded(0x0a, embedded(0x12, embedded(0x12, bytes))))
  assert.equal(status, 200)
  assert.equal((await timeline(sent.traceId)).events[0]?.label, 'cut \ufffd\ufffd\ufffd')
})

test('JSON in snake case is read, and JSON of another shape is refused with the name that it lacks', async () => {
  const [sent, linked] = [span(), span({ links: [{ traceId: 'zz', spanId: '12', attributes: pairs({ of: 'cart' }) }] })]
  const bare = span({ links: [{ traceId: 'zz', spanId: '12' }] })
  const { traceId, spanId, parentSpanId, startTimeUnixNano, endTimeUnixNano, ...others } = sent
  const snake = {
    ...others,
    trace_id: traceId,
    span_id: spanId,
    parent_span_id: parentSpanId,
    start_time_unix_nano: startTimeUnixNano,
    end_time_unix_nano: endTimeUnixNano,
  }
  const body = { resource_spans: [{ scope_spans: [{ spans: [snake, linked, bare] }] }] }
  assert.deepEqual((await send(body)).body, {})
  assert.equal((await timeline(traceId)).events[0]?.payload['latency'], 250)
  const [event] = (await timeline(linked.traceId)).events
  assert.deepEqual(event?.payload['links'], [{ attributes: { of: 'cart' } }])
  assert.equal((await timeline(bare.traceId)).events[0]?.spanId, bare.spanId)
  const other = await send({ spans: [sent] })
  assert.equal(other.status, 400)
  assert.match((other.body as { detail?: string }).detail ?? '', /no resourceSpans/)
})

test('names of Object.prototype are ordinary names', async () => {
  const attributes = {
    ['__proto__']: 'z',
    constructor: 'y',
    'llm.input_messages.__proto__.x': 'p',
    'gen_ai.prompt.99999999.role': 'q',
  }
  const { payload, label } = await eventOf({ name: 'constructor', attributes })
  assert.equal(label, 'constructor')
  assert.equal(payload.attributes['constructor'], 'y')
  assert.ok(Object.hasOwn(payload.attributes, '__proto__'))
  assert.equal(({} as Record<string, unknown>)['x'], undefined)
})

test('a span nested beyond what protobuf allows is rejected alone, and a deep JSON text stays a text', async () => {
  const deep = (levels: number): Value => (levels === 0 ? 'end' : [deep(levels - 1)])
  const tooDeep = span({ attributes: { deep: deep(300) } })
  const text = `${'['.repeat(300)}${']'.repeat(300)}`
  const good = span({ attributes: { deep: deep(40), 'input.value': text } })
  const { status, body } = await send(request([tooDeep, good]))
  assert.deepEqual([status, body.partialSuccess?.rejectedSpans], [200, '1'])
  const [event] = (await timeline(good.traceId)).events
  assert.equal(event?.payload['input'], text)
})

test('a span that protobuf cannot decode is rejected alone', async () => {
  const good = span()
  const hex = (id: string) => Buffer.from(id, 'hex')
  const readable = create(SpanSchema, {
    traceId: hex(good.traceId),
    spanId: hex(good.spanId),
    name: 'step',
    startTimeUnixNano: BigInt(good.startTimeUnixNano),
  })
  const scopeSpans = (spans: Buffer[]) =>
    Buffer.concat(spans.flatMap((bytes) => [Buffer.from([0x12, bytes.length]), bytes]))
  const embedded = (field: number, bytes: Buffer) => Buffer.concat([Buffer.from([field, bytes.length]), bytes])
  const broken = Buffer.from([0x2a, 0x02, 0xff, 0xfe])
  const scope = scopeSpans([broken, Buffer.from(toBinary(SpanSchema, readable)), Buffer.alloc(0)])
  const body = embedded(0x0a, embedded(0x12, scope))
  const { status, bytes } = await sendProtobuf(body)
  assert.equal(status, 200)
  assert.equal(fromBinary(ReplySchema, bytes).partialSuccess?.rejected, 2n)
  assert.equal((await timeline(good.traceId)).events.length, 2)
})

test('a body that is not an OTLP request, another media type or encoding, or a key without the scope is refused', async () => {
  for (const body of [
    '{',
    '[]',
    '7',
    '"x"',
    'null',
    '{"resourceSpans":1}',
    '{"resourceSpans":[null]}',
    '{"resourceSpans":[{"scopeSpans":{}}]}',
  ])
    assert.equal((await send(body)).status, 400, body)
  const protobuf = { 'content-type': 'application/x-protobuf' }
  assert.equal((await send(Buffer.from([0xff, 0xff, 0xff]), 'traces', protobuf)).status, 400)
  assert.equal((await send('x', 'traces', { 'content-type': 'text/plain' })).status, 415)
  const grpc = await send('x', 'traces', { 'content-type': 'application/grpc' })
  assert.match((grpc.body as { detail?: string }).detail ?? '', /OTEL_EXPORTER_OTLP_PROTOCOL=http\/protobuf/)
  assert.equal((await send('{}', 'traces', { 'content-encoding': 'constructor' })).status, 415)
  const key = await service.newKey({ scopes: ['usage:read'] })
  assert.equal((await send('{}', 'traces', { 'x-api-key': key })).status, 403)
  assert.equal((await send('{}', 'traces', { 'x-api-key': 'no key' })).status, 401)
  assert.deepEqual((await send('{}')).body, {})
})

test('metrics are accepted but not stored, and the answer says so', async () => {
  const { status, body } = await send({ resourceMetrics: [] }, 'metrics')
  assert.deepEqual(
    [status, body],
    [200, { partialSuccess: { rejectedDataPoints: '0', errorMessage: 'Metrics are not kept. Send traces and logs.' } }],
  )
})

test('data points of metrics are counted as rejected, in JSON and in protobuf', async () => {
  const points = (count: number) => Array.from({ length: count }, () => ({ asInt: '7' }))
  const metrics = [
    { name: 'a', gauge: { dataPoints: points(2) } },
    { name: 'b', sum: { dataPoints: points(3) } },
    { name: 'c', histogram: { data_points: points(1) } },
    { name: 'd', exponentialHistogram: { dataPoints: points(1) } },
    { name: 'e', summary: { dataPoints: points(4) } },
  ]
  const { body } = await send({ resourceMetrics: [{ scopeMetrics: [{ metrics }] }, {}] }, 'metrics')
  assert.equal((body.partialSuccess as unknown as { rejectedDataPoints: string }).rejectedDataPoints, '11')
  const message = (field: number, content: Buffer) =>
    Buffer.concat([Buffer.from([(field << 3) | 2, content.length]), content])
  const points3 = Buffer.concat(Array.from({ length: 3 }, () => message(1, Buffer.alloc(0))))
  const name = message(1, Buffer.from('tokens'))
  const metric = message(2, Buffer.concat([name, message(7, points3)]))
  const sent = message(1, message(2, Buffer.concat([metric, metric])))
  const headers = { 'x-api-key': service.apiKey, 'content-type': 'application/x-protobuf' }
  const reply = await fetch(`${service.url}/openapi/v1/otlp/v1/metrics`, { method: 'POST', headers, body: sent })
  const partial = fromBinary(ReplySchema, new Uint8Array(await reply.arrayBuffer())).partialSuccess
  assert.equal(partial?.rejected, 6n)
})

test('log records become events of their trace or conversation, once each', async () => {
  const traceId = newTraceId()
  const sessionId = `talk-${newSpanId()}`
  const at = nanos(Date.now())
  const logs = {
    resourceLogs: [
      {
        resource: { attributes: pairs({ 'service.name': 'shop' }) },
        scopeLogs: [
          {
            logRecords: [
              { timeUnixNano: at, traceId, spanId: PARENT, severityNumber: 17, body: anyValue('card declined') },
              { timeUnixNano: at, traceId, eventName: 'gen_ai.user.message', body: anyValue({ content: 'Refund?' }) },
              { observedTimeUnixNano: at, body: anyValue('started'), attributes: pairs({ 'session.id': sessionId }) },
              { timeUnixNano: at, body: anyValue('nobody knows whose') },
            ],
          },
        ],
      },
    ],
  }
  for (let times = 0; times < 2; times++) {
    const { status, body } = await send(logs, 'logs')
    assert.equal(status, 200)
    assert.equal((body.partialSuccess as unknown as { rejectedLogRecords: string }).rejectedLogRecords, '1')
  }
  const elsewhere = structuredClone(logs)
  elsewhere.resourceLogs[0]?.resource.attributes.push(...pairs({ 'host.name': 'other' }))
  await send(elsewhere, 'logs')
  assert.equal((await timeline(sessionId)).events.length, 2, 'the same record of another process is another event')
  const { events } = await timeline(traceId)
  assert.deepEqual(
    events.slice(0, 2).map(({ eventType, payload }) => [eventType, payload['message'] ?? payload['text']]),
    [
      ['ERROR', 'card declined'],
      ['USER_INPUT', { role: 'user', content: 'Refund?' }],
    ],
  )
  assert.deepEqual(
    (await timeline(sessionId)).events.map(({ label }) => label),
    ['started', 'started'],
  )
})

test('a wrong base address gets an error that names the right one', async () => {
  for (const path of ['/v1/traces', '/v1/traces/', '/api/v1/logs', '/openapi/v1/v1/traces', '/openapi/v1/v1/metrics']) {
    const reply = await fetch(`${service.url}${path}`, { method: 'POST', headers: { 'x-api-key': service.apiKey } })
    assert.equal(reply.status, 404)
    const { detail } = (await reply.json()) as { detail: string }
    assert.match(
      detail,
      new RegExp(`OpenTelemetry goes to /openapi/v1/otlp/v1/${/traces|logs|metrics/.exec(path)?.[0]}: let OTEL_`),
    )
  }
})

test('the address of one signal without the signal gets an error that names it', async () => {
  for (const path of ['/', '/v1', '/openapi/v1/otlp', '/openapi/v1/otlp/', '/openapi/v1/otlp/v1']) {
    const headers = { 'x-api-key': service.apiKey, 'content-type': 'application/x-protobuf' }
    const reply = await fetch(service.url + path, { method: 'POST', headers, body: 'x' })
    assert.ok(reply.status === 404 || reply.status === 405, path)
    const { detail } = (await reply.json()) as { detail: string }
    assert.match(
      detail,
      /let OTEL_EXPORTER_OTLP_ENDPOINT end with .*, or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT with/,
      path,
    )
  }
})
