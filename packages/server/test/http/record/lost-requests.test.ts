/** OpenTelemetry requests that exporters never repeat: answered in their protocol, counted by key, and shown. */
import assert from 'node:assert/strict'
import { connect, type ClientHttp2Session, type IncomingHttpHeaders } from 'node:http2'
import { test } from 'node:test'
import type { ApiKey } from '@tacho/contract/tenants/api-key.ts'
import type { DoctorReport } from '@tacho/contract/web/operator-routes.ts'
import { eventually } from '../../setup/eventually.ts'
import { request, span } from '../../setup/otlp-requests.ts'
import { event, startService, type Service } from '../../setup/service.ts'

const keyOf = async (service: Service, name: string): Promise<ApiKey | undefined> => {
  const path = `/environments/${service.environmentId}/keys`
  return (await service.operator<{ items: ApiKey[] }>(path)).body.items.find((key) => key.name === name)
}

const telemetryCheck = async (service: Service): Promise<string> =>
  (await service.operator<DoctorReport>('/doctor')).body.checks.find(({ name }) => name === 'telemetry')?.detail ?? ''

test('lost requests are counted by key, with the reason of the latest, and the doctor names them', async (t) => {
  const service = await startService({ otlpMaxBytes: '1MiB' })
  t.after(() => service.close())
  assert.match(await telemetryCheck(service), /1048576 bytes \(--otlp-max-bytes\)\. In the last 7 days, none/)
  const name = 'exporter'
  const key = await service.newKey({ name, scopes: ['events:write'] })
  const post = (path: string, body: string, type: string, sentKey = key) =>
    fetch(service.url + path, { method: 'POST', headers: { 'x-api-key': sentKey, 'content-type': type }, body })
  const traces = '/openapi/v1/otlp/v1/traces'
  assert.equal((await post(traces, JSON.stringify(request([span()])), 'application/json')).status, 200)
  for (const [path, body, type, status] of [
    ['/v1/traces', '{}', 'application/json', 404],
    [traces, 'x', 'text/plain', 415],
    [traces, '{', 'application/json', 400],
    [traces, '\xff', 'application/x-protobuf', 400],
    ['/', 'x', 'application/x-protobuf', 405],
    [traces, ' '.repeat(1_048_577), 'application/json', 413],
  ] as const) {
    assert.equal((await post(path, body, type)).status, status, path)
  }
  assert.equal((await post('/v1/traces', '{}', 'application/json', 'tacho_unknown')).status, 404)
  await eventually(async () => (await keyOf(service, name))?.lostRequests === 6, 'six lost requests')
  const { lastLostReason, lastLostAt } = (await keyOf(service, name)) ?? {}
  assert.match(lastLostReason ?? '', /at most 1048576 bytes after decompression: lower OTEL_BSP_MAX_EXPORT_BATCH_SIZE/)
  assert.ok(Math.abs(Date.parse(lastLostAt ?? '') - Date.now()) < 60_000)
  assert.match(
    await telemetryCheck(service),
    /^Warning: 6 OpenTelemetry requests from key "exporter" of default\/development/,
  )
})

test('a key without the scope loses its requests too, and what is retried is not lost', async (t) => {
  const service = await startService()
  t.after(() => service.close())
  const key = await service.newKey({ name: 'reader', scopes: ['usage:read'] })
  const headers = { 'x-api-key': key }
  assert.equal((await service.api('/otlp/v1/traces', { body: '{}', headers })).status, 403)
  await eventually(async () => (await keyOf(service, 'reader'))?.lostRequests === 1, 'a lost request')
  assert.match((await keyOf(service, 'reader'))?.lastLostReason ?? '', /lacks events:write/)
})

/** Calls like a gRPC client: over HTTP/2 without an upgrade. */
async function call(url: string, headers: IncomingHttpHeaders): Promise<IncomingHttpHeaders> {
  const session: ClientHttp2Session = connect(url)
  const stream = session.request({ ':method': 'POST', te: 'trailers', ...headers })
  try {
    return await new Promise((resolve, reject) => {
      session.once('error', reject)
      stream.once('response', resolve).once('error', reject)
      stream.end(Buffer.alloc(100_000))
    })
  } finally {
    session.destroy()
  }
}

test('gRPC gets a status of gRPC that names http/protobuf, and counts as lost', async (t) => {
  const service = await startService()
  t.after(() => service.close())
  const key = await service.newKey({ name: 'grpc', scopes: ['events:write'] })
  const path = '/opentelemetry.proto.collector.trace.v1.TraceService/Export'
  const grpc = { ':path': path, 'content-type': 'application/grpc', 'x-api-key': key }
  const answer = await call(service.url, grpc)
  assert.deepEqual([answer[':status'], answer['content-type'], answer['grpc-status']], [200, 'application/grpc', '12'])
  assert.match(String(answer['grpc-message']), /OTEL_EXPORTER_OTLP_PROTOCOL=http\/protobuf/)
  await eventually(async () => (await keyOf(service, 'grpc'))?.lostRequests === 1, 'a lost request')
  assert.equal((await call(service.url, { ':path': '/', 'content-type': 'text/plain' }))[':status'], 505)
  // The same through a proxy that uses HTTP/1.1 to the service.
  const headers = { 'x-api-key': key, 'content-type': 'application/grpc' }
  const reply = await fetch(service.url + path, { method: 'POST', headers, body: 'x' })
  assert.match(reply.headers.get('grpc-message') ?? '', /http\/protobuf/)
  assert.match(((await reply.json()) as { detail: string }).detail, /There is no gRPC/)
})

test('many clients of gRPC end, and the service still answers', async (t) => {
  const service = await startService()
  t.after(() => service.close())
  const headers = { ':path': '/x', 'content-type': 'application/grpc' }
  const all = await Promise.allSettled(Array.from({ length: 150 }, () => call(service.url, headers)))
  assert.ok(all.filter(({ status }) => status === 'fulfilled').length >= 100)
  assert.equal((await service.api('/runs')).status, 200)
})

test('a client says that its spool is full, which the metric counts, and the doctor names its key', async (t) => {
  const service = await startService()
  t.after(() => service.close())
  const spools = async () =>
    (await service.operator<DoctorReport>('/doctor')).body.checks.find(({ name }) => name === 'spools')?.detail ?? ''
  const counted = async (trouble: string) =>
    (await service.call('/metrics')).text.match(
      new RegExp(`^tacho_client_spool_trouble_total\\{trouble="${trouble}"\\} (\\d+)$`, 'm'),
    )?.[1]
  assert.equal(await spools(), 'In the last 7 days, no client said that its spool was full')
  assert.deepEqual([await counted('full'), await counted('failed')], ['0', '0'])
  const key = await service.newKey({ name: 'agent', scopes: ['events:write'] })
  const record = (trouble: string) =>
    service.api('/events/batch', { body: [event()], headers: { 'x-api-key': key, 'x-tacho-spool': trouble } })
  for (const trouble of ['constructor', 'FULL', '', 'full', 'full']) assert.equal((await record(trouble)).status, 200)
  assert.deepEqual([await counted('full'), await counted('failed')], ['2', '0'])
  await eventually(async () => /"agent" of default\/development had a full spool/.test(await spools()), 'a full spool')
  const refused = { body: {}, headers: { 'x-api-key': key, 'x-tacho-spool': 'failed' } }
  assert.equal((await service.api('/events/batch', refused)).status, 400)
  assert.equal(await counted('failed'), '0')
  await record('failed')
  await eventually(
    async () => /"agent" of default\/development cannot use its spool/.test(await spools()),
    'a failed one',
  )
})
