/** OpenTelemetry's own exporters, with the two settings of docs/otlp.md. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { context, SpanStatusCode, trace, type Tracer } from '@opentelemetry/api'
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-proto'
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchLogRecordProcessor, LoggerProvider } from '@opentelemetry/sdk-logs'
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { startService, type RunDetail, type Service } from '../../setup/service.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

const resource = resourceFromAttributes({ 'service.name': 'shop', 'service.instance.id': 'shop-1' })

/** The settings that an exporter derives from OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS. */
const settings = (signal: string) => ({
  url: `${service.url}/openapi/v1/otlp/v1/${signal}`,
  headers: { 'x-api-key': service.apiKey },
})

/** An agent with a model call and a tool that fails; returns the trace id. */
function work(tracer: Tracer): string {
  const root = tracer.startSpan('invoke_agent refunds', {
    attributes: { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'Refunds' },
  })
  const inside = trace.setSpan(context.active(), root)
  const call = tracer.startSpan(
    'chat gpt-5',
    {
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.request.model': 'gpt-5',
        'gen_ai.usage.input_tokens': 12,
        'gen_ai.usage.output_tokens': 4,
        'gen_ai.input.messages': JSON.stringify([
          { role: 'user', parts: [{ type: 'text', content: 'Rückerstattung €' }] },
        ]),
      },
    },
    inside,
  )
  call.end()
  const tool = tracer.startSpan(
    'execute_tool refund',
    { attributes: { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'refund' } },
    inside,
  )
  tool.recordException(new TypeError('no such order'))
  tool.setStatus({ code: SpanStatusCode.ERROR, message: 'failed' })
  tool.end()
  root.end()
  return root.spanContext().traceId
}

for (const [name, create] of [
  ['protobuf', () => new ProtobufExporter({ ...settings('traces'), compression: 'gzip' as never })],
  ['JSON', () => new JsonExporter(settings('traces'))],
] as const) {
  test(`spans of the ${name} exporter become a run that ends`, async () => {
    const provider = new TracerProvider({ resource, spanProcessors: [new BatchSpanProcessor({ exporter: create() })] })
    const traceId = work(provider.getTracer('tests', '1.0'))
    await provider.shutdown()
    const { status, body: run } = await service.api<RunDetail>(`/runs/${traceId}`)
    assert.equal(status, 200)
    assert.deepEqual([run.status, run.usage.promptTokens, run.usage.completionTokens], ['COMPLETED', 12, 4])
    const told = run.events.map(({ eventType, label }) => `${eventType} ${label}`)
    assert.deepEqual(told.toSorted(), [
      'AGENT_STEP invoke_agent refunds',
      'LLM_CALL chat gpt-5',
      'SESSION_OUTCOME COMPLETED',
      'TOOL_CALL execute_tool refund',
    ])
    const call = run.events.find(({ eventType }) => eventType === 'LLM_CALL')
    assert.deepEqual(call?.payload['messages'], [{ role: 'user', content: 'Rückerstattung €' }])
    const tool = run.events.find(({ eventType }) => eventType === 'TOOL_CALL')
    assert.equal(tool?.payload['toolName'], 'refund')
    assert.partialDeepStrictEqual(tool.payload['error'], { message: 'no such order', type: 'TypeError' })
  })
}

test('records of the log exporter become events of their conversation', async () => {
  const provider = new LoggerProvider({
    resource,
    processors: [new BatchLogRecordProcessor({ exporter: new OTLPLogExporter(settings('logs')) })],
  })
  const logger = provider.getLogger('tests')
  const attributes = { 'session.id': 'talk-1' }
  logger.emit({ severityNumber: 9, body: 'started', attributes })
  logger.emit({ severityNumber: 17, body: 'card declined', attributes })
  await provider.shutdown()
  const { body: run } = await service.api<RunDetail>('/runs/talk-1')
  assert.deepEqual(
    run.events.map(({ eventType, label }) => [eventType, label]),
    [
      ['AGENT_STEP', 'started'],
      ['ERROR', 'card declined'],
    ],
  )
})
