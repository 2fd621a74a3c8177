/** Reads what other tools export as spans of OTLP/JSON: OTLP itself, Langfuse, and Phoenix (OpenInference). Pure. */
import { hash } from 'node:crypto'
import { isObject } from '@tacho/contract/record/payload-reader.ts'

export const SPAN_FORMATS = ['otlp', 'langfuse', 'phoenix'] as const
export type SpanFormat = (typeof SPAN_FORMATS)[number]

type Fields = Record<string, unknown>

export interface SourceSpan {
  /** The span in OTLP/JSON. */
  span: Fields
  resource?: unknown
  scope?: unknown
  /** A Langfuse trace, which is separate from its observations. It becomes their root span. */
  isTrace?: true
}

/** A fault of a span. Its message is part of a sentence: "it has no …". */
export class SpanFault extends Error {}

/** The spans of one JSON value: of a line, or of the whole file. */
export function spansOf(format: SpanFormat, value: unknown): SourceSpan[] {
  if (Array.isArray(value)) return value.flatMap((item) => spansOf(format, item))
  if (!isObject(value)) throw new SpanFault('it is not a JSON object')
  if (Array.isArray(value['data'])) return spansOf(format, value['data'])
  if (format === 'langfuse') return langfuseSpans(value)
  return format === 'phoenix' ? phoenixSpans(value) : otlpSpans(value)
}

/** A member whose name is in camel or snake case. */
export function member(fields: Fields, name: string): unknown {
  return fields[name] ?? fields[name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)] ?? undefined
}

const textOf = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined)
const listOf = (value: unknown) => (Array.isArray(value) ? value.filter(isObject) : [])

/** A span, or a request as the Collector's file exporter writes one on each line. */
function otlpSpans(value: Fields): SourceSpan[] {
  const groups = member(value, 'resourceSpans')
  if (Array.isArray(groups)) {
    return listOf(groups).flatMap(({ resource, ...group }) =>
      listOf(member(group, 'scopeSpans')).flatMap(({ scope, spans }) =>
        (Array.isArray(spans) ? (spans as unknown[]) : []).map((span) => ({
          span: isObject(span) ? span : { span },
          resource,
          scope,
        })),
      ),
    )
  }
  // SDKs print spans in this form.
  if (isObject(value['context'])) return phoenixSpans(value)
  if (member(value, 'spanId') !== undefined)
    return [{ span: value, resource: value['resource'], scope: value['scope'] }]
  throw new SpanFault('it has neither resourceSpans nor a spanId')
}

/** A row of `get_spans_dataframe()`, or a span of Phoenix' API. */
function phoenixSpans(value: Fields): SourceSpan[] {
  // pandas' to_json writes columns by default, not records.
  const { name: names, start_time: starts } = value
  if (isObject(names) && isObject(starts)) {
    return Object.keys(starts).map((row) =>
      phoenixSpan(
        Object.fromEntries(
          Object.entries(value).map(([name, column]) => [name, isObject(column) ? column[row] : null]),
        ),
      ),
    )
  }
  return [phoenixSpan(value)]
}

function phoenixSpan(row: Fields): SourceSpan {
  const context = isObject(row['context']) ? row['context'] : {}
  const [traceId, spanId] = [
    row['context.trace_id'] ?? context['trace_id'],
    row['context.span_id'] ?? context['span_id'],
  ]
  if (textOf(traceId) === undefined || textOf(spanId) === undefined) {
    throw new SpanFault('it has no context with trace_id and span_id')
  }
  const columns = Object.entries(row).flatMap(([name, column]) =>
    name.startsWith('attributes.') ? [[name.slice('attributes.'.length), column] as const] : [],
  )
  const attributes = { ...(isObject(row['attributes']) ? row['attributes'] : {}), ...Object.fromEntries(columns) }
  const kind = textOf(row['span_kind'])
  if (kind !== undefined && !kind.startsWith('SpanKind.')) attributes['openinference.span.kind'] ??= kind
  const status = isObject(row['status']) ? row['status'] : {}
  const code = textOf(row['status_code'] ?? status['status_code'])
  const events = listOf(row['events']).map(({ name, timestamp, attributes: pairs }) => ({
    name: textOf(name) ?? '',
    timeUnixNano: nanosOf(timestamp) ?? '0',
    attributes: keyValues(pairs),
  }))
  return {
    span: {
      traceId: hexId(traceId, 32),
      spanId: hexId(spanId, 16),
      parentSpanId: hexId(row['parent_id'], 16),
      name: textOf(row['name']) ?? '',
      startTimeUnixNano: nanosOf(row['start_time']),
      endTimeUnixNano: nanosOf(row['end_time']) ?? nanosOf(row['start_time']),
      status: {
        code: code?.endsWith('ERROR') === true ? 2 : 0,
        message: textOf(row['status_message'] ?? status['description']),
      },
      attributes: keyValues(attributes),
      events,
    },
    resource: isObject(row['resource']) ? { attributes: keyValues(row['resource']['attributes']) } : undefined,
  }
}

