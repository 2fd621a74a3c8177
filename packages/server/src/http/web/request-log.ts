import type { FastifyInstance, FastifyRequest } from 'fastify'
import { routeLabel } from './metrics.ts'

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

/** How a proxy or a tracer names the request, if it is the name of one: these are words from outside. */
function clientIds({ headers }: FastifyRequest): { proxyRequestId?: string; traceparent?: string } {
  const [id, trace] = [headers['x-request-id'], headers['traceparent']]
  return {
    ...(typeof id === 'string' && REQUEST_ID.test(id) ? { proxyRequestId: id } : {}),
    ...(typeof trace === 'string' && TRACE_PARENT.test(trace) ? { traceparent: trace } : {}),
  }
}
