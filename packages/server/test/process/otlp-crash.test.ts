/**
 * Each span of four real exporters is stored once, although the server is killed twice. Run it by hand, because the waits of
 * exporters add up on a slow machine: TACHO_TEST_SPANS=100000 npm test -- otlp-crash
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { context, trace, type Span } from '@opentelemetry/api'
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, TracerProvider, type SpanExporter } from '@opentelemetry/sdk-trace'
import { eventually } from '../setup/eventually.ts'
import { startProcess, temporaryDirectory } from '../setup/process.ts'

const SPANS = Number(process.env['TACHO_TEST_SPANS'] ?? 0)
const EXPORTERS = 4
const BATCH = 500
const AT_ONCE = 4
const SUCCESS = 0

test(
  'spans of four exporters are stored once each, although the server is killed twice',
  {
    skip:
      SPANS === 0 && 'sends so many spans that exporters wait: set TACHO_TEST_SPANS to their number, such as 100000',
  },
  async (t) => {
    const directory = temporaryDirectory(t)
    let server = startProcess(t, directory)
    const url = await server.ready()
    const apiKey = /tacho_[0-9a-f]+_[0-9a-f]+/.exec(server.stdout())?.[0] ?? ''
    const { port } = new URL(url)

    const batches = (EXPORTERS * Math.ceil(SPANS / EXPORTERS)) / BATCH
    const kills = [Math.floor(batches / 3), Math.floor((2 * batches) / 3)]
    let delivered = 0
    let failures = 0
    let underWay = 0
    let restarted = Promise.resolve()

    async function killAndRestart(): Promise<void> {
      server.signal('SIGKILL')
      await server.ended()
      server = startProcess(t, directory, { TACHO_PORT: port })
      await server.ready()
    }

    const fewerThan = (requests: number) => eventually(() => underWay < requests, 'fewer requests under way', 600_000)

    /** A real exporter gives up after some seconds. A collector with a queue does not: it exports the batch again. */
    function exporting(exporter: SpanExporter): SpanExporter {
      return {
        export(spans, done) {
          underWay++
          exporter.export(spans, (result) => {
            underWay--
            if (result.code !== SUCCESS) {
              failures++
              underWay++
              void restarted.then(() => {
                underWay--
                this.export(spans, done)
              })
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

    // The exporter repeats a request for this long.
    const timeoutMillis = 5_000
    const settings = { timeoutMillis, url: `${url}/openapi/v1/otlp/v1/traces`, headers: { 'x-api-key': apiKey } }
    const exporters = [
      new ProtobufExporter({ ...settings, compression: 'gzip' as never }),
      new ProtobufExporter(settings),
      new JsonExporter({ ...settings, compression: 'gzip' as never }),
      new JsonExporter(settings),
    ]
    const sent = await Promise.all(
      exporters.map(async (exporter, index) => {
        const options = {
          maxQueueSize: 2 * BATCH,
          maxExportBatchSize: BATCH,
          scheduledDelayMillis: 600_000,
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
        const ids: string[] = []
        while (ids.length < SPANS / EXPORTERS - 1) {
          ids.push(ended(tracer.startSpan('chat', { attributes }, inside)))
          if (ids.length % BATCH > 0) continue
          await processor.forceFlush()
          await fewerThan(AT_ONCE)
        }
        ids.push(ended(root))
        await processor.forceFlush()
        return { runId: root.spanContext().traceId, ids }
      }),
    )
    await fewerThan(1)
    await restarted
    assert.deepEqual(kills, [])

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
  },
)

const byText = (a: string, b: string) => (a < b ? -1 : 1)

function ended(span: Span): string {
  span.end()
  return span.spanContext().spanId
}
