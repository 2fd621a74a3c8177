/** The one place where errors become replies: RFC 9457 problem details, whoever raised them. */
import { randomUUID } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { ERRORS, type ErrorCode, type Problem } from '@tacho/contract/errors.ts'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { StorageError } from '../storage/storage.ts'

/** A request that is answered with an error. Handlers return it; hooks pass it to replyError. */
export interface Refusal {
  refusal: ErrorCode
  detail?: string | undefined
  errors?: Problem['errors'] | undefined
  retryAfterSeconds?: number | undefined
  current?: Problem['current']
}

export function refuse(refusal: ErrorCode, detail?: string, more: Omit<Refusal, 'refusal' | 'detail'> = {}): Refusal {
  return { refusal, detail, ...more }
}

export function isRefusal(value: unknown): value is Refusal {
  return typeof value === 'object' && value !== null && 'refusal' in value
}

export const PROBLEM_TYPE = 'application/problem+json; charset=utf-8'

export function replyError(request: FastifyRequest, reply: FastifyReply, refusal: Refusal): FastifyReply {
  const { status, retryable } = ERRORS[refusal.refusal]
  if (retryable && status !== 500) void reply.header('retry-after', refusal.retryAfterSeconds ?? 1)
  return reply
    .code(status)
    .type(PROBLEM_TYPE)
    .serializer((body: unknown) => JSON.stringify(body))
    .send(problem(refusal, request.id))
}

/** Registers the handlers for everything the framework and the parser raise. */
export function errorHandlers(app: FastifyInstance): void {
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const refusal = refusalOf(error)
    if (refusal.refusal === 'internal') request.log.error({ requestId: request.id, err: error }, 'unexpected error')
    return replyError(request, reply, refusal)
  })
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?', 1)[0]
    return replyError(request, reply, refuse('not_found', `There is no ${request.method} ${path}`))
  })
}

/** A bad address reaches neither the router's error handler nor any hook. */
export function frameworkErrors(error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  const refusal = refusalOf(error)
  void replyError(request, reply.header('x-request-id', request.id), refusal)
  const { status } = ERRORS[refusal.refusal]
  request.log.info({ requestId: request.id, method: request.method, route: 'none', status }, 'request')
}

/** What the HTTP parser refuses has no request: the answer is written to the socket. */
export function clientError(this: FastifyInstance, error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const known = PARSER_CODES[error.code ?? '']
  const refusal = known ? refuse(known) : refuse('invalid_request', 'The request is not valid HTTP')
  const { status, retryable } = ERRORS[refusal.refusal]
  const requestId = randomUUID()
  const body = JSON.stringify(problem(refusal, requestId))
  const headers = [
    `X-Request-Id: ${requestId}`,
    ...(retryable ? ['Retry-After: 1'] : []),
    `Content-Type: ${PROBLEM_TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${headers.join('\r\n')}\r\n\r\n${body}`)
  this.log.info({ requestId, route: 'none', status }, 'request')
}

const PARSER_CODES: Record<string, ErrorCode> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

function problem(refusal: Refusal, requestId: string): Problem {
  const { status, title } = ERRORS[refusal.refusal]
  return {
    type: `urn:tacho:error:${refusal.refusal}`,
    title,
    status,
    code: refusal.refusal,
    ...(refusal.detail === undefined ? {} : { detail: refusal.detail }),
    requestId,
    ...(refusal.errors === undefined ? {} : { errors: refusal.errors }),
    ...(refusal.current === undefined ? {} : { current: refusal.current }),
  }
}

function refusalOf(error: FastifyError | StorageError): Refusal {
  if (error instanceof StorageError) return refuse(error.code)
  if (error.statusCode === 414) return refuse('uri_too_long')
  if (error.statusCode !== undefined && error.statusCode < 500) return refuse('invalid_request', error.message)
  return refuse('internal')
}
