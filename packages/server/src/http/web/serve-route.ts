import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Route } from '@tacho/contract/web/route.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestAsyncHookHandler } from 'fastify'
import { Type, type Static, type TObject, type TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import { readJsonBody, type BodyFault } from '../../domain/web/json-body.ts'
import { nearestName, isStorableText } from '../../domain/web/text.ts'
import {
  faultLine,
  FAULTS_MAX,
  numberOf,
  schemaFaults,
  SUGGESTED_CHARS,
  type SchemaFault,
} from '../../domain/web/schema-faults.ts'
import { holderOf } from '../tenants/rate-limit.ts'
import { readBody, type BodyLimits, type BodyMemory } from './read-body.ts'
import { isRefusal, orRefusal, refuse, replyError, type Refusal } from './reply-error.ts'
import type { ReplyMemory } from './reply-memory.ts'
import { sendInPieces } from './connections.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    route?: Route
  }
  interface FastifyRequest {
    /** Valid UTF-8; null if the route has no body. */
    bodyBytes: Buffer | null
  }
}

export interface RouteRequest<R extends Route> {
  params: R['params'] extends TObject ? Static<R['params']> : Record<string, never>
  query: R['query'] extends TObject ? Static<R['query']> : Record<string, never>
  headers: R['headers'] extends TObject ? Static<R['headers']> : Record<string, never>
  /** May have members beyond its schema, so name the members that you store or log. */
  body: R['body'] extends TSchema ? Static<R['body']> : undefined
  request: FastifyRequest
  reply: FastifyReply
}

/** A class, so that client data can never be taken for it. */
export class RawJson {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

export type RouteReply<R extends Route> = Static<R['reply']> | RawJson | Refusal | FastifyReply

const JSON_TYPE = 'application/json; charset=utf-8'

/** Null: the handler sent the reply itself. */
export type Answer = string | Refusal | null

export type AnswerOnce = (
  request: FastifyRequest,
  reply: FastifyReply,
  answer: () => Promise<Answer>,
) => Promise<Answer>

export interface RouteOptions {
  memory: BodyMemory
  replies: ReplyMemory
  /** Runs before the body is read. */
  admit?: () => Refusal | null
  rawBody?: boolean
  once?: AnswerOnce | null
  refused?: ((request: FastifyRequest, refusal: Refusal) => Promise<void>) | undefined
}

/** Refuses in the order 401, 403, 429 (hooks of the enclosing scope), 413, 415, 400. */
export function serveRoute<R extends Route>(
  app: FastifyInstance,
  route: R,
  options: RouteOptions,
  handler: (request: RouteRequest<R>) => Promise<RouteReply<R>> | RouteReply<R>,
): void {
  const { once } = options
  const pageBytes = pageBytesOf(route)
  const checkParams = route.params && queryChecker(route.params)
  const checkQuery =
    'access' in route && !route.openQuery
      ? queryChecker(route.query ?? NO_QUERY, { isClosed: true })
      : route.query && queryChecker(route.query)
  const checkHeaders = route.headers && headerChecker(route.headers)
  const checkBody = route.body && !options.rawBody ? bodyChecker(route.body) : undefined

  app.route({
    method: route.method,
    url: route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
    config: { route },
    onRequest: route.body ? [bodyHook({ maxBytes: route.bodyBytes ?? 0, memory: options.memory }, options.admit)] : [],
    // Runs synchronously if nothing has to wait.
    handler: (request, reply) => {
      const params = checkParams?.(request.params) ?? {}
      if (isRefusal(params)) return replyError(request, reply, params)
      if (!Object.values(params).every(isStorableText)) return replyError(request, reply, refuse('not_found'))
      const query = checkQuery?.(request.query) ?? {}
      if (isRefusal(query)) return replyError(request, reply, query)
      const headers = checkHeaders?.(request.raw.rawHeaders) ?? {}
      if (isRefusal(headers)) return replyError(request, reply, headers)
      const body = checkBody?.(request.bodyBytes)
      if (isRefusal(body)) return replyRefused(request, reply, body)
      const checked = { params, query, headers, body, request, reply } as RouteRequest<R>
      if (pageBytes > 0) return sendPage(checked)
      if (once)
        return once(request, reply, async () => answerOf(await orRefusal(() => handler(checked)), reply)).then(send)
      const result = handler(checked)
      return result instanceof Promise
        ? result.then((routeResult) => send(answerOf(routeResult, reply)))
        : send(answerOf(result, reply))

      function send(answer: Answer): FastifyReply {
        if (answer === null) return reply
        if (isRefusal(answer)) return replyError(request, reply, answer)
        // Always answer a completed change, even if the reply does not fit.
        const tooMuch = options.replies.take(holderOf(request), reply, answer)
        if (tooMuch && route.method === 'GET') return replyError(request, reply, tooMuch)
        return sendInPieces(reply.code(route.status).type(JSON_TYPE), answer)
      }
    },
  })

  async function sendPage(checked: RouteRequest<R>): Promise<FastifyReply> {
    const { request, reply } = checked
    const page = await options.replies.begin(holderOf(request), pageBytes, () => reply.raw.destroyed)
    if (isRefusal(page)) return replyError(request, reply, page)
    let answer: Answer = null
    try {
      answer = answerOf(await handler(checked), reply)
    } finally {
      if (typeof answer === 'string') page.built(reply, Buffer.byteLength(answer))
      else page.dropped()
    }
    if (answer === null) return reply
    if (isRefusal(answer)) return replyError(request, reply, answer)
    return sendInPieces(reply.code(route.status).type(JSON_TYPE), answer)
  }

  async function replyRefused(request: FastifyRequest, reply: FastifyReply, refusal: Refusal): Promise<FastifyReply> {
    await options.refused?.(request, refusal)
    return replyError(request, reply, refusal)
  }
}

function answerOf<R extends Route>(result: RouteReply<R>, reply: FastifyReply): Answer {
  // A handler that sends the reply itself returns nothing: Fastify would await a returned reply until it is sent.
  if (result === undefined || reply.sent) return null
  if (isRefusal(result)) return result
  return result instanceof RawJson ? result.text : JSON.stringify(result)
}

/** Replies from this size wait for a turn, so that one workspace cannot occupy the store's readers. */
const READ_BYTES = 65_536

/** 0: the reply needs no turn. */
function pageBytesOf(route: Route): number {
  const { method, reply, replyBytes, replyType } = route
  const isList = 'properties' in reply && Object.hasOwn(reply.properties as object, 'nextCursor')
  const isOperatorRead = method === 'GET' && replyType === undefined && 'access' in route && route.access !== 'anyone'
  return replyBytes ?? (isList ? LIMITS.listBytes : isOperatorRead ? READ_BYTES : 0)
}

export function withoutBodyParsers(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))
  app.decorateRequest('bodyBytes', null)
}

