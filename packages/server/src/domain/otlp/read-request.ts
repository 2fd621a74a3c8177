/** Only the groups around spans are read as a whole: a span that cannot be decoded costs nothing but itself. */
import { fromBinary, fromJson, type DescMessage, type JsonValue, type MessageShape } from '@bufbuild/protobuf'
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'
import { fit } from '@tacho/contract/fit.ts'
import { isObject } from '@tacho/contract/read-payload.ts'
import { LIMITS } from '@tacho/contract/limits.ts'
import { Attributes, type Json, type JsonObject } from './attributes.ts'
import { attempt } from '../attempt.ts'
import { hasMoreValues } from '../json-values.ts'
import { MessageCount, TooMany } from './message-count.ts'
import { LogRecordSchema, ResourceSchema, ScopeSchema, SpanSchema, type LogRecord, type Span } from './otlp_pb.ts'

export type Encoding = 'protobuf' | 'json'

/** `item` is null if it cannot be decoded. The error may quote the body, which must stay out of replies. */
export interface Sent<Item> {
  resource: Resource
  scope: JsonObject | undefined
  item: Item | null
}

export type Resource = ReturnType<typeof resourceOf>

export type Read<Item> = Sent<Item>[] | 'malformed' | 'too_many'

export function readSpans(body: Uint8Array, encoding: Encoding): Read<Span> {
  return encoding === 'protobuf'
    ? readProtobuf(body, SpanSchema)
    : readJson(body, ['resourceSpans', 'scopeSpans', 'spans'], SpanSchema)
}

export function readLogs(body: Uint8Array, encoding: Encoding): Read<LogRecord> {
  return encoding === 'protobuf'
    ? readProtobuf(body, LogRecordSchema)
    : readJson(body, ['resourceLogs', 'scopeLogs', 'logRecords'], LogRecordSchema)
}

function whole<Item>(read: () => Sent<Item>[]): Read<Item> {
  try {
    return read()
  } catch (error) {
    return error instanceof TooMany ? 'too_many' : 'malformed'
  }
}

/** Field numbers of opentelemetry-proto: the same for traces and logs, in a request, its groups and their scopes. */
const FIRST = 1
const SECOND = 2

function readProtobuf<Schema extends DescMessage>(body: Uint8Array, schema: Schema): Read<MessageShape<Schema>> {
  const sent: Sent<MessageShape<Schema>>[] = []
  const counted = body.length / 2 > LIMITS.otlpValues ? new MessageCount(LIMITS.otlpValues) : null
  return whole(() => {
    for (const group of messagesOf(body).get(FIRST) ?? []) {
      const inGroup = messagesOf(group)
      const resource = resourceOf(binary(ResourceSchema, counted, inGroup.get(FIRST)))
      for (const inner of inGroup.get(SECOND) ?? []) {
        const inScope = messagesOf(inner)
        const scope = scopeOf(binary(ScopeSchema, counted, inScope.get(FIRST)))
        const items = inScope.get(SECOND) ?? []
        if (sent.length + items.length > LIMITS.otlpItems) throw new TooMany()
        for (const item of items) {
          counted?.add(item, schema)
          sent.push({ resource, scope, item: attempt(() => fromBinary(schema, item, KNOWN)) ?? null })
        }
      }
    }
    return sent
  })
}

const KNOWN = { readUnknownFields: false }

function messagesOf(bytes: Uint8Array): Map<number, Uint8Array[]> {
  const found = new Map<number, Uint8Array[]>()
  const reader = new BinaryReader(bytes)
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag()
    if (wireType !== WireType.LengthDelimited) {
      reader.skip(wireType, field)
      continue
    }
    const messages = found.get(field) ?? []
    found.set(field, messages)
    // Millions of empty messages fit in a body.
    if (messages.push(reader.bytes()) > LIMITS.otlpItems) throw new TooMany()
  }
  return found
}

function binary<Schema extends DescMessage>(
  schema: Schema,
  counted: MessageCount | null,
  found: Uint8Array[] = [],
): MessageShape<Schema> | undefined {
  const last = found.at(-1)
  if (last) counted?.add(last, schema)
  return last && fromBinary(schema, last, KNOWN)
}

