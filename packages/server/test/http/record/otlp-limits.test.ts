/** The limits of OTLP over HTTP: what is refused as a whole, and what is shortened and says so (docs/otlp.md). */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { create, toBinary } from '@bufbuild/protobuf'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { nanos, newSpanId, newTraceId, otlpClient, PARENT, request, span } from '../../setup/otlp-requests.ts'
import { SpanSchema } from '../../../src/domain/record/otlp/otlp_pb.ts'
import { startService, type Service } from '../../setup/service.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

const { send, sendProtobuf, eventOf, timeline } = otlpClient(() => service)

test('a payload over 256 KiB is shortened and says so', async () => {
  const { payload } = await eventOf({ attributes: { long: 'x'.repeat(LIMITS.payloadBytes), other: 'y'.repeat(300) } })
  assert.ok(JSON.stringify(payload).length <= LIMITS.payloadBytes)
  assert.ok(payload.tachoShortened.originalBytes > LIMITS.payloadBytes)
  assert.match(String(payload.attributes['long']), /^x{100000,}… \[cut: \d+ characters\]x{50000,}$/)
  assert.equal(payload.attributes['other'], 'y'.repeat(300))
  const many = Object.fromEntries(
    Array.from({ length: 900 }, (_, index) => [`name ${index} ${'n'.repeat(400)}`, index]),
  )
  const { payload: cut } = await eventOf({ attributes: many })
  assert.equal(JSON.stringify(cut.attributes), '"[cut: 900 values]"')
})

test('a long text keeps its beginning and its end, and a file in base64 is whole or its type, size and hash', async () => {
  const log = `start ${'é step\n'.repeat(60_000)}Error: out of stock`
  const { payload } = await eventOf({
    attributes: { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.call.result': log },
  })
  const output = String(payload['output'])
  assert.match(output, /^start é step/)
  assert.match(output, /Error: out of stock$/)
  assert.ok(Buffer.byteLength(output) > 60_000)
  const bytes = Buffer.alloc(300_000, 7)
  const image = `data:image/png;base64,${bytes.toString('base64')}`
  const shown = await eventOf({ attributes: { small: `data:image/png;base64,${'A'.repeat(400)}`, image } })
  assert.equal(shown.payload.attributes['small'], `data:image/png;base64,${'A'.repeat(400)}`)
  const digest = createHash('sha256').update(bytes).digest('hex')
  assert.equal(shown.payload.attributes['image'], `[image/png, 300000 bytes, sha256 ${digest}]`)
})

test('a request has at most 10,000 spans, however small they are', async () => {
  const traceId = newTraceId()
  const spans = Array.from({ length: LIMITS.otlpItems }, (_, index) => ({
    traceId,
    spanId: (index + 1).toString(16).padStart(16, '0'),
    parentSpanId: PARENT,
    name: 's',
    startTimeUnixNano: nanos(Date.now()),
  }))
  assert.deepEqual((await send(request(spans))).body, {})
  const more = await send(request([...spans, spans[0]]))
  assert.deepEqual([more.status, (more.body as { code?: string }).code], [413, 'body_too_large'])
  // Two million empty spans in 4 MiB: refused before any of them is decoded.
  const empty = Buffer.alloc(4_000_000)
  for (let at = 0; at < empty.length; at += 2) empty[at] = 0x12
  const length = (bytes: number) =>
    Buffer.from([(bytes & 0x7f) | 0x80, ((bytes >> 7) & 0x7f) | 0x80, ((bytes >> 14) & 0x7f) | 0x80, bytes >> 21])
  const scope = Buffer.concat([Buffer.from([0x12]), length(empty.length), empty])
  assert.equal((await sendProtobuf(Buffer.concat([Buffer.from([0x0a]), length(scope.length), scope]))).status, 413)
})

test('a request has at most 500,000 values, however small they are', async () => {
  const field = (number: number, content: Uint8Array): Buffer => {
    const { length } = content
    const size = [length | 0x80, (length >> 7) | 0x80, (length >> 14) | 0x80, length >> 21]
    return Buffer.concat([
      Buffer.from([(number << 3) | 2, ...size.map((byte, at) => (at < 3 ? byte | 0x80 : byte))]),
      content,
    ])
  }
  // A protobuf attribute whose value is a list of empty values, of two bytes each.
  const listOf = (values: number): Buffer => {
    const empty = Buffer.alloc(2 * (values - 3))
    for (let at = 0; at < empty.length; at += 2) empty[at] = 0x0a
    const attribute = Buffer.concat([field(1, Buffer.from('list')), field(2, field(5, empty))])
    const times = Buffer.from(
      toBinary(SpanSchema, create(SpanSchema, { startTimeUnixNano: BigInt(Date.now()) * 1_000_000n })),
    )
    const span = Buffer.concat([
      field(1, Buffer.alloc(16, 1)),
      field(2, Buffer.alloc(8, 1)),
      times,
      field(9, attribute),
    ])
    return field(1, field(2, field(2, span)))
  }
  assert.equal((await sendProtobuf(listOf(LIMITS.otlpValues))).status, 200)
  assert.equal((await sendProtobuf(listOf(LIMITS.otlpValues + 1))).status, 413)
  // Each list counts twice: for its bracket and for its comma.
  const lists = Buffer.from(`{"resourceSpans":[],"lists":[${'[],'.repeat(LIMITS.otlpValues / 2)}[]]}`)
  assert.equal((await send(lists)).status, 413)
})

test('a resource is repeated in each event in at most 4 KiB', async () => {
  const resource = Object.fromEntries(Array.from({ length: 3_000 }, (_, index) => [`name ${index}`, 'v'.repeat(20)]))
  const { payload } = await eventOf({}, { 'service.name': 'shop', ...resource })
  assert.ok(JSON.stringify(payload['resource']).length <= 4_096)
  assert.equal((payload['resource'] as { 'service.name': string })['service.name'], 'shop')
  assert.ok((payload['resource'] as { dropped: number }).dropped > 800)
})

test('spans that would take more than 32 MiB as events are refused together', async () => {
  const wide = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`name ${index}`, 'v'.repeat(80)]))
  const spans = Array.from({ length: 9_500 }, () => span())
  const { status, body } = await send(gzipSync(JSON.stringify(request(spans, wide))), 'traces', {
    'content-encoding': 'gzip',
  })
  assert.deepEqual([status, (body as { code?: string }).code], [413, 'body_too_large'])
})