/** A trace with its observations, a single observation, or a trace alone. Blob exports use snake case. */
function langfuseSpans(value: Fields): SourceSpan[] {
  const trace = isObject(value['trace']) ? value['trace'] : value
  const observations = listOf(value['observations'] ?? trace['observations'])
  if (member(value, 'traceId') !== undefined && member(value, 'startTime') !== undefined) return [observation(value)]
  const id = textOf(trace['id'])
  if (id === undefined) throw new SpanFault('it is neither a trace nor an observation')
  const session = member(trace, 'sessionId')
  return [
    langfuseSpan(trace, { runId: id, spanId: `trace ${id}`, start: trace['timestamp'], isTrace: true }),
    ...observations.map((one) => observation({ sessionId: session, ...one, traceId: id })),
  ]
}

function observation(fields: Fields): SourceSpan {
  const [id, runId] = [textOf(fields['id']), textOf(member(fields, 'traceId'))]
  if (id === undefined || runId === undefined) throw new SpanFault('it is an observation without id or traceId')
  return langfuseSpan(fields, { runId, spanId: id, start: member(fields, 'startTime') })
}

const OPERATIONS = new Map<unknown, string>([
  ['GENERATION', 'chat'],
  ['EMBEDDING', 'embeddings'],
  ['TOOL', 'execute_tool'],
  ['AGENT', 'invoke_agent'],
])
const TAKEN = new Set([
  'id',
  'traceId',
  'parentObservationId',
  'timestamp',
  'startTime',
  'endTime',
  'name',
  'input',
  'output',
  'level',
  'statusMessage',
  'observations',
  'sessionId',
  'scores',
  'trace',
  'usage',
  'usageDetails',
  'costDetails',
  'inputUsage',
  'outputUsage',
  'totalUsage',
  'promptTokens',
  'completionTokens',
  'totalTokens',
  'totalCost',
  'calculatedTotalCost',
])
const TAKEN_SNAKE = [...TAKEN].map((name) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`))

interface LangfuseIds {
  runId: string
  spanId: string
  start: unknown
  isTrace?: true
}

function langfuseSpan(fields: Fields, { runId, spanId, start, isTrace }: LangfuseIds): SourceSpan {
  const { input, output, name } = fields
  const operation = isTrace ? undefined : OPERATIONS.get(fields['type'])
  const isModel = operation === 'chat' || operation === 'embeddings'
  const others = Object.entries(fields).filter(([key]) => !TAKEN.has(key) && !TAKEN_SNAKE.includes(key))
  const attributes = {
    ...Object.fromEntries(others.map(([key, value]) => [`langfuse.${key}`, value])),
    'tacho.run.id': runId,
    'session.id': member(fields, 'sessionId'),
    'user.id': member(fields, 'userId'),
    ...(isTrace && {
      'langfuse.trace.tags': jsonText(fields['tags']),
      'langfuse.trace.metadata': jsonText(fields['metadata']),
    }),
    'gen_ai.operation.name': operation,
    'gen_ai.tool.name': operation === 'execute_tool' ? name : undefined,
    'gen_ai.request.model': isModel ? modelOf(fields) : undefined,
    'langfuse.observation.usage_details': isModel ? langfuseUsage(fields) : undefined,
    'langfuse.observation.cost_details': isModel ? langfuseCosts(fields) : undefined,
    'gen_ai.usage.cost': isModel ? langfuseCost(fields) : undefined,
    [isModel ? 'gen_ai.input.messages' : 'input.value']: isModel ? messagesText(input, 'user') : jsonText(input),
    [isModel ? 'gen_ai.output.messages' : 'output.value']: isModel
      ? messagesText(output, 'assistant')
      : jsonText(output),
  }
  const isError = fields['level'] === 'ERROR'
  return {
    span: {
      traceId: hexId(runId, 32),
      spanId: hexId(spanId, 16),
      parentSpanId: hexId(member(fields, 'parentObservationId'), 16),
      name: textOf(name) ?? textOf(fields['type']) ?? 'trace',
      startTimeUnixNano: nanosOf(start),
      endTimeUnixNano: nanosOf(member(fields, 'endTime')) ?? nanosOf(start),
      status: { code: isError ? 2 : 0, message: textOf(member(fields, 'statusMessage')) },
      attributes: keyValues(attributes),
    },
    ...(isTrace ? { isTrace } : {}),
  }
}

function modelOf(fields: Fields): unknown {
  return fields['model'] ?? member(fields, 'providedModelName') ?? member(fields, 'internalModelName')
}

/** Token counts. Langfuse writes zeros for unknown counts. */
function langfuseUsage(fields: Fields): string | undefined {
  const counts = (...names: string[]) => Object.fromEntries(names.map((name) => [name, member(fields, name)]))
  const givenTexts = [
    member(fields, 'usageDetails'),
    fields['usage'],
    counts('promptTokens', 'completionTokens', 'totalTokens'),
    {
      input: member(fields, 'inputUsage'),
      output: member(fields, 'outputUsage'),
      total: member(fields, 'totalUsage'),
    },
  ]
  const known = givenTexts
    .filter(isObject)
    // Drop the unit, which is a text. Keep an unreadable count, so that the import reports it.
    .map((usage) => Object.entries(usage).filter(([name, count]) => name !== 'unit' && count !== null))
    .find((usage) => usage.some(([, count]) => isSaid(count)))
  return known && JSON.stringify(Object.fromEntries(known))
}

/** Keeps an unreadable cost, so that the import reports it. */
function langfuseCost(fields: Fields): unknown {
  const costs = [member(fields, 'totalCost'), member(fields, 'calculatedTotalCost')].filter(isSaid)
  return costs.find((cost) => Number(cost) > 0) ?? costs[0]
}

function langfuseCosts(fields: Fields): string | undefined {
  const details = member(fields, 'costDetails')
  if (Number(langfuseCost(fields)) > 0) return undefined
  return isObject(details) && Object.values(details).some(isSaid) ? JSON.stringify(details) : undefined
}

const isSaid = (value: unknown): boolean => value !== undefined && value !== null && Number(value) !== 0

function jsonText(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Messages unchanged; any other value becomes the content of one message. */
function messagesText(spanValue: unknown, role: string): string | undefined {
  if (spanValue === undefined || spanValue === null || typeof spanValue === 'string') return textOf(spanValue)
  const areMessages =
    Array.isArray(spanValue) || (isObject(spanValue) && ['messages', 'role'].some((name) => name in spanValue))
  return JSON.stringify(areMessages ? spanValue : [{ role, content: spanValue }])
}

/** An OpenTelemetry id without 0x and dashes. Any other id becomes the start of its hash. */
function hexId(value: unknown, digits: number): string | undefined {
  const text = textOf(value)
  if (text === undefined) return undefined
  const plain = text.toLowerCase().replace(/^0x/, '').replaceAll('-', '')
  return plain.length === digits && /^[0-9a-f]+$/.test(plain) ? plain : hash('sha256', text).slice(0, digits)
}

/**
 * Nanoseconds of a time: ISO 8601 (UTC if it has no zone), or Unix time in seconds, milliseconds, microseconds or
 * nanoseconds.
 */
export function nanosOf(value: unknown): string | undefined {
  if (typeof value === 'number') {
    const nanos = [1e11, 1e14, 1e17].findIndex((limit) => value < limit)
    return (BigInt(Math.round(nanos === 0 ? value * 1e3 : value)) * 10n ** ([6n, 6n, 3n][nanos] ?? 0n)).toString()
  }
  const text = textOf(value)?.trim()
  if (text === undefined) return undefined
  const isZoned = /(?:z|[+-]\d{2}:?\d{2})$/i.test(text)
  const time = Date.parse(isZoned ? text : `${text.replace(' ', 'T')}Z`)
  return Number.isNaN(time) ? undefined : (BigInt(time) * 1_000_000n).toString()
}

const LEVELS_MAX = 32

/** OpenTelemetry attributes for nested objects: names with dots, and positions for lists of objects. */
export function keyValues(spanValue: unknown): Fields[] {
  const pairs: Fields[] = []
  const add = (key: string, value: unknown, level: number): void => {
    const isNested = typeof value === 'object' && value !== null
    const isPlainList = Array.isArray(value) && !value.some((item) => typeof item === 'object')
    if (value === null || value === undefined) return
    if (isNested && level > LEVELS_MAX) pairs.push({ key, value: { stringValue: '[nested too deep]' } })
    else if (isPlainList) pairs.push({ key, value: { arrayValue: { values: value.map(anyValue) } } })
    else if (isNested) for (const [name, inner] of Object.entries(value)) add(`${key}.${name}`, inner, level + 1)
    else pairs.push({ key, value: anyValue(value) })
  }
  if (isObject(spanValue)) for (const [key, value] of Object.entries(spanValue)) add(key, value, 1)
  return pairs
}

function anyValue(value: unknown): Fields {
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value !== 'number') return { stringValue: String(value) }
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value }
}
