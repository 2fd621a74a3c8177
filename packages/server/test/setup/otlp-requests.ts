/** Sends OTLP/HTTP requests in JSON, and reads the events that they become. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { RunDetail, Service } from './service.ts'

export type Value = string | number | boolean | Value[] | { [name: string]: Value }

export function anyValue(value: Value): object {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value === 'number') return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value }
  if (Array.isArray(value)) return { arrayValue: { values: value.map(anyValue) } }
  return { kvlistValue: { values: pairs(value) } }
}

export const pairs = (attributes: Record<string, Value>) =>
  Object.entries(attributes).map(([key, value]) => ({ key, value: anyValue(value) }))

export interface SpanInput {
  traceId?: string
  spanId?: string
  parentSpanId?: string
  name?: string
  attributes?: Record<string, Value>
  [field: string]: unknown
}

export const nanos = (ms: number) => `${ms}000000`
export const newTraceId = () => randomBytes(16).toString('hex')
export const newSpanId = () => randomBytes(8).toString('hex')
export const PARENT = '00f067aa0ba902b7'

export function span({ attributes = {}, ...given }: SpanInput = {}) {
  const start = Date.now() - 2_000
  return {
    traceId: newTraceId(),
    spanId: newSpanId(),
    parentSpanId: PARENT,
    name: 'step',
    kind: 1,
    startTimeUnixNano: nanos(start),
    endTimeUnixNano: nanos(start + 250),
    attributes: pairs(attributes),
    ...given,
  }
}

export const request = (spans: unknown[], resource: Record<string, Value> = { 'service.name': 'shop' }) => ({
  resourceSpans: [
    { resource: { attributes: pairs(resource) }, scopeSpans: [{ scope: { name: 'tests', version: '1' }, spans }] },
  ],
})

export interface Payload {
  [name: string]: unknown
  attributes: Record<string, unknown>
  events: { name: string; attributes: object }[]
  tachoShortened: { originalBytes: number }
}

interface Reply {
  partialSuccess?: { rejectedSpans: string; errorMessage: string }
}

/** Sends to the service of a test file, once it has started. */
export function otlpClient(service: () => Service) {
  const send = (body: unknown, signal = 'traces', headers: Record<string, string> = {}) =>
    service().api<Reply>(`/otlp/v1/${signal}`, { body, headers })

  async function sendProtobuf(body: Buffer) {
    const headers = { 'x-api-key': service().apiKey, 'content-type': 'application/x-protobuf' }
    const reply = await fetch(`${service().url}/openapi/v1/otlp/v1/traces`, { method: 'POST', headers, body })
    return { status: reply.status, bytes: new Uint8Array(await reply.arrayBuffer()) }
  }

  async function timeline(runId: string): Promise<RunDetail> {
    return (await service().api<RunDetail>(`/runs/${runId}`)).body
  }

  /** The event that one span becomes. */
  async function eventOf(given: SpanInput, resource?: Record<string, Value>) {
    const sent = span(given)
    const { status, body } = await send(request([sent], resource))
    assert.deepEqual([status, body], [200, {}])
    const { events } = await timeline(sent.traceId)
    const [event] = events
    assert.ok(event && events.length === 1)
    return { ...event, payload: event.payload as Payload }
  }

  return { send, sendProtobuf, timeline, eventOf }
}
