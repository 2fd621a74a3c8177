import type { FastifyInstance } from 'fastify'
import type { Deps } from './deps.ts'
import { refuse, replyError, REPLY_HEADERS } from './reply-error.ts'
import { closeIfUnread } from './unread-bodies.ts'

export function everyReplyHooks(app: FastifyInstance, { draining }: Pick<Deps, 'draining'>): void {
  app.addHook('onRequest', (request, reply, done) => {
    void reply.header('x-request-id', request.id).headers(REPLY_HEADERS)
    const { hosts, authorizations } = countOnce(request.raw.rawHeaders)
    // RFC 9112 3.2. With two, a proxy may have used the other one.
    if (hosts > 1) replyError(request, reply, refuse('invalid_request', 'Send exactly one Host header'))
    else if (hosts === 0 && request.raw.httpVersion === '1.1') {
      replyError(request, reply, refuse('invalid_request', 'Send a Host header'))
    } else if (authorizations > 1) {
      // Node would take the first, a proxy may have checked the other.
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