export function bodyHook(limits: Omit<BodyLimits, 'holder'>, admit: RouteOptions['admit']): onRequestAsyncHookHandler {
  return async (request, reply) => {
    const refusal = admit?.() ?? null
    if (refusal) return replyError(request, reply, refusal)
    const body = await readBody(request.raw, reply.raw, { ...limits, holder: holderOf(request) })
    if (isRefusal(body)) return replyError(request, reply, body)
    request.bodyBytes = body
  }
}

interface Property extends TSchema {
  type?: string
  format?: string
  default?: unknown
}

const NO_QUERY = Type.Object({})

/** Rejects unknown parameters, because with a misspelt filter the reply would contain everything. */
function unknownParameters(values: object, schema: TObject): SchemaFault[] {
  const known = Object.keys(schema.properties)
  const unknown = Object.keys(values).filter((name) => !Object.hasOwn(schema.properties, name))
  return unknown.slice(0, FAULTS_MAX).map((name) => {
    const nearest = name.length > SUGGESTED_CHARS ? null : nearestName(name, known)
    const hint =
      nearest === null ? (known.length > 0 ? `: there are ${known.join(', ')}` : '') : `: did you mean ${nearest}?`
    return { path: `/${name.slice(0, SUGGESTED_CHARS)}`, message: `is no parameter of this address${hint}` }
  })
}

/** Fills in defaults. Turns UUIDs into lower case, as they are stored. */
function queryChecker(schema: TObject, { subject = '', isClosed = false } = {}): (given: unknown) => object {
  const compiled = compiledAtFirstUse(schema)
  const names = Object.entries(schema.properties).map(([name, property]: [string, Property]) => ({
    name,
    byDefault: property.default,
    isUuid: property.format === 'uuid',
    number: property.type === 'integer' ? numberOf(property) : null,
  }))
  return (routeRequest) => {
    const values = routeRequest as Record<string, string | string[] | undefined>
    const checked: Record<string, unknown> = {}
    const faults = isClosed ? unknownParameters(values, schema) : []
    for (const { name, byDefault, isUuid, number } of names) {
      const value = values[name]
      if (value === undefined) {
        if (byDefault !== undefined) checked[name] = byDefault
      } else if (Array.isArray(value)) faults.push({ path: `/${name}`, message: 'is given more than once' })
      else if (value === '') faults.push({ path: `/${name}`, message: 'is empty' })
      else if (number !== null && !/^[1-9][0-9]*$/.test(value)) {
        faults.push({ path: `/${name}`, message: `must be ${number}` })
      } else checked[name] = number !== null ? Number(value) : isUuid ? value.toLowerCase() : value
    }
    if (faults.length === 0 && compiled().Check(checked)) return checked
    const known = new Set(faults.map(({ path }) => path))
    const more = schemaFaults(schema, compiled().Errors(checked)).filter(({ path }) => !known.has(path))
    return schemaRefusal([...faults, ...more].slice(0, FAULTS_MAX), subject)
  }
}

function headerChecker(schema: TObject): (rawHeaders: string[]) => object {
  const check = queryChecker(schema, { subject: 'The header ' })
  return (rawHeaders) => {
    const queryValues = Object.keys(schema.properties).map((name): [string, string | string[] | undefined] => {
      const values = rawHeaders.filter(
        (_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === name.toLowerCase(),
      )
      return [name, values.length > 1 ? values : values[0]]
    })
    return check(Object.fromEntries(queryValues))
  }
}

function bodyChecker(schema: TSchema): (bytes: Buffer | null) => unknown {
  return (bytes) => {
    const read = readJsonBody(schema, bytes)
    return read.ok ? read.body : refuseBody(read)
  }
}

export function refuseBody({ code, detail, errors }: BodyFault): Refusal {
  return refuse(code, detail, errors && { errors })
}

/** Compiles late, because most of a hundred endpoints are rarely called: this saves start time and memory. */
function compiledAtFirstUse(schema: TSchema): () => Validator {
  let validator: Validator | undefined
  return () => (validator ??= Compile(schema))
}

function schemaRefusal(faults: SchemaFault[], subject?: string): Refusal {
  return refuse('invalid_request', faultLine(faults, subject), { errors: faults })
}
