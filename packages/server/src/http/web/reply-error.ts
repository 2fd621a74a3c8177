import { randomUUID } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { ERRORS, type ErrorCode, type Problem } from '@tacho/contract/web/errors.ts'
import type { FastifyBaseLogger, FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { StorageError, StoreAway } from '../../storage/engine/store.ts'
import {
  addressAdvice,
  GRPC_HEADERS,
  pathOf,
  speaksGrpc,
  speaksHttp2,
  type GrpcAnswers,
  type ParserError,
} from '../record/exporters.ts'
import { answerLast, closeIfUnread } from './connections.ts'

interface RefusalDetails {
  errors?: Problem['errors'] | undefined
  retryAfterSeconds?: number | undefined
  current?: Problem['current']
}

/** A refused request: handlers throw or return a Refusal. It is a class, so that no parsed body looks like one. */
export class Refusal extends Error {
  readonly code: ErrorCode
  readonly detail: string | undefined
  readonly more: RefusalDetails

  constructor(code: ErrorCode, detail: string | undefined, more: RefusalDetails) {
    super(detail ?? code)
    this.code = code
    this.detail = detail
    this.more = more
  }
}

export function refuse(code: ErrorCode, detail?: string, more: RefusalDetails = {}): Refusal {
  return new Refusal(code, detail, more)
}

export const LEFT = refuse('overloaded', 'The client has left')

/** Throws the refusal if there is no value. */
export function foundOr<Value>(value: Value | null, refusal: Refusal): Value {
  if (value === null) throw refusal
  return value
}

export function isRefusal(value: unknown): value is Refusal {
  return value instanceof Refusal
}

export async function orRefusal<Result>(run: () => Result | Promise<Result>): Promise<Result | Refusal> {
  try {
    return await run()
  } catch (error) {
    if (isRefusal(error)) return error
    throw error
  }
}

/** Replies contain what only one key or person may see, so nobody caches them. */
export const REPLY_HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const

const PROBLEM_TYPE = 'application/problem+json; charset=utf-8'

export function replyError(request: FastifyRequest, reply: FastifyReply, refusal: Refusal): FastifyReply {
  const { status, retryable } = ERRORS[refusal.code]
  if (retryable && status !== 500) void reply.header('retry-after', refusal.more.retryAfterSeconds ?? 1)
  return reply
    .code(status)
    .type(PROBLEM_TYPE)
    .serializer((body: unknown) => JSON.stringify(body))
    .send(problem(refusal, request.id))
}

export function errorHandlers(
  app: FastifyInstance,
  pageOf: (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> | null = () => null,
): void {
  app.setErrorHandler((error: FastifyError | Refusal, request, reply) => {
    const refusal = refusalOf(error)
    if (refusal.code === 'internal') request.log.error({ requestId: request.id, err: error }, 'unexpected error')
    return replyError(request, reply, refusal)
  })
  const methodsOf = methodsByPath(app)
  // A hook, because the framework checks the content type of some methods before the handler below.
  app.addHook('onRequest', (request, reply, done) => {
    const allowed = request.is404 ? methodsOf(pathOf(request)) : []
    if (allowed.length === 0) return done()
    const allow = allowed.join(', ')
    const detail = `${pathOf(request)} takes ${allow}, not ${request.method}${addressAdvice(request)}`
    replyError(request, reply.header('allow', allow), refuse('method_not_allowed', detail))
  })
  app.setNotFoundHandler((request, reply) => {
    const page = pageOf(request, reply)
    if (page) return page
    if (speaksGrpc(request.headers)) void reply.headers(GRPC_HEADERS)
    const detail = `There is no ${request.method} ${pathOf(request)}${addressAdvice(request)}`
    return replyError(request, reply, refuse('not_found', detail))
  })
}

function methodsByPath(app: FastifyInstance): (path: string) => string[] {
  const routes = new Map<string, Set<string>>()
  app.addHook('onRoute', ({ url, method }) => {
    // Skip wildcards: their path may be a file that does not exist.
    if (url.includes('*')) return
    const methods = routes.get(url) ?? new Set()
    for (const each of [method].flat()) methods.add(each)
    routes.set(url, methods)
  })
  return (path) => {
    const parts = path.split('/')
    const fitting = [...routes].filter(([url]) => matches(url.split('/'), parts))
    // Of several routes that match, the one with the fewest parameters applies.
    const [first] = fitting.sort(([one], [other]) => one.split('/:').length - other.split('/:').length)
    return [...(first?.[1] ?? [])].sort()
  }
}

function matches(pattern: string[], parts: string[]): boolean {
  if (pattern.length !== parts.length) return false
  return pattern.every((patternPart, at) =>
    patternPart.startsWith(':') ? parts[at] !== '' : patternPart === parts[at],
  )
}

/** A malformed address reaches no hook and none of the router's error handlers. */
export function frameworkErrors(error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  const refusal = refusalOf(error)
  closeIfUnread(request.raw, reply.raw)
  void replyError(request, reply.header('x-request-id', request.id).headers(REPLY_HEADERS), refusal)
  const { status } = ERRORS[refusal.code]
  request.log.info({ requestId: request.id, method: request.method, route: 'none', status }, 'request')
}

/** A request the HTTP parser rejects has no request object, so write the reply to the socket. */
export function clientErrors(answerGrpc: GrpcAnswers) {
  return function clientError(this: FastifyInstance, error: ParserError, socket: Socket): void {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    if (speaksHttp2(error)) answerGrpc(error, socket)
    else answerLast(socket, () => endWithError(this.log, error, socket))
  }
}

function endWithError(log: FastifyBaseLogger, error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable) return
  const known = PARSER_CODES.get(error.code ?? '')
  const refusal = known ? refuse(known) : refuse('invalid_request', 'The request is not valid HTTP')
  const { status, retryable } = ERRORS[refusal.code]
  const requestId = randomUUID()
  const body = JSON.stringify(problem(refusal, requestId))
  const headers = [
    `X-Request-Id: ${requestId}`,
    ...Object.entries(REPLY_HEADERS).map(([name, value]) => `${name}: ${value}`),
    ...(retryable ? ['Retry-After: 1'] : []),
    `Content-Type: ${PROBLEM_TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${headers.join('\r\n')}\r\n\r\n${body}`)
  log.info({ requestId, route: 'none', status }, 'request')
}

const PARSER_CODES = new Map<string, ErrorCode>([
  ['HPE_HEADER_OVERFLOW', 'headers_too_large'],
  ['ERR_HTTP_REQUEST_TIMEOUT', 'request_timeout'],
])

function problem({ code, detail, more: { errors, current } }: Refusal, requestId: string): Problem {
  const { status, title } = ERRORS[code]
  return {
    type: `urn:tacho:error:${code}`,
    title,
    status,
    code,
    ...(detail === undefined ? {} : { detail }),
    requestId,
    ...(errors === undefined ? {} : { errors }),
    ...(current === undefined ? {} : { current }),
  }
}

function refusalOf(error: FastifyError | StorageError | Refusal): Refusal {
  if (isRefusal(error)) return error
  if (error instanceof StoreAway) return refuse(error.code, error.message)
  if (error instanceof StorageError) {
    return error.code === 'configuration_damaged' ? refuse(error.code, error.message) : refuse(error.code)
  }
  if (error.statusCode === 414) return refuse('uri_too_long')
  if (error.statusCode !== undefined && error.statusCode < 500) return refuse('invalid_request', error.message)
  return refuse('internal')
}
