/** The packages of the recorders that `host` compares with. They are installed when the benchmark runs. */
import path from 'node:path'
import { pythonEnvironment } from '../../../../packages/sdk-conformance/test/python.ts'
import { folderOf, installPackages } from '../../../../packages/sdk-integrations/test/large-packages.ts'

const OPENTELEMETRY = [
  '@opentelemetry/api@1.10.0',
  '@opentelemetry/sdk-trace@3.1.1',
  '@opentelemetry/exporter-trace-otlp-http@0.301.0',
]
/** Langfuse needs older packages of OpenTelemetry. */
const LANGFUSE = [
  '@langfuse/otel@5.11.1',
  '@langfuse/tracing@5.11.1',
  '@opentelemetry/api@1.9.1',
  '@opentelemetry/core@2.12.1',
  '@opentelemetry/sdk-trace-base@2.12.1',
  '@opentelemetry/exporter-trace-otlp-http@0.223.1',
]

export const folders = { tacho: '', nothing: '', opentelemetry: folderOf(OPENTELEMETRY), langfuse: folderOf(LANGFUSE) }

export const installTypeScript = (): boolean => [OPENTELEMETRY, LANGFUSE].every(installPackages)

export const python = pythonEnvironment(path.join(import.meta.dirname, 'requirements.txt'))
