import { randomUUID } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { CLIENT_ID_HEADER } from '@tacho/contract/approvals/approval.ts'
import { ROUTES, PUBLIC_PREFIX } from '@tacho/contract/web/routes.ts'
import { CLOSING_HEADER } from '@tacho/contract/engine/words.ts'
import { tenantOf, missingScopes } from '../tenants/api-key.ts'
import type { Deps } from '../web/deps.ts'
import { matchesTag } from '../web/files.ts'
import { serveRoute } from '../web/serve-route.ts'
import { sendInPieces } from '../web/connections.ts'
import { REPLY_HEADERS } from '../web/reply-error.ts'

const CONFIGURATION_CACHING = { 'cache-control': 'private, no-cache', vary: 'X-API-Key' }

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

/**
 * Answers polls of SDKs with 304 before the framework, which costs more than the answer. Handles only cached keys and
 * tags with nothing to refuse; the framework's route handles all cases. A test compares both.
 */

const { method: METHOD, path, scopes: SCOPES } = ROUTES.loadRuntimeConfig
const ROUTE = `${PUBLIC_PREFIX}${path}`
const LABELS = { method: METHOD, route: ROUTE, status: 304 }
const FIXED_HEADERS = Object.entries({ ...REPLY_HEADERS, ...CONFIGURATION_CACHING }).flat()

type Needs = Pick<
  Deps,
  'keys' | 'configurations' | 'configurationClients' | 'rateLimit' | 'metrics' | 'draining' | 'now'
>

/** Call it before other listeners count the requests. */
export function answerUnchangedFirst(app: FastifyInstance, deps: Needs): void {
  const framework: RequestListener = (request, response) => app.routing(request, response)
  app.server.removeAllListeners('request')
  app.server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (request.url !== ROUTE || !answerUnchanged(request, response, deps)) framework(request, response)
  })
}

/** False: nothing was counted or answered. */
function answerUnchanged(request: IncomingMessage, response: ServerResponse, deps: Needs): boolean {
  const startedAt = performance.now()
  if (request.method !== METHOD || request.httpVersion !== '1.1' || deps.draining()) return false
  const plainRequest = plainHeaders(request.rawHeaders)
  if (plainRequest === null) return false
  const key = deps.keys.findRemembered(plainRequest.apiKey, deps.now())
  // The framework resolves the client's address.
  if (key === null || key.allowedAddresses !== null || missingScopes(key, SCOPES).length > 0) return false
  const tag = deps.configurations.rememberedTag(key.environmentId)
  if (tag === null || !matchesTag(plainRequest.ifNoneMatch, tag)) return false
  const { limit, remaining, resetSeconds, refusal } = deps.rateLimit.count(key.id, key.requestsPerSecond)
  if (refusal !== null) return false
  const { environmentId, id: keyId } = key
  const { clientId, isClosing } = plainRequest
  deps.configurationClients.record({ environmentId, keyId, clientId, had: tag, tag, isClosing })
  response.writeHead(304, [
    'x-request-id',
    randomUUID(),
    ...FIXED_HEADERS,
    'ratelimit-limit',
    limit,
    'ratelimit-remaining',
    remaining,
    'ratelimit-reset',
    resetSeconds,
    'etag',
    tag,
  ])
  response.end()
  deps.metrics.recordRequest(LABELS, (performance.now() - startedAt) / 1000)
  return true
}

interface Given {
  apiKey: string
  ifNoneMatch: string
  clientId: string
  isClosing: boolean
}

/** Every header on which the answer depends. */
const NO_HEADERS = {
  host: '',
  'x-api-key': '',
  'if-none-match': '',
  authorization: '',
  'x-service-client-id': '',
  'transfer-encoding': '',
  [CLOSING_HEADER]: '',
}

function plainHeaders(rawHeaders: readonly string[]): Given | null {
  const knownHeaders = { ...NO_HEADERS }
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase() ?? ''
    if (!isPlainHeader(name)) continue
    if (knownHeaders[name] !== '') return null
    knownHeaders[name] = rawHeaders[at + 1] ?? ''
  }
  const { host, 'x-api-key': apiKey, 'if-none-match': ifNoneMatch, 'x-service-client-id': clientId } = knownHeaders
  // The framework's hooks close the connection of an unread body.
  if (knownHeaders['transfer-encoding'] !== '') return null
  return host === '' || apiKey === '' || ifNoneMatch === ''
    ? null
    : { apiKey, ifNoneMatch, clientId, isClosing: knownHeaders[CLOSING_HEADER] === 'true' }
}

function isPlainHeader(name: string): name is keyof typeof NO_HEADERS {
  return Object.hasOwn(NO_HEADERS, name)
}
