import { ROUTES } from '@tacho/contract/routes.ts'
import type { FastifyInstance } from 'fastify'
import { tenantOf } from './api-key.ts'
import type { Deps } from './deps.ts'
import { matchesTag } from './etag.ts'
import { serveRoute } from './serve-route.ts'

/** Kept by the client only, which asks each time whether it is still true; the key selects what is served. */
const CACHING = { 'cache-control': 'private, no-cache', vary: 'X-API-Key' }

export function runtimeConfigRoutes(app: FastifyInstance, deps: Deps): void {
  const { configurations } = deps

  serveRoute(app, ROUTES.loadRuntimeConfig, deps, async ({ request, reply }) => {
    const { environmentId } = tenantOf(request)
    // The revision first: whoever has it is answered without a text.
    const tag = await configurations.tagOf(environmentId)
    if (matchesTag(request.headers['if-none-match'], tag)) {
      return reply.code(304).headers(CACHING).header('etag', tag).send()
    }
    const current = await configurations.read(environmentId)
    return reply.headers(CACHING).header('etag', current.tag).type('application/json; charset=utf-8').send(current.body)
  })
}
