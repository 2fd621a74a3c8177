/** Reads only the groups around spans as a whole, so that a span that cannot be decoded affects no other. */
import { fromBinary, fromJson, type DescMessage, type JsonValue, type MessageShape } from '@bufbuild/protobuf'
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'
import { shortenedText } from '@tacho/contract/engine/shown-text.ts'
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { Attributes, type Json, type JsonObject, unreadable, type Unreadable } from './attributes.ts'
import { attempt } from '../../web/text.ts'
import { hasMoreValues } from '../../web/json-body.ts'
import { LogRecordSchema, ResourceSchema, ScopeSchema, SpanSchema, type LogRecord, type Span } from './otlp_pb.ts'
import { otlpJson, withReadableValues } from './read-json.ts'

export type Encoding = 'protobuf' | 'json'

export interface Sent<Item> {
  resource: Resource
  scope: JsonObject | undefined
  item: Item | Unreadable
}

export type Resource = ReturnType<typeof resourceOf>

export type Read<Item> = Sent<Item>[] | 'malformed' | 'too_many' | 'other_shape'

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
    if (error instanceof OtherShape) return 'other_shape'
    return error instanceof TooMany ? 'too_many' : 'malformed'
  }
}

/** Field numbers of opentelemetry-proto. They are the same for traces and logs, and for requests, groups and scopes. */
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
          sent.push({
            resource,
            scope,
            item: itemOf(
              () => fromBinary(schema, item, KNOWN),
              () => namesOf(item),
            ),
          })
        }
      }
    }
    return sent
  })
}

const KNOWN = { readUnknownFields: false }

/** The field numbers of a span. In a log record, fields with these numbers have other types and are skipped. */
const SPAN_NAMES = new Map([
  [1, 'traceId'],
  [2, 'spanId'],
  [5, 'name'],
] as const)

/** Reads the fields before the fault. */
function namesOf(bytes: Uint8Array): Record<string, unknown> {
  const names: Record<string, unknown> = {}
  attempt(() => {
    const reader = new BinaryReader(bytes)
    while (reader.pos < reader.len) {
      const [field, wireType] = reader.tag()
      const name = wireType === WireType.LengthDelimited ? SPAN_NAMES.get(field as 1) : undefined
      if (name === undefined) reader.skip(wireType, field)
      else names[name] = Buffer.from(reader.bytes()).toString(name === 'name' ? 'utf8' : 'hex')
    }
  })
  return names
}

function itemOf<Item>(read: () => Item | undefined, names: () => Record<string, unknown>): Item | Unreadable {
  try {
    const item = read()
    if (item !== undefined) return item
  } catch (error) {
    return unreadable(names(), error)
  }
  return unreadable(names(), undefined)
}

function messagesOf(bytes: Uint8Array): Map<number, Uint8Array[]> {
  const itemBytes = new Map<number, Uint8Array[]>()
  const reader = new BinaryReader(bytes)
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag()
    if (wireType !== WireType.LengthDelimited) {
      reader.skip(wireType, field)
      continue
    }
    const messages = itemBytes.get(field) ?? []
    itemBytes.set(field, messages)
    // Bounded, because millions of empty messages fit in a body.
    if (messages.push(reader.bytes()) > LIMITS.otlpItems) throw new TooMany()
  }
  return itemBytes
}

function binary<Schema extends DescMessage>(
  schema: Schema,
  counted: MessageCount | null,
  itemBytes: Uint8Array[] = [],
): MessageShape<Schema> | undefined {
  const last = itemBytes.at(-1)
  if (last) counted?.add(last, schema)
  return last && fromBinary(schema, last, KNOWN)
}

/** Corrects ids, which OTLP/JSON has in hex and protobuf's JSON in base64, and other differences of clients. */
function readJson<Schema extends DescMessage>(
  body: Uint8Array,
  [resources, scopes, items]: [string, string, string],
  schema: Schema,
): Read<MessageShape<Schema>> {
  const sent: Sent<MessageShape<Schema>>[] = []
  return whole(() => {
    if (hasMoreValues(body, LIMITS.otlpValues, { names: false })) throw new TooMany()
    const request = objectOf(otlpJson(body))
    if (Object.keys(request).length > 0 && member(request, resources) === undefined) throw new OtherShape()
    for (const group of listOf(member(request, resources)).map(objectOf)) {
      const resource = resourceOf(json(ResourceSchema, group['resource']))
      for (const inner of listOf(member(group, scopes)).map(objectOf)) {
        const scope = scopeOf(json(ScopeSchema, inner['scope']))
        const itemList = listOf(member(inner, items))
        if (sent.length + itemList.length > LIMITS.otlpItems) throw new TooMany()
        for (const item of itemList) {
          const read = itemOf(
            () => jsonItem(schema, objectOf(item)),
            () => (isObject(item) ? camel(item) : {}),
          )
          sent.push({ resource, scope, item: read })
        }
      }
    }
    return sent
  })
}

class OtherShape extends Error {}

function jsonItem<Schema extends DescMessage>(schema: Schema, itemFields: Record<string, unknown>) {
  const item = withBinaryIds(camel(itemFields))
  return attempt(() => json(schema, item)) ?? json(schema, withReadableValues(item))
}

function json<Schema extends DescMessage>(schema: Schema, jsonItem: unknown): MessageShape<Schema> | undefined {
  return jsonItem === undefined ? undefined : fromJson(schema, jsonItem as JsonValue, { ignoreUnknownFields: true })
}

