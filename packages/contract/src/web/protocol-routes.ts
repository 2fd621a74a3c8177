/**
 * Endpoints of other protocols, OpenTelemetry and MCP. They are not in the OpenAPI documents, because clients know them
 * by those protocols' specifications.
 */
import Type from 'typebox'
import { LIMITS } from '../engine/limits.ts'
import type { Route, OperatorRoute } from './route.ts'

/**
 * OpenTelemetry's endpoints (OTLP/HTTP 1.9), below the public prefix. They are not in the OpenAPI document: exporters know
 * them by OpenTelemetry's own specification, and the bodies are its protobuf messages.
 */

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

/**
 * The MCP server over streamable HTTP. It is outside the prefix of the operator API, and not in its OpenAPI document: MCP clients
 * know it by their own specification.
 */

export const MCP_ROUTE = {
  method: 'POST',
  path: '/mcp',
  summary: 'Read what agents did, with an MCP client',
  tag: 'Runs',
  scopes: [],
  // Any signed-in caller, because each read of a tool goes through the operator API, which checks the role.
  access: 'signed-in',
  body: Type.Object({}),
  bodyBytes: LIMITS.operatorBodyBytes,
  status: 200,
  reply: Type.Object({}),
  errors: [],
} as const satisfies OperatorRoute
