/** Builds OpenAPI 3.1 documents from the route tables. A schema with an `$id` becomes a component of that name. */
import type { TObject, TSchema } from 'typebox'
import { ERRORS, Problem, type ErrorCode } from './errors.ts'
import { IDEMPOTENCY_KEY_HEADER, REPLAYED_HEADER } from './fields.ts'
import { OPERATOR_PREFIX, OPERATOR_ROUTES } from './operator-routes.ts'
import { WEBHOOK_MESSAGES, WebhookHeaders } from '../messages/webhook-message.ts'
import { sizeLimit } from '../engine/format.ts'
import { accessOf, errorsOf } from './route-errors.ts'
import { type Route, TAGS, type Tag } from './route.ts'
import { PUBLIC_PREFIX, ROUTES } from './routes.ts'

type Json = Record<string, unknown>

/** The named schemas that a document has used so far. */
interface Used {
  schemas: Map<string, TSchema>
  responses: Map<string, Json>
}

interface Api {
  title: string
  description: string
  prefix: string
  routes: Record<string, Route>
  /** Security schemes by name; any one of them is enough. */
  security: Record<string, object>
  webhooks?: (used: Used) => Json
}

/** Rules that apply to all texts and that schemas cannot express. */
const TEXTS = 'A text with NUL (U+0000) or an unpaired surrogate is refused. A parameter of an address does not repeat.'

/** Builds the OpenAPI 3.1 document of the public interface. `version` is the product version. */
export function publicDocument(version: string): Json {
  return document(version, {
    title: 'Tacho',
    description: `Records what agents do. The API key selects the workspace and environment. ${TEXTS} Parameters that an operation does not name are ignored.`,
    prefix: PUBLIC_PREFIX,
    routes: ROUTES,
    security: {
      apiKey: {
        type: 'apiKey',
        in: 'header',
        name: 'X-API-Key',
        description: 'A key with the scopes of the operation',
      },
    },
  })
}

/** Builds the OpenAPI 3.1 document of the operator API, including webhook messages. */
export function operatorDocument(version: string): Json {
  return document(version, {
    title: 'Tacho operator API',
    description:
      'Everything operators can do. Scripts send an operator token. People sign in and send a session cookie. With a ' +
      `cookie, changes are accepted only from the same origin. ${TEXTS} Parameters and fields of a body that an operation does ` +
      'not name are refused.',
    prefix: OPERATOR_PREFIX,
    routes: OPERATOR_ROUTES,
    security: {
      operatorToken: { type: 'http', scheme: 'bearer', description: 'An operator token' },
      session: {
        type: 'apiKey',
        in: 'cookie',
        name: 'tacho.session_token',
        description: 'The session of a signed-in person',
      },
    },
    webhooks,
  })
}

function document(version: string, api: Api): Json {
  const used: Used = { schemas: new Map(), responses: new Map() }
  const paths = new Map<string, Json>()
  for (const [operationId, route] of Object.entries(api.routes)) {
    const path = { ...paths.get(route.path), [route.method.toLowerCase()]: operation(operationId, route, used) }
    paths.set(route.path, path)
  }
  const webhooks = api.webhooks?.(used)
  const schemas: Json = {}
  // A named schema can use more named schemas, so the map grows during this loop.
  for (const [name, schema] of used.schemas) schemas[name] = inner(schema, used)
  const tags = new Set(Object.values(api.routes).map(({ tag }) => tag))
  return {
    openapi: '3.1.0',
    info: {
      title: api.title,
      version,
      description: api.description,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: api.prefix, description: 'This server' }],
    tags: (Object.keys(TAGS) as Tag[])
      .filter((name) => tags.has(name))
      .map((name) => ({ name, description: TAGS[name] })),
    security: Object.keys(api.security).map((name) => ({ [name]: [] })),
    paths: Object.fromEntries(paths),
    ...(webhooks ? { webhooks } : {}),
    components: {
      securitySchemes: api.security,
      headers: headersUsed(api),
      responses: Object.fromEntries(used.responses),
      schemas: sorted(schemas),
    },
  }
}

