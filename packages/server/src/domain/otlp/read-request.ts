/** Reads the body of an OTLP/HTTP request, in protobuf or JSON, into its spans or log records. */
import { fromBinary, fromJson, type DescMessage, type JsonValue, type MessageShape } from '@bufbuild/protobuf'
import { Attributes, type JsonObject } from './attributes.ts'
import {
  LogRecordSchema,
  LogRequestSchema,
  ResourceSchema,
  ScopeSchema,
  SpanSchema,
  TraceRequestSchema,
  type LogRecord,
  type Resource,
  type Scope,
  type Span,
} from './otlp_pb.ts'

export type Encoding = 'protobuf' | 'json'

/** One span or log record with what it shares with others; `item` is null if it can't be read. */
export interface Sent<Item> {
  resource: ResourceFacts
  scope: JsonObject | undefined
  item: Item | null
}

/** Attributes of the process that sent it. */
export interface ResourceFacts {
  attributes: JsonObject
  text: (...names: string[]) => string | undefined
}

export function readSpans(body: Uint8Array, encoding: Encoding): Sent<Span>[] | null {
  if (encoding === 'json') return readJson(body, ['resourceSpans', 'scopeSpans', 'spans'], SpanSchema)
  const request = decoded(() => fromBinary(TraceRequestSchema, body, { readUnknownFields: false }))
  return (
    request &&
    request.resourceSpans.flatMap(({ resource, scopeSpans }) => {
      const facts = resourceFacts(resource)
      return scopeSpans.flatMap(({ scope, spans }) =>
        spans.map((item) => ({ resource: facts, scope: scopeOf(scope), item })),
      )
    })
  )
}

export function readLogs(body: Uint8Array, encoding: Encoding): Sent<LogRecord>[] | null {
  if (encoding === 'json') return readJson(body, ['resourceLogs', 'scopeLogs', 'logRecords'], LogRecordSchema)
  const request = decoded(() => fromBinary(LogRequestSchema, body, { readUnknownFields: false }))
  return (
    request &&
    request.resourceLogs.flatMap(({ resource, scopeLogs }) => {
      const facts = resourceFacts(resource)
      return scopeLogs.flatMap(({ scope, logRecords }) =>
        logRecords.map((item) => ({ resource: facts, scope: scopeOf(scope), item })),
      )
    })
  )
}

/** Null if the body is not of its format: what threw may quote it, and payloads stay out of replies. */
function decoded<T>(decode: () => T): T | null {
  try {
    return decode()
  } catch {
    return null
  }
}

/** OTLP/JSON has ids in hex where protobuf's JSON has base64, and clients differ: each item is read alone. */
function readJson<Schema extends DescMessage>(
  body: Uint8Array,
  [resources, scopes, items]: [string, string, string],
  schema: Schema,
): Sent<MessageShape<Schema>>[] | null {
  const request = decoded(() => JSON.parse(Buffer.from(body).toString()) as unknown)
  if (!isObject(request)) return null
  return listOf(request[resources]).flatMap((group) => {
    const facts = resourceFacts(messageOf(ResourceSchema, group['resource']) ?? undefined)
    return listOf(group[scopes]).flatMap((inner) => {
      const scope = scopeOf(messageOf(ScopeSchema, inner['scope']) ?? undefined)
      return listOf(inner[items]).map((item) => ({
        resource: facts,
        scope,
        item: messageOf(schema, withBinaryIds(item)),
      }))
    })
  })
}

function messageOf<Schema extends DescMessage>(schema: Schema, given: unknown): MessageShape<Schema> | null {
  return decoded(() => fromJson(schema, given as JsonValue, { ignoreUnknownFields: true }))
}

const IDS = ['traceId', 'spanId', 'parentSpanId'] as const
/** Some clients write the name of the code. */
const STATUS_CODES = new Map<unknown, number>([
  ['STATUS_CODE_UNSET', 0],
  ['STATUS_CODE_OK', 1],
  ['STATUS_CODE_ERROR', 2],
])

function withBinaryIds(given: Record<string, unknown>): Record<string, unknown> {
  const item = { ...given }
  for (const name of IDS) {
    const id = item[name]
    if (typeof id !== 'string') continue
    // Buffer would read only the digits before the first other character.
    item[name] = /^([0-9a-f]{2})*$/i.test(id) ? Buffer.from(id, 'hex').toString('base64') : undefined
    if (item[name] === undefined) delete item[name]
  }
  const { status, links } = item
  if (isObject(status) && STATUS_CODES.has(status['code']))
    item['status'] = { ...status, code: STATUS_CODES.get(status['code']) }
  if (Array.isArray(links)) item['links'] = listOf(links).map(withBinaryIds)
  return item
}

function listOf(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.map((item: unknown) => (isObject(item) ? item : {})) : []
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function resourceFacts(resource: Resource | undefined): ResourceFacts {
  const attributes = new Attributes(resource?.attributes ?? [])
  return { attributes: attributes.rest() ?? {}, text: (...names) => attributes.text(...names) }
}

function scopeOf(scope: Scope | undefined): JsonObject | undefined {
  if (!scope || scope.name === '') return undefined
  return scope.version === '' ? { name: scope.name } : { name: scope.name, version: scope.version }
}
