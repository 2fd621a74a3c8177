/** Hooks for every request and every reply. */
import type { FastifyInstance } from 'fastify'
import { refuse, replyError, REPLY_HEADERS } from './reply-error.ts'

export function everyReplyHooks(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    void reply.header('x-request-id', request.id).headers(REPLY_HEADERS)
    const hosts = countHosts(request.raw.rawHeaders)
    // RFC 9112 3.2: a proxy may have used the other Host header.
    if (hosts > 1) replyError(request, reply, refuse('invalid_request', 'Send exactly one Host header'))
    else if (hosts === 0 && request.raw.httpVersion === '1.1') {
      replyError(request, reply, refuse('invalid_request', 'Send a Host header'))
    } else done()
  })
}

function countHosts(rawHeaders: string[]): number {
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    if (name.length === 4 && name.toLowerCase() === 'host') count += 1
  }
  return count
}
