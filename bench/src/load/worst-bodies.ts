/**
 * Makes the worst requests that the limits allow, from a row of the routes' tables. If this file cannot make one for a
 * row, that is an error: the row then needs an entry in worst-own.ts or worst-telemetry.ts.
 */
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { MCP_ROUTE, OTLP_ROUTES } from '@tacho/contract/web/protocol-routes.ts'
import { PUBLIC_PREFIX } from '@tacho/contract/web/routes.ts'
import {
  queryOf,
  ROWS,
  sampleOf,
  type JsonSchema,
  type Row,
} from '../../../packages/server/test/setup/route-samples.ts'
import { ownMembers, type WorstRequest } from './worst-own.ts'
import { telemetryBodies } from './worst-telemetry.ts'

const OTLP_ROWS = Object.entries(OTLP_ROUTES).map(([name, route]): Row => ({ name, prefix: PUBLIC_PREFIX, route }))
/** All rows that clients and operators can call. */
export const ALL_ROWS: readonly Row[] = [...ROWS, ...OTLP_ROWS, { name: 'mcp', prefix: '', route: MCP_ROUTE }]

const JSON_TYPE = { 'content-type': 'application/json' }
/** Below the maximum number of body chunks: PIECES in connections.ts. */
const CHUNKS = 4_000
const PAGES = 20
const QUICKLY = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }

/** Each request is made on demand, because making all of them takes seconds. */
export function* worstRequests(row: Row): Generator<WorstRequest, undefined> {
  const { route } = row
  if (route.body) yield* worstBodies(row)
  if (route.query) yield* worstQueries(route.query as JsonSchema, queryOf(route))
  if (!route.body && !route.query) yield { kind: 'as it is' }
}

function* worstBodies({ name, route }: Row): Iterable<WorstRequest> {
  const { body, bodyBytes = 0 } = route
  if (name === 'traces' || name === 'logs' || name === 'metrics') return yield* telemetryBodies(name, bodyBytes)
  const schema = body as JsonSchema
  if (bodyBytes === 0 || (schema.type !== 'object' && schema.type !== 'array')) {
    throw new Error(`There is no worst body of ${name}`)
  }
  const request = (kind: string, text: string | Buffer, encoding?: string): WorstRequest => {
    const headers = { ...JSON_TYPE, ...(encoding !== undefined && { 'content-encoding': encoding }) }
    return { kind, body: Buffer.from(text), headers }
  }
  for (const [kind, fill] of Object.entries(FILLERS)) yield request(kind, filled(schema, fill, bodyBytes))
  for (const [kind, members] of Object.entries(ownMembers(name, bodyBytes)))
    yield request(kind, JSON.stringify({ ...(sampleOf(schema as never) as object), ...members }))
  yield request('most of what the schema allows', JSON.stringify(fullOf(schema, bodyBytes)))
  yield request('most faults', JSON.stringify(wrongOf(schema, bodyBytes)))
  const values = filled(schema, MOST_VALUES, bodyBytes)
  const padded = `${' '.repeat(Math.max(0, bodyBytes - values.length))}${values}`
  yield request('not complete', values.slice(0, -1))
  yield request('blank lines and a fault', `${'\n'.repeat(bodyBytes - 1)}x`)
  yield request('gzip', gzipSync(padded), 'gzip')
  yield request('brotli', brotliCompressSync(padded, QUICKLY), 'br')
  yield { ...request('chunks of one byte', values.slice(0, CHUNKS)), chunkBytes: 1 }
}

/** Makes a value that fills a free member, up to this many bytes and values. */
type Filler = (bytes: number, values: number) => string

const list = (item: string): Filler => {
  const size = item.length + 1
  // The limit counts a comma and an opening brace as a value each.
  const each = item.startsWith('{') ? 2 : 1
  return (bytes, values) =>
    `[${`${item},`.repeat(Math.max(0, Math.min(Math.floor(values / each), Math.floor(bytes / size)) - 2))}${item}]`
}
const text =
  (piece: string): Filler =>
  (bytes) =>
    `"${piece.repeat(Math.max(0, Math.floor((bytes - 2) / Buffer.byteLength(piece))))}"`

const MOST_VALUES = list('{}')
const FILLERS: Record<string, Filler> = {
  'most values': MOST_VALUES,
  'longest numbers': list('-1.2345678901234567e-300'),
  'most names': (bytes, values) => {
    const count = Math.max(0, Math.min(values, Math.floor(bytes / 10)) - 2)
    return `{${Array.from({ length: count }, (_, n) => `"${n.toString(36)}_":0`).join()}}`
  },
  deepest: (bytes, values) => {
    const levels = Math.max(1, Math.min(values - 2, Math.floor(bytes / 2)))
    return '['.repeat(levels) + ']'.repeat(levels)
  },
  'longest text': text('x'),
  'longest text beyond Latin': text('語'),
  'most escapes': text('\\u8a9e'),
}

const HOLE = '@@hole@@'

/** A valid body in which the filler is the value of each free member, or of a member that the schema does not know. */
function filled(schema: JsonSchema, fill: Filler, bytes: number): string {
  const whole = JSON.stringify(withHoles(schema))
  const holes = whole.split(`"${HOLE}"`).length - 1
  const room = Math.floor((bytes - whole.length) / holes)
  const values = Math.floor((LIMITS.bodyValues - 1_000) / holes)
  const content = fill(room, isRaw(schema) ? Infinity : values)
  return whole.replaceAll(`"${HOLE}"`, () => content)
}

