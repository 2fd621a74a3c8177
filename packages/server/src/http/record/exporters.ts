/** What OpenTelemetry exporters send, at whatever address, and the one that they should use. They never repeat what gets a 404. */
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyRequest } from 'fastify'

export const PROTOBUF = 'application/x-protobuf'

export const NO_GRPC =
  'There is no gRPC: set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf, and let OTEL_EXPORTER_OTLP_ENDPOINT end with /openapi/v1/otlp'
/** UNIMPLEMENTED is never retried. */
export const GRPC_HEADERS = { 'grpc-status': '12', 'grpc-message': NO_GRPC } as const

const BASE = '/openapi/v1/otlp'
/** A signal, a service of gRPC, or a base address. */
const TELEMETRY = /\/v1\/(?:traces|logs|metrics)\/?$|^\/opentelemetry\.proto\.|\/otlp(?:\/v1)?\/?$/
const SIGNAL = /\/v1\/(?:traces|logs|metrics)(?=\/?$)/

export function mediaType(headers: IncomingHttpHeaders): string {
  return (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
}

export const speaksGrpc = (headers: IncomingHttpHeaders): boolean => mediaType(headers).startsWith('application/grpc')

export function pathOf(request: Pick<FastifyRequest, 'url'>): string {
  return request.url.split('?', 1)[0] ?? ''
}

export function isTelemetry(request: FastifyRequest): boolean {
  if (request.method !== 'POST') return false
  return TELEMETRY.test(pathOf(request)) || mediaType(request.headers) === PROTOBUF || speaksGrpc(request.headers)
}

/** To append to an error: exporters append the signal to a base address, but not to the address of one signal. */
export function addressAdvice(request: FastifyRequest): string {
  if (!isTelemetry(request)) return ''
  if (speaksGrpc(request.headers)) return `. ${NO_GRPC}`
  const [signal] = SIGNAL.exec(pathOf(request)) ?? []
  const advice = `let OTEL_EXPORTER_OTLP_ENDPOINT end with ${BASE}`
  if (signal !== undefined) return `. OpenTelemetry goes to ${BASE}${signal}: ${advice}`
  const ofOne = `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT with ${BASE}/v1/traces`
  return `. OpenTelemetry goes to addresses such as ${BASE}/v1/traces: ${advice}, or ${ofOne}`
}
