import { ROUTES } from '@tacho/contract/routes.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { tenantOf } from './api-key.ts'
import type { Deps } from './deps.ts'
import { matchesTag } from './etag.ts'
import { serveRoute } from './serve-route.ts'
import { sendInPieces } from './stalled-readers.ts'

/** Kept by the client only, which asks each time whether it is still true; the key selects what is served. */
export const CONFIGURATION_CACHING = { 'cache-control': 'private, no-cache', vary: 'X-API-Key' }

export function runtimeConfigRoutes(app: FastifyInstance, deps: Deps): void {
  const { configurations } = deps

  serveRoute(app, ROUTES.loadRuntimeConfig, deps, ({ request, reply }) => {
    // Read the revision first: a client with the current revision needs no text.
    const tag = configurations.tagOf(tenantOf(request).environmentId)
    return typeof tag === 'string' ? answer(request, reply, tag) : tag.then((read) => answer(request, reply, read))
  })

  function answer(request: FastifyRequest, reply: FastifyReply, tag: string): FastifyReply | Promise<FastifyReply> {
    if (!matchesTag(request.headers['if-none-match'], tag)) return sendWhole(request, reply)
    return reply.code(304).headers(CONFIGURATION_CACHING).header('etag', tag).send()
  }

  async function sendWhole(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const current = await configurations.read(tenantOf(request).environmentId)
    void reply.headers(CONFIGURATION_CACHING).header('etag', current.tag).type('application/json; charset=utf-8')
    return sendInPieces(reply, current.body)
  }
}
