/**
 * OpenTelemetry's endpoints (OTLP/HTTP 1.9), below the public prefix. They are not in the OpenAPI document: exporters know
 * them by OpenTelemetry's own specification, and the bodies are its protobuf messages.
 */
import Type from 'typebox'
import { LIMITS } from '../engine/limits.ts'
import type { Route } from './route.ts'

const signal = (name: string, summary: string) =>
  ({
    method: 'POST',
    path: `/otlp/v1/${name}`,
    summary,
    tag: 'Events',
    scopes: ['events:write'],
    body: Type.Object({}),
    bodyBytes: LIMITS.otlpBytes,
    status: 200,
    reply: Type.Object({}),
    errors: [],
  }) as const satisfies Route

export const OTLP_ROUTES = {
  traces: signal('traces', 'Record spans'),
  logs: signal('logs', 'Record log records'),
  metrics: signal('metrics', 'Metrics are not kept; the reply says so'),
}
export type OtlpSignal = keyof typeof OTLP_ROUTES
