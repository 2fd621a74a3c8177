/** With the real OpenTelemetry SDK: events and handles name its spans, and the SDK's own requests create none. */
import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe } from 'node:diagnostics_channel'
import { after, before, test, type TestContext } from 'node:test'
import { context, ROOT_CONTEXT, trace, type Context, type ContextManager } from '@opentelemetry/api'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { startScriptedService, type SentEvent } from '@tacho/sdk-conformance/scripted-service.ts'
import { Tacho, type RunHandle } from '@tacho/sdk'

const exporter = new InMemorySpanExporter()
const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] })
const contexts = new AsyncLocalStorage<Context>()
const manager: ContextManager = {
  active: () => contexts.getStore() ?? ROOT_CONTEXT,
  with: (given, act, self, ...args) => contexts.run(given, () => Reflect.apply(act, self, args) as never),
  bind: (_given, target) => target,
  enable: () => manager,
  disable: () => manager,
}
const tracer = provider.getTracer('test')

before(() => {
  trace.setGlobalTracerProvider(provider)
  context.setGlobalContextManager(manager)
  // Create a span for each request, as the instrumentation of fetch does.
  subscribe('undici:request:create', () => tracer.startSpan('HTTP').end())
})
after(() => {
  context.disable()
  trace.disable()
})

async function scene(t: TestContext) {
  const service = await startScriptedService()
  const tacho = new Tacho({ apiKey: 'k', baseUrl: service.url, clientId: 'c', capture: 'metadata-only' })
  const events = async () => {
    await tacho.flush(60_000)
    return service.requests('events').flatMap(({ json }) => json as (SentEvent & { payload: Record<string, string> })[])
  }
  t.after(async () => {
    await tacho.shutdown(0)
    await service.close()
  })
  return { tacho, events, service }
}

test('events name the trace and the span in which they were recorded', async (t) => {
  const { tacho, events } = await scene(t)
  const run = tacho.startRun()
  run.step('outside')
  const span = tracer.startSpan('request')
  context.with(trace.setSpan(context.active(), span), () => run.step('inside'))
  span.end()
  const [outside, inside] = await events()
  assert.equal(outside?.payload['traceId'], undefined)
  const { traceId, spanId } = span.spanContext()
  assert.deepEqual([inside?.payload['traceId'], inside?.payload['traceSpanId']], [traceId, spanId])
})

test('a handle carries the trace to the next process, whose own trace comes first', async (t) => {
  const { tacho, events } = await scene(t)
  const span = tracer.startSpan('request')
  const handle = context.with(trace.setSpan(context.active(), span), () => tacho.startRun().toHandle())
  const { traceId, spanId } = span.spanContext()
  assert.equal(handle.traceparent, `00-${traceId}-${spanId}-01`)
  const run = tacho.resume(JSON.parse(JSON.stringify(handle)) as RunHandle)
  run.step('in the worker')
  const own = tracer.startSpan('worker')
  context.with(trace.setSpan(context.active(), own), () => run.step('in its trace'))
  const recorded = await events()
  assert.deepEqual(
    recorded.map(({ payload }) => payload['traceSpanId']),
    [spanId, own.spanContext().spanId],
  )
  assert.equal(run.toHandle().traceparent, handle.traceparent)
  assert.equal(tacho.resume({ ...handle, traceparent: '00-x' }).toHandle().traceparent, undefined)
})

test("the SDK's own requests make no spans, and the host's do", async (t) => {
  const { tacho, events, service } = await scene(t)
  exporter.reset()
  const span = tracer.startSpan('request')
  await context.with(trace.setSpan(context.active(), span), async () => {
    tacho.startRun().step('inside')
    await tacho.configuration.refresh()
    await events()
  })
  await provider.forceFlush()
  assert.deepEqual(exporter.getFinishedSpans(), [])
  await context.with(trace.setSpan(context.active(), span), async () => (await fetch(`${service.url}/host`)).text())
  await provider.forceFlush()
  assert.deepEqual(
    exporter.getFinishedSpans().map(({ name }) => name),
    ['HTTP'],
  )
})
