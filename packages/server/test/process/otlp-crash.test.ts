/**
 * Spans of four real exporters, with a server that is killed twice meanwhile: each is stored once. TACHO_TEST_SPANS is their
 * number; 1,000 by default.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { context, trace, type Span } from '@opentelemetry/api'
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, TracerProvider, type SpanExporter } from '@opentelemetry/sdk-trace'
import { startProcess, temporaryDirectory } from '../setup/process.ts'

const SPANS = Number(process.env['TACHO_TEST_SPANS'] ?? 1_000)
const EXPORTERS = 4
const BATCH = SPANS > 10_000 ? 512 : 25
const SUCCESS = 0

test('spans of four exporters are stored once each, although the server is killed twice', async (t) => {
  const directory = temporaryDirectory(t)
  let server = startProcess(t, directory)
  const url = await server.ready()
  const apiKey = /tacho_[0-9a-f]+_[0-9a-f]+/.exec(server.stdout())?.[0] ?? ''
  const { port } = new URL(url)

  const batches = (EXPORTERS * Math.ceil(SPANS / EXPORTERS)) / BATCH
  const kills = [Math.floor(batches / 3), Math.floor((2 * batches) / 3)]
  let delivered = 0
  let failures = 0
  let restarted = Promise.resolve()

  async function killAndRestart(): Promise<void> {
    server.signal('SIGKILL')
    await server.ended()
    server = startProcess(t, directory, { TACHO_PORT: port })
    await server.ready()
  }

  /** A real exporter gives up after some seconds. A collector with a queue does not: it exports the batch again. */
  function exporting(exporter: SpanExporter): SpanExporter {
    return {
      export(spans, done) {
        exporter.export(spans, (result) => {
          if (result.code !== SUCCESS) {
            failures++
            void restarted.then(() => this.export(spans, done))
            return
          }
          if (kills[0] === ++delivered) {
            kills.shift()
            restarted = restarted.then(killAndRestart)
          }
          done(result)
        })
      },
      shutdown: () => exporter.shutdown(),
    }
  }

  const settings = { url: `${url}/openapi/v1/otlp/v1/traces`, headers: { 'x-api-key': apiKey } }
  const exporters = [
    new ProtobufExporter({ ...settings, compression: 'gzip' as never }),
    new ProtobufExporter(settings),
    new JsonExporter({ ...settings, compression: 'gzip' as never }),
    new JsonExporter(settings),
  ]
  const sent = await Promise.all(
    exporters.map(async (exporter, index) => {
      const options = {
        maxQueueSize: SPANS,
        maxExportBatchSize: BATCH,
        scheduledDelayMillis: 10,
        exportTimeoutMillis: 600_000,
      }
      const processor = new BatchSpanProcessor({ ...options, exporter: exporting(exporter) })
      const resource = resourceFromAttributes({ 'service.name': 'crash', 'service.instance.id': `crash-${index}` })
      const provider = new TracerProvider({ resource, spanProcessors: [processor] })
      const tracer = provider.getTracer('tests')
      const root = tracer.startSpan('root')
      const inside = trace.setSpan(context.active(), root)
      const attributes = {
        'gen_ai.operation.name': 'chat',
        'gen_ai.request.model': 'm',
        'gen_ai.usage.input_tokens': 1,
      }
      const ids = Array.from({ length: SPANS / EXPORTERS - 1 }, () =>
        ended(tracer.startSpan('chat', { attributes }, inside)),
      )
      ids.push(ended(root))
      await processor.forceFlush()
      return { runId: root.spanContext().traceId, ids }
    }),
  )
  await restarted
  assert.deepEqual([kills, delivered >= batches], [[], true])

  for (const { runId, ids } of sent) {
    const stored: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const address: string = `${url}/openapi/v1/runs/${runId}/events?limit=200${cursor && `&cursor=${cursor}`}`
      const reply = await fetch(address, { headers: { 'x-api-key': apiKey } })
      const page = (await reply.json()) as { items: { eventId: string }[]; nextCursor: string | null }
      stored.push(...page.items.map(({ eventId }) => eventId))
      cursor = page.nextCursor
    }
    assert.deepEqual(stored.toSorted(byText), [...ids, `${ids.at(-1)}-outcome`].toSorted(byText))
    const run = await fetch(`${url}/openapi/v1/runs/${runId}`, { headers: { 'x-api-key': apiKey } })
    const { usage } = (await run.json()) as { usage: { promptTokens: number } }
    assert.equal(usage.promptTokens, ids.length - 1)
  }
  t.diagnostic(`${SPANS} spans, ${failures} failed exports`)
})

const byText = (a: string, b: string) => (a < b ? -1 : 1)

function ended(span: Span): string {
  span.end()
  return span.spanContext().spanId
}