const IDS = ['traceId', 'spanId', 'parentSpanId'] as const
/**
 * Names in protobuf's own JSON, which some clients send: snake case, and the status code's name instead of its number.
 */
const SNAKE_IDS = new Map<string, string>([
  ['trace_id', 'traceId'],
  ['span_id', 'spanId'],
  ['parent_span_id', 'parentSpanId'],
])
const STATUS_CODES = new Map<unknown, number>([
  ['STATUS_CODE_UNSET', 0],
  ['STATUS_CODE_OK', 1],
  ['STATUS_CODE_ERROR', 2],
])

function member(object: Record<string, unknown>, name: string): unknown {
  return object[name] ?? object[name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)]
}

/** Only the ids need this: the reader of protobuf's JSON knows both spellings of other fields. */
function camel(jsonFields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(jsonFields).map(([name, value]) => [SNAKE_IDS.get(name) ?? name, value]))
}

function withBinaryIds(jsonFields: Record<string, unknown>): Record<string, unknown> {
  const item = { ...jsonFields }
  for (const name of IDS) {
    const id = item[name]
    if (typeof id !== 'string') continue
    // Checked first, because Buffer would stop silently at the first other character.
    if (!/^([0-9a-f]{2})*$/i.test(id)) throw new Error(`its ${name} is not in hex`)
    item[name] = Buffer.from(id, 'hex').toString('base64')
  }
  const { status, links } = item
  if (isObject(status) && STATUS_CODES.has(status['code'])) {
    item['status'] = { ...status, code: STATUS_CODES.get(status['code']) }
  }
  if (links !== undefined) item['links'] = listOf(links).filter(isObject).map(linkOf)
  return item
}

/** A link with an invalid id keeps its attributes. */
function linkOf(jsonFields: Record<string, unknown>): Record<string, unknown> {
  const link = camel(jsonFields)
  return attempt(() => withBinaryIds(link)) ?? { attributes: link['attributes'] ?? [] }
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

/** Bounded, because every event of a process repeats its resource. */
const RESOURCE_BYTES = 4_000

function resourceOf(sent: MessageShape<typeof ResourceSchema> | undefined) {
  const attributes = new Attributes(sent?.attributes ?? [])
  const text = (name: string, max: number): string | undefined => {
    const attributeText = attributes.text(name)
    return attributeText === undefined ? undefined : shortenedText(attributeText, max)
  }
  return {
    service: text('service.name', LIMITS.textChars),
    instance: text('service.instance.id', LIMITS.clientIdChars),
    // Read one character too many: a cut id could be another run's, so an id that is too long must be rejected.
    runId: text('tacho.run.id', LIMITS.runIdChars + 1),
    sessionId: text('session.id', LIMITS.textChars + 1),
    attributes: repeated(attributes.rest() ?? {}),
  }
}

function repeated(attributes: JsonObject): JsonObject {
  const shortPairs: [string, Json][] = []
  let room = RESOURCE_BYTES
  let dropped = 0
  for (const [name, value] of Object.entries(attributes)) {
    const bytes = Buffer.byteLength(JSON.stringify([name, value]))
    if (bytes > room) dropped++
    else {
      room -= bytes
      shortPairs.push([name, value])
    }
  }
  return { ...Object.fromEntries(shortPairs), ...(dropped > 0 ? { dropped } : {}) }
}

function scopeOf(scope: MessageShape<typeof ScopeSchema> | undefined): JsonObject | undefined {
  if (!scope || scope.name === '') return undefined
  const name = shortenedText(scope.name, LIMITS.labelChars)
  return scope.version === '' ? { name } : { name, version: shortenedText(scope.version, LIMITS.labelChars) }
}

/** Too many messages. They are counted before decoding, because two bytes can become a message of several objects. */

class TooMany extends Error {}

/** The decoder refuses deeper messages. */
const LEVELS_MAX = 100

const embedded = new WeakMap<DescMessage, ReadonlyMap<number, DescMessage>>()

class MessageCount {
  #left: number

  constructor(most: number) {
    this.#left = most
  }

  /** Throws TooMany. Counting ends at the first unreadable byte, because nothing after it is decoded. */
  add(bytes: Uint8Array, schema: DescMessage): void {
    try {
      this.#addWithin(bytes, schema, 0)
    } catch (error) {
      if (error instanceof TooMany) throw error
    }
  }

  #addWithin(bytes: Uint8Array, schema: DescMessage, level: number): void {
    const messages = messagesIn(schema)
    const reader = new BinaryReader(bytes)
    while (reader.pos < reader.len) {
      const [field, wireType] = reader.tag()
      const message = wireType === WireType.LengthDelimited ? messages.get(field) : undefined
      if (message === undefined) {
        reader.skip(wireType, field)
        continue
      }
      this.#left -= 1
      if (this.#left < 0) throw new TooMany()
      const content = reader.bytes()
      if (level < LEVELS_MAX) this.#addWithin(content, message, level + 1)
    }
  }
}

function messagesIn(schema: DescMessage): ReadonlyMap<number, DescMessage> {
  let embeddedFields = embedded.get(schema)
  if (embeddedFields === undefined) {
    embeddedFields = new Map(
      schema.fields.flatMap(({ number, message }) => (message ? [[number, message] as const] : [])),
    )
    embedded.set(schema, embeddedFields)
  }
  return embeddedFields
}