test('attributes, events and links beyond 1,000 are left out and counted', async () => {
  const events = Array.from({ length: 1_001 }, () => ({ name: 'e', timeUnixNano: nanos(Date.now()) }))
  const links = Array.from({ length: 1_002 }, () => ({ traceId: newTraceId(), spanId: newSpanId() }))
  const attributes = Object.fromEntries(Array.from({ length: 1_003 }, (_, index) => [`a${index}`, index]))
  const { payload } = await eventOf({ events, links, attributes })
  assert.deepEqual(payload['dropped'], { attributes: 3, events: 1, links: 2 })
  assert.equal(Object.keys(payload.attributes).length, 1_000)
})

test('a request of up to 20 MiB is accepted, a larger one is refused, compressed or not', async () => {
  const spans = Array.from({ length: 400 }, () => span({ attributes: { text: 'x'.repeat(9_000) } }))
  const text = JSON.stringify(request(spans))
  assert.ok(text.length > 3_700_000 && text.length < LIMITS.otlpBytes)
  const full = text + ' '.repeat(LIMITS.otlpBytes - text.length)
  assert.deepEqual((await send(gzipSync(full), 'traces', { 'content-encoding': 'gzip' })).body, {})
  const refused = await send(`${full} `)
  assert.equal(refused.status, 413)
  assert.match((refused.body as { detail?: string }).detail ?? '', /: lower OTEL_BSP_MAX_EXPORT_BATCH_SIZE/)
  assert.equal((await send(gzipSync(`${full} `), 'traces', { 'content-encoding': 'gzip' })).status, 413)
})

test('1,000 spans of 10 kB, 45 of 100 kB, and 3,000 of 2 kB are stored from one request each', async () => {
  for (const [count, chars] of [
    [1_000, 10_000],
    [45, 100_000],
    [3_000, 2_000],
  ] as const) {
    const traceId = newTraceId()
    const spans = Array.from({ length: count }, () => span({ traceId, attributes: { text: 'y'.repeat(chars) } }))
    assert.deepEqual((await send(gzipSync(JSON.stringify(request(spans))), 'traces', GZIP)).body, {})
    const { body } = await service.operator<{ eventCount: number }>(
      `/environments/${service.environmentId}/runs/${(await timeline(traceId)).id}`,
    )
    assert.equal(body.eventCount, count)
  }
})

const GZIP = { 'content-encoding': 'gzip' }