/** OTLP/JSON has ids in hex where protobuf's JSON has base64, and clients differ in other ways. */
function readJson<Schema extends DescMessage>(
  body: Uint8Array,
  [resources, scopes, items]: [string, string, string],
  schema: Schema,
): Read<MessageShape<Schema>> {
  const sent: Sent<MessageShape<Schema>>[] = []
  return whole(() => {
    if (hasMoreValues(body, LIMITS.otlpValues)) throw new TooMany()
    const request = objectOf(JSON.parse(Buffer.from(body).toString()))
    for (const group of listOf(request[resources]).map(objectOf)) {
      const resource = resourceOf(json(ResourceSchema, group['resource']))
      for (const inner of listOf(group[scopes]).map(objectOf)) {
        const scope = scopeOf(json(ScopeSchema, inner['scope']))
        const given = listOf(inner[items])
        if (sent.length + given.length > LIMITS.otlpItems) throw new TooMany()
        for (const item of given) {
          sent.push({ resource, scope, item: attempt(() => json(schema, withBinaryIds(objectOf(item)))) ?? null })
        }
      }
    }
    return sent
  })
}

function json<Schema extends DescMessage>(schema: Schema, given: unknown): MessageShape<Schema> | undefined {
  return given === undefined ? undefined : fromJson(schema, given as JsonValue, { ignoreUnknownFields: true })
}

const IDS = ['traceId', 'spanId', 'parentSpanId'] as const
/** Some clients send the code's name instead of its number. */
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
    // Buffer would stop silently at the first other character.
    if (!/^([0-9a-f]{2})*$/i.test(id)) throw new Error('An id is not in hex')
    item[name] = Buffer.from(id, 'hex').toString('base64')
  }
  const { status, links } = item
  if (isObject(status) && STATUS_CODES.has(status['code'])) {
    item['status'] = { ...status, code: STATUS_CODES.get(status['code']) }
  }
  if (links !== undefined) item['links'] = listOf(links).map((link) => withBinaryIds(objectOf(link)))
  return item
}

function listOf(value: unknown): unknown[] {
  if (value === undefined || value === null) return []
  if (Array.isArray(value)) return value
  throw new TypeError('Not a list')
}

function objectOf(value: unknown): Record<string, unknown> {
  if (isObject(value)) return value
  throw new TypeError('Not an object')
}

/** Every event of a process repeats its resource. */
const RESOURCE_BYTES = 4_000

function resourceOf(sent: MessageShape<typeof ResourceSchema> | undefined) {
  const attributes = new Attributes(sent?.attributes ?? [])
  const text = (name: string, max: number): string | undefined => {
    const found = attributes.text(name)
    return found === undefined ? undefined : fit(found, max)
  }
  return {
    service: text('service.name', LIMITS.textChars),
    instance: text('service.instance.id', LIMITS.clientIdChars),
    // One too many: a cut id could be another run's, so the event is rejected.
    runId: text('tacho.run.id', LIMITS.runIdChars + 1),
    sessionId: text('session.id', LIMITS.textChars + 1),
    attributes: repeated(attributes.rest() ?? {}),
  }
}

function repeated(attributes: JsonObject): JsonObject {
  const kept: [string, Json][] = []
  let room = RESOURCE_BYTES
  let dropped = 0
  for (const [name, value] of Object.entries(attributes)) {
    const bytes = Buffer.byteLength(JSON.stringify([name, value]))
    if (bytes > room) dropped++
    else {
      room -= bytes
      kept.push([name, value])
    }
  }
  return { ...Object.fromEntries(kept), ...(dropped > 0 ? { dropped } : {}) }
}

function scopeOf(scope: MessageShape<typeof ScopeSchema> | undefined): JsonObject | undefined {
  if (!scope || scope.name === '') return undefined
  const name = fit(scope.name, LIMITS.labelChars)
  return scope.version === '' ? { name } : { name, version: fit(scope.version, LIMITS.labelChars) }
}
