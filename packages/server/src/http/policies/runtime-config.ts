import { CLIENT_ID_HEADER } from '@tacho/contract/approvals/approval.ts'
import { ROUTES } from '@tacho/contract/web/routes.ts'
import { CLOSING_HEADER } from '@tacho/contract/engine/words.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { tenantOf } from '../tenants/api-key.ts'
import type { Deps } from '../web/deps.ts'
import { matchesTag } from '../web/etag.ts'
import { serveRoute } from '../web/serve-route.ts'
import { sendInPieces } from '../web/unread-replies.ts'

export const CONFIGURATION_CACHING = { 'cache-control': 'private, no-cache', vary: 'X-API-Key' }

const CLIENT_ID = CLIENT_ID_HEADER.toLowerCase()

export function runtimeConfigRoutes(app: FastifyInstance, deps: Deps): void {
  const { configurations, configurationClients } = deps

  serveRoute(app, ROUTES.loadRuntimeConfig, deps, ({ request, reply }) => {
    const tag = configurations.tagOf(tenantOf(request).environmentId)
    return typeof tag === 'string' ? answer(request, reply, tag) : tag.then((read) => answer(request, reply, read))
  })

  function answer(request: FastifyRequest, reply: FastifyReply, tag: string): FastifyReply | Promise<FastifyReply> {
    const ifNoneMatch = request.headers['if-none-match']
    const isUnchanged = matchesTag(ifNoneMatch, tag)
    recordPoll(request, isUnchanged ? tag : (ifNoneMatch ?? ''), tag)
    if (!isUnchanged) return sendWhole(request, reply)
    return reply.code(304).headers(CONFIGURATION_CACHING).header('etag', tag).send()
  }

  function recordPoll(request: FastifyRequest, had: string, tag: string): void {
    const keyId = request.apiKey?.id ?? ''
    const { environmentId } = tenantOf(request)
    const clientId = request.headers[CLIENT_ID]
    configurationClients.record({
      environmentId,
      keyId,
      clientId: typeof clientId === 'string' ? clientId : '',
      had,
      tag,
      isClosing: request.headers[CLOSING_HEADER] === 'true',
    })
  }

  async function sendWhole(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const current = await configurations.read(tenantOf(request).environmentId)
    void reply.headers(CONFIGURATION_CACHING).header('etag', current.tag).type('application/json; charset=utf-8')
    return sendInPieces(reply, current.body)
  }
}