/** Whether the body is a list of events, which has its own limit of values. */
const isRaw = (schema: JsonSchema): boolean => schema.type === 'array'

function withHoles(schema: JsonSchema): unknown {
  if (schema.type === 'array') {
    const most = (schema as { maxItems?: number }).maxItems ?? 1
    return Array.from({ length: most }, (_, index) => ({
      ...(withHoles(schema.items ?? {}) as object),
      eventId: `${index}`,
    }))
  }
  const body = sampleOf(schema as never) as Record<string, unknown>
  const free = Object.entries(schema.properties ?? {}).filter(([, of]) => isFree(of))
  if (free.length === 0) return { ...body, beside: HOLE }
  return { ...body, ...Object.fromEntries(free.map(([name]) => [name, { in: HOLE }])) }
}

const isFree = ({ type, properties }: JsonSchema): boolean =>
  [type].flat().includes('object') && Object.keys(properties ?? {}).length === 0

interface Bounded extends JsonSchema {
  maxItems?: number
  maxLength?: number
  maximum?: number
}

/** A body with every member, and the longest texts and lists. */
function fullOf(given: JsonSchema, bytes: number, name = ''): unknown {
  const schema = given as Bounded
  const type = [schema.type].flat()[0]
  if (schema.enum) return schema.enum.at(-1)
  if (schema.anyOf?.[0]) return fullOf(schema.anyOf[0], bytes, name)
  if (type === 'object') {
    const members = Object.entries(schema.properties ?? {})
    return Object.fromEntries(members.map(([key, of]) => [key, fullOf(of, Math.floor(bytes / members.length), key)]))
  }
  if (type === 'array') {
    const one = JSON.stringify(fullOf(schema.items ?? {}, Math.floor(bytes / 4), name)).length + 1
    const count = Math.max(1, Math.min(schema.maxItems ?? Infinity, Math.floor((bytes - 100) / one)))
    return Array.from({ length: count }, () => fullOf(schema.items ?? {}, Math.floor(bytes / 4), name))
  }
  if (type !== 'string' || schema.format || schema.pattern) return sampleOf(schema as never, name)
  return 'x'.repeat(Math.max(1, Math.min(schema.maxLength ?? bytes, Math.floor(bytes / 2))))
}

/** An invalid body: lists of invalid items, values that are no texts, and many unknown members. */
function wrongOf(schema: JsonSchema, bytes: number): unknown {
  if (schema.type === 'array') return Array.from({ length: 100 }, () => wrongOf(schema.items ?? {}, bytes / 100))
  const members = Object.entries(schema.properties ?? {})
  const lists = members.filter(([, { type }]) => [type].flat().includes('array')).length
  const most = Math.min(LIMITS.bodyValues - 1_000, Math.floor(bytes / 12))
  const each = lists === 0 ? 0 : Math.floor(most / lists)
  const unknown = lists === 0 ? Object.fromEntries(Array.from({ length: most }, (_, n) => [`m${n}`, 0])) : {}
  const values = members.map(([name, { type }]) => [
    name,
    [type].flat().includes('array') ? Array.from({ length: each }, () => 0) : [0],
  ])
  return { ...unknown, ...Object.fromEntries(values) }
}

function worstQueries({ properties = {} }: JsonSchema, required: Record<string, string>): WorstRequest[] {
  const names = Object.keys(properties)
  const limit = (properties['limit'] as Bounded | undefined)?.maximum
  const widest: Record<string, string> = {
    ...required,
    // `from` and `to` are versions here.
    ...(names.includes('from') && !isTime(properties['from']) && { from: '1', to: '2' }),
    ...(limit && { limit: String(limit) }),
    ...(names.includes('from') && isTime(properties['from']) && { from: '2000-01-01T00:00:00.000Z' }),
    ...(names.includes('to') && isTime(properties['to']) && { to: '2099-01-01T00:00:00.000Z' }),
  }
  const each = names.flatMap((name) =>
    worstTexts(name, properties[name] ?? {}).map((value) => ({
      kind: `${name}=${value.length > 20 ? `${value.slice(0, 8)}… (${value.length})` : value}`,
      query: { ...widest, [name]: value },
    })),
  )
  const walk = names.includes('cursor') ? [{ kind: 'furthest cursor', query: widest, pages: PAGES }] : []
  return [{ kind: 'widest', query: widest }, ...each, ...walk]
}

const isTime = (schema: JsonSchema | undefined): boolean => schema?.format === 'date-time'

const QUERY_CHARS = 12_000

function worstTexts(name: string, given: JsonSchema): string[] {
  const schema = given as Bounded
  const type = [schema.type].flat()[0]
  if (schema.enum) return schema.enum.map(String)
  if (type === 'integer' || type === 'number') return schema.maximum === undefined ? [] : [String(schema.maximum)]
  if (type !== 'string') throw new Error(`There is no worst value of the query parameter ${name}`)
  if (schema.format) return []
  const most = Math.min(schema.maxLength ?? QUERY_CHARS, QUERY_CHARS)
  return [
    'e'.repeat(most),
    'e '.repeat(most / 2).trim(),
    '"a b" '.repeat(Math.floor(most / 6)).trim(),
    '%'.repeat(Math.floor(most / 3)),
  ]
}
