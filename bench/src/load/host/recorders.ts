/** The recorders that the benchmark `host` compares, each as its documentation sets it up. */
import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Tacho as TachoClass } from '@tacho/sdk'
import type { ModelCall, Recorder } from './model-calls.ts'

export interface Recording {
  record(call: ModelCall): void
  flush(): Promise<unknown>
  end(): Promise<unknown>
}

/** Starts a recorder. `folder`: where its packages are installed. */
type Open = (url: string, folder: string) => Promise<Recording>

/** Types of the other recorders' packages, as far as they are used here. */
type Made<Options = unknown, Instance = unknown> = new (options: Options) => Instance
interface Provider {
  getTracer(name: string): { startSpan(name: string, options: { kind: number; attributes: object }): { end(): void } }
  forceFlush(): Promise<void>
  shutdown(): Promise<void>
}
type MakesProvider = Made<{ spanProcessors: unknown[] }, Provider>

async function load<Module>(folder: string, name: string): Promise<Module> {
  const file = createRequire(path.join(folder, 'package.json')).resolve(name)
  return (await import(pathToFileURL(file).href)) as Module
}

export const recorders: Record<Recorder, Open> = {
  async nothing() {
    return { record: () => undefined, flush: () => Promise.resolve(), end: () => Promise.resolve() }
  },
  async tacho(url, folder) {
    const { Tacho } = (await import(folder || '@tacho/sdk')) as { Tacho: typeof TachoClass }
    const tacho = new Tacho({ apiKey: 'bench', baseUrl: url, clientId: 'bench' })
    const run = tacho.startRun({ agentId: 'bench', agentName: 'Bench', sessionId: 'session' })
    return {
      record: ({ model, input, output, promptTokens, completionTokens }) =>
        void run.llmCall({ model, messages: input, output, latency: 340, usage: { promptTokens, completionTokens } }),
      flush: () => tacho.flush(60_000),
      end: () => tacho.shutdown(60_000),
    }
  },
  async opentelemetry(url, folder) {
    type Trace = { TracerProvider: MakesProvider; BatchSpanProcessor: Made }
    const { TracerProvider, BatchSpanProcessor } = await load<Trace>(folder, '@opentelemetry/sdk-trace')
    const { OTLPTraceExporter } = await load<{ OTLPTraceExporter: Made }>(
      folder,
      '@opentelemetry/exporter-trace-otlp-http',
    )
    const exporter = new OTLPTraceExporter({ url: `${url}/v1/traces` })
    const provider = new TracerProvider({ spanProcessors: [new BatchSpanProcessor({ exporter })] })
    const tracer = provider.getTracer('bench')
    return {
      record({ model, input, output, promptTokens, completionTokens }) {
        const attributes = {
          'gen_ai.operation.name': 'chat',
          'gen_ai.request.model': model,
          'gen_ai.usage.input_tokens': promptTokens,
          'gen_ai.usage.output_tokens': completionTokens,
          // As OpenTelemetry's conventions require it for backends without nested attributes.
          'gen_ai.input.messages': typeof input === 'string' ? input : JSON.stringify(input),
          'gen_ai.output.messages': output,
        }
        tracer.startSpan('chat', { kind: 2, attributes }).end()
      },
      flush: () => provider.forceFlush(),
      end: () => provider.shutdown(),
    }
  },
  async langfuse(url, folder) {
    type Trace = { BasicTracerProvider: MakesProvider }
    const { BasicTracerProvider } = await load<Trace>(folder, '@opentelemetry/sdk-trace-base')
    const { LangfuseSpanProcessor } = await load<{ LangfuseSpanProcessor: Made }>(folder, '@langfuse/otel')
    const { setLangfuseTracerProvider, startObservation } = await load<{
      setLangfuseTracerProvider(provider: unknown): void
      startObservation(name: string, fields: object, options: object): { end(): void }
    }>(folder, '@langfuse/tracing')
    const processor = new LangfuseSpanProcessor({ publicKey: 'bench', secretKey: 'bench', baseUrl: url })
    const provider = new BasicTracerProvider({ spanProcessors: [processor] })
    setLangfuseTracerProvider(provider)
    return {
      record({ model, input, output, promptTokens, completionTokens }) {
        const usageDetails = { input: promptTokens, output: completionTokens }
        startObservation('chat', { model, input, output, usageDetails }, { asType: 'generation' }).end()
      },
      flush: () => provider.forceFlush(),
      end: () => provider.shutdown(),
    }
  },
}
