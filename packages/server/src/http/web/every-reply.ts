import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Deps } from './deps.ts'
import { refuse, replyError, REPLY_HEADERS } from './reply-error.ts'
import { closeIfUnread } from './connections.ts'
import { routeLabel } from './metrics.ts'

export function everyReplyHooks(app: FastifyInstance, { draining }: Pick<Deps, 'draining'>): void {
  app.addHook('onRequest', (request, reply, done) => {
    void reply.header('x-request-id', request.id).headers(REPLY_HEADERS)
    const { hosts, authorizations } = countOnce(request.raw.rawHeaders)
    // RFC 9112 3.2. With two Host headers, a proxy may have used the other one.
    if (hosts > 1) replyError(request, reply, refuse('invalid_request', 'Send exactly one Host header'))
    else if (hosts === 0 && request.raw.httpVersion === '1.1') {
      replyError(request, reply, refuse('invalid_request', 'Send a Host header'))
    } else if (authorizations > 1) {
      // With two headers, Node would take the first, but a proxy may have checked the other.
      replyError(request, reply, refuse('invalid_request', 'Send the Authorization header once'))
    } else done()
  })

  // While draining, `close` makes clients reconnect to another node.
  app.addHook('onSend', (request, reply, _payload, done) => {
    if (draining()) void reply.header('connection', 'close')
    closeIfUnread(request.raw, reply.raw)
    done()
  })
}

function countOnce(rawHeaders: string[]): { hosts: number; authorizations: number } {
  let [hosts, authorizations] = [0, 0]
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1
    else if (name.length === 13 && name.toLowerCase() === 'authorization') authorizations += 1
  }
  return { hosts, authorizations }
}

const QUIET_ROUTES = ['/healthz', '/readyz', '/metrics']

/** Contains the route's pattern, the caller's address and the public part of the key; no client ids, query, body or secret. */
export function requestLogHooks(app: FastifyInstance): void {
  app.addHook('onResponse', (request, reply, done) => {
    const isDebugging = request.log.level === 'debug'
    if (reply.statusCode === 304 && !isDebugging) return done()
    const route = routeLabel(request)
    const isQuiet = reply.statusCode === 304 || QUIET_ROUTES.includes(route)
    if (isQuiet && !isDebugging && reply.statusCode < 500) return done()
    const line = {
      requestId: request.id,
      method: request.method,
      route,
      status: reply.statusCode,
      ...clientIds(request),
      ms: Math.round(reply.elapsedTime * 10) / 10,
      address: request.ip,
      ...(request.apiKey ? { keyId: request.apiKey.id } : {}),
      ...(request.operatorToken ? { tokenId: request.operatorToken.id } : {}),
      ...(request.session ? { operatorId: request.session.operator.id } : {}),
    }
    if (reply.statusCode >= 500) request.log.warn(line, 'request')
    else if (isQuiet) request.log.debug(line, 'request')
    else request.log.info(line, 'request')
    done()
  })
}

const REQUEST_ID = /^[\w.:/+=@-]{1,128}$/
const TRACE_PARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/

/** Request ids of a proxy or a tracer, only in their usual form, because clients can send any text. */
function clientIds({ headers }: FastifyRequest): { proxyRequestId?: string; traceparent?: string } {
  const [id, trace] = [headers['x-request-id'], headers['traceparent']]
  return {
    ...(typeof id === 'string' && REQUEST_ID.test(id) ? { proxyRequestId: id } : {}),
    ...(typeof trace === 'string' && TRACE_PARENT.test(trace) ? { traceparent: trace } : {}),
  }
}