function operation(operationId: string, route: Route, used: Used): Json {
  const success = {
    description: 'Success',
    headers: headersOf([
      ...ALWAYS,
      ...(route.tagged ? ['ETag' as const] : []),
      ...(creates(route) ? ['Replayed' as const] : []),
    ]),
    content: { [route.replyType ?? 'application/json']: { schema: reference(replyOf(route), used) } },
  }
  return {
    operationId,
    summary: route.summary,
    description: descriptionOf(route),
    ...(accessOf(route) === 'anyone' ? { security: [] } : {}),
    tags: [route.tag],
    parameters: [
      ...parameters('path', route.params, used),
      ...parameters('query', route.query, used),
      ...parameters('header', route.headers, used),
      ...(route.tagged ? [IF_NONE_MATCH] : []),
    ],
    ...(route.body
      ? { requestBody: { required: true, content: { 'application/json': { schema: reference(route.body, used) } } } }
      : {}),
    responses: {
      [route.status]: success,
      ...(route.tagged ? { 304: { description: 'Unchanged; no body', headers: headersOf([...ALWAYS, 'ETag']) } } : {}),
      ...errorResponses(route, used),
    },
  }
}

/** Describes each message of a stream. A reply can hold any number of them. */
function replyOf(route: Route): unknown {
  if (!route.events) return route.reply
  return {
    description: 'Server-sent events; each one matches one of these schemas',
    oneOf: Object.entries(route.events).map(([name, data]) => ({
      type: 'object',
      required: ['event', 'data'],
      properties: {
        event: { type: 'string', enum: [name] },
        // The data of a message is a line of text.
        data: { type: 'string', contentMediaType: 'application/json', contentSchema: data },
      },
    })),
  }
}

function creates(route: Route): boolean {
  return route.headers !== undefined && Object.hasOwn(route.headers.properties, IDEMPOTENCY_KEY_HEADER)
}

/** Combines the row's description with what its other fields imply. */
function descriptionOf(route: Route): string {
  const sentences = [
    route.description,
    callerOf(route),
    route.bodyBytes && `The body can have up to ${sizeLimit(route.bodyBytes)} after decompression.`,
    route.shownOnce && `Only this reply shows \`${route.shownOnce}\`.`,
  ]
  return sentences.filter((sentence) => typeof sentence === 'string').join(' ')
}

function callerOf(route: Route): string {
  const access = accessOf(route)
  if (access === null)
    return `Requires ${route.scopes.length === 1 ? 'the scope' : 'the scopes'} ${route.scopes.join(' and ')}.`
  if (access === 'anyone') return 'Open to everyone, without a token.'
  if (access === 'signed-in') return 'Open to every operator and token.'
  return access === 'installation'
    ? 'Requires the role owner for the whole installation.'
    : `Requires the role ${access}.`
}

const IF_NONE_MATCH = {
  name: 'If-None-Match',
  in: 'header',
  required: false,
  description: "ETag of the client's copy; lists and * are accepted too",
  schema: { type: 'string' },
}

const text = { type: 'string' }
const count = { type: 'integer', minimum: 0 }
const HEADERS = {
  RequestId: { description: 'Identifies this reply in the log; equals `requestId` in a problem', schema: text },
  RateLimitLimit: { description: 'Requests per second that this node allows the key', schema: count },
  RateLimitRemaining: { description: 'Requests left in this second', schema: count },
  RateLimitReset: { description: 'Seconds until the limit resets', schema: count },
  RetryAfter: { description: 'Seconds to wait before you retry', schema: count },
  ETag: { description: 'Identifies the content of the reply; changes with it', schema: text },
  Replayed: { description: '`true`: this is the stored reply of the first request with this key', schema: text },
}
type HeaderName = keyof typeof HEADERS

/** Headers of every successful reply. */
const ALWAYS: readonly HeaderName[] = ['RequestId', 'RateLimitLimit', 'RateLimitRemaining', 'RateLimitReset']

const HEADER_NAMES: Record<HeaderName, string> = {
  RequestId: 'X-Request-Id',
  RateLimitLimit: 'RateLimit-Limit',
  RateLimitRemaining: 'RateLimit-Remaining',
  RateLimitReset: 'RateLimit-Reset',
  RetryAfter: 'Retry-After',
  ETag: 'ETag',
  Replayed: REPLAYED_HEADER,
}

function headersOf(names: readonly HeaderName[]): Json {
  return Object.fromEntries(names.map((name) => [HEADER_NAMES[name], { $ref: `#/components/headers/${name}` }]))
}

/** Headers of every reply, of replies with an ETag or idempotency key, and of errors that ask the client to wait. */
function headersUsed({ routes }: Api): Json {
  const rows = Object.values(routes)
  const names: HeaderName[] = [...ALWAYS, 'RetryAfter']
  if (rows.some(({ tagged }) => tagged)) names.push('ETag')
  if (rows.some(creates)) names.push('Replayed')
  return Object.fromEntries(names.map((name) => [name, HEADERS[name]]))
}

function parameters(place: 'path' | 'query' | 'header', schema: TObject | undefined, used: Used): Json[] {
  if (!schema) return []
  const required = new Set(schema.required)
  return Object.entries(schema.properties).map(([name, property]) => {
    const description = 'description' in property ? { description: property.description } : {}
    const schema = reference(place === 'query' ? notEmpty(property) : property, used)
    return { name, in: place, required: required.has(name), ...description, schema }
  })
}

/** Empty parameters are refused before their schema is checked. */
function notEmpty(schema: TSchema): unknown {
  const isFreeText = 'type' in schema && schema.type === 'string' && nameOf(schema) === null
  return isFreeText && !('enum' in schema) ? { minLength: 1, ...schema } : schema
}

/** One response per status. Operations with the same codes share it. */
function errorResponses(route: Route, used: Used): Json {
  const byStatus = Map.groupBy(errorsOf(route), (code) => ERRORS[code].status)
  const responses: Json = {}
  for (const [status, codes] of byStatus) {
    const name = codes.map(inPascalCase).join('Or')
    responses[status] = { $ref: `#/components/responses/${name}` }
    const waits = codes.some((code) => ERRORS[code].retryable) && status !== ERRORS.internal.status
    used.responses.set(name, {
      description: codes.map((code) => `${code}: ${ERRORS[code].title}`).join('. '),
      headers: headersOf(waits ? ['RequestId', 'RetryAfter'] : ['RequestId']),
      content: { 'application/problem+json': { schema: reference(Problem, used) } },
    })
  }
  return responses
}

function inPascalCase(code: ErrorCode): string {
  return code.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

function webhooks(used: Used): Json {
  const messages = Object.entries(WEBHOOK_MESSAGES).map(([type, { summary, body }]) => {
    const post = {
      operationId: type.replace(/\.(\w)/, (_, letter: string) => letter.toUpperCase()),
      summary,
      description: 'Signed according to Standard Webhooks. Any status except 2xx is retried for about a day.',
      tags: ['Webhooks'],
      security: [],
      parameters: parameters('header', WebhookHeaders, used),
      requestBody: { required: true, content: { 'application/json': { schema: reference(body, used) } } },
      responses: {
        '2XX': { description: 'The message was received' },
        410: { description: 'Stop sending: the webhook is disabled' },
      },
    }
    return [type, { post }]
  })
  return Object.fromEntries(messages) as Json
}

/** Replaces every named schema inside this one with a reference. */
function reference(schema: unknown, used: Used): unknown {
  const name = nameOf(schema)
  if (name === null) return inner(schema, used)
  if (!used.schemas.has(name)) used.schemas.set(name, schema as TSchema)
  return { $ref: `#/components/schemas/${name}` }
}

function inner(value: unknown, used: Used): unknown {
  if (Array.isArray(value)) return value.map((item) => reference(item, used))
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).filter(([key]) => key !== '$id')
  // Examples are data, so they are copied unchanged.
  return Object.fromEntries(members.map(([key, item]) => [key, key === 'examples' ? item : reference(item, used)]))
}

function nameOf(schema: unknown): string | null {
  const isNamed = typeof schema === 'object' && schema !== null && '$id' in schema && typeof schema.$id === 'string'
  return isNamed ? (schema.$id as string) : null
}

function sorted(schemas: Json): Json {
  return Object.fromEntries(Object.entries(schemas).sort(([one], [other]) => (one < other ? -1 : 1)))
}
