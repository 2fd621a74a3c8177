import { randomUUID } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Gauge } from 'prom-client'
import { CLIENT_ID_HEADER } from '@tacho/contract/approvals/approval.ts'
import { ROUTES, PUBLIC_PREFIX } from '@tacho/contract/web/routes.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { CLOSING_HEADER, WAIT_HEADER } from '@tacho/contract/engine/words.ts'
import { currentKey, tenantOf, missingScopes } from '../tenants/api-key.ts'
import type { Deps } from '../web/deps.ts'
import { matchesTag } from '../web/files.ts'
import { serveRoute } from '../web/serve-route.ts'
import { sendInPieces } from '../web/connections.ts'
import { holderOf, type RateLimit } from '../tenants/rate-limit.ts'
import { isRefusal, REPLY_HEADERS } from '../web/reply-error.ts'

const CONFIGURATION_CACHING = { 'cache-control': 'private, no-cache', vary: 'X-API-Key' }

const CLIENT_ID = CLIENT_ID_HEADER.toLowerCase()

export function runtimeConfigRoutes(app: FastifyInstance, deps: Deps): void {
  const { configurations, configurationClients, keys, metrics, now, draining } = deps
  const { waits } = configurations
  app.addHook('preClose', async () => waits.close())
  new Gauge({
    name: 'tacho_configuration_waits',
    help: 'Open long polls for the runtime configuration',
    registers: [metrics.registry],
    collect() {
      this.set(waits.size())
    },
  })

  serveRoute(app, ROUTES.loadRuntimeConfig, deps, ({ request, reply, query: { wait } }) => {
    const tag = configurations.tagOf(tenantOf(request).environmentId)
    if (wait !== undefined) return answerLater(request, reply, { tag, ms: wait * 1_000 })
    return typeof tag === 'string' ? answer(request, reply, tag) : tag.then((read) => answer(request, reply, read))
  })

  async function answerLater(
    request: FastifyRequest,
    reply: FastifyReply,
    asked: { tag: string | Promise<string>; ms: number },
  ) {
    const { environmentId } = tenantOf(request)
    const [tag, holder] = [await asked.tag, holderOf(request)]
    if (draining() || !matchesTag(request.headers['if-none-match'], tag)) return answer(request, reply, tag)
    recordPoll(request, tag, tag)
    const has = { environmentId, holder, tag, ms: asked.ms, response: reply.raw }
    await new Promise<void>((wake) => void (waits.wait(has, wake) || wake()))
    // The key may have expired or been revoked during the wait.
    const key = await currentKey(keys, request, now())
    if (isRefusal(key)) return key
    return answer(request, reply, await configurations.tagOf(environmentId))
  }

  function answer(request: FastifyRequest, reply: FastifyReply, tag: string): FastifyReply | Promise<FastifyReply> {
    const ifNoneMatch = request.headers['if-none-match']
    const isUnchanged = matchesTag(ifNoneMatch, tag)
    recordPoll(request, isUnchanged ? tag : (ifNoneMatch ?? ''), tag)
    if (waits.fits(holderOf(request))) void reply.header(WAIT_HEADER, LIMITS.configurationWaitSeconds)
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
const WAITING = `${ROUTE}?wait=`
/** A larger configuration is sent in pieces. */
const WHOLE_BYTES = 65_536
const LABELS = { method: METHOD, route: ROUTE, status: 304 }
const FIXED_HEADERS = Object.entries({ ...REPLY_HEADERS, ...CONFIGURATION_CACHING }).flat()

type Needs = Pick<
  Deps,
  'keys' | 'configurations' | 'configurationClients' | 'rateLimit' | 'metrics' | 'draining' | 'now'
>

/** Call this before other listeners count the requests. */
export function answerUnchangedFirst(app: FastifyInstance, deps: Needs): void {
  const framework: RequestListener = (request, response) => app.routing(request, response)
  app.server.removeAllListeners('request')
  app.server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const { url = '' } = request
    const waitMs = url === ROUTE ? 0 : waitIn(url)
    if (waitMs === null || !answerUnchanged(request, response, { deps, waitMs, framework }))
      framework(request, response)
  })
}

/** How long the request waits, in ms. Null: it is not such a poll. */
function waitIn(url: string): number | null {
  if (!url.startsWith(WAITING)) return null
  const seconds = url.slice(WAITING.length)
  const wait = /^[1-9][0-9]?$/.test(seconds) ? Number(seconds) : Infinity
  return wait <= LIMITS.configurationWaitSecondsMax ? wait * 1_000 : null
}

interface Answering {
  deps: Needs
  /** 0: answer at once. */
  waitMs: number
  framework: RequestListener
}

/** Answers an unchanged configuration. False: nothing was counted or answered. */
function answerUnchanged(
  request: IncomingMessage,
  response: ServerResponse,
  { deps, waitMs, framework }: Answering,
): boolean {
  const startedAt = performance.now()
  if (request.method !== METHOD || request.httpVersion !== '1.1' || deps.draining()) return false
  const plainRequest = plainHeaders(request.rawHeaders)
  if (plainRequest === null) return false
  const key = deps.keys.findRemembered(plainRequest.apiKey, deps.now())
  // Only the framework resolves the client's address, so leave such keys to it.
  if (key === null || key.allowedAddresses !== null || missingScopes(key, SCOPES).length > 0) return false
  const tag = deps.configurations.rememberedTag(key.environmentId)
  if (tag === null || !matchesTag(plainRequest.ifNoneMatch, tag)) return false
  const counted = deps.rateLimit.count(key.id, key.requestsPerSecond)
  if (counted.refusal !== null) return false
  const { environmentId, id: keyId, workspaceId } = key
  const { clientId, isClosing } = plainRequest
  deps.configurationClients.record({ environmentId, keyId, clientId, had: tag, tag, isClosing })
  const holder = { workspace: workspaceId, credential: keyId }
  const { waits } = deps.configurations
  if (waitMs > 0) {
    const wake = () =>
      void answerWoken(request, response, { deps, plainRequest, counted }).catch(() => framework(request, response))
    if (waits.wait({ environmentId, holder, tag, ms: waitMs, response }, wake)) return true
  }
  send304(response, { tag, counted, offers: waits.fits(holder) })
  deps.metrics.recordRequest(LABELS, (performance.now() - startedAt) / 1000)
  return true
}

class ToFramework extends Error {}

/**
 * Checks everything again that may have changed during the wait. The rate limit counted the request when the wait
 * began.
 */
async function answerWoken(
  request: IncomingMessage,
  response: ServerResponse,
  { deps, plainRequest, counted }: { deps: Needs; plainRequest: Given; counted: Counted },
): Promise<void> {
  const startedAt = performance.now()
  if (response.destroyed || request.socket.destroyed) return
  const { apiKey, ifNoneMatch, clientId } = plainRequest
  const key = await deps.keys.find(apiKey, deps.now())
  if (key === null || key.allowedAddresses !== null || missingScopes(key, SCOPES).length > 0 || deps.draining())
    throw new ToFramework()
  const { environmentId, id: keyId, workspaceId } = key
  const { tag, body } = await deps.configurations.read(environmentId)
  const isUnchanged = matchesTag(ifNoneMatch, tag)
  if (!isUnchanged && body.length > WHOLE_BYTES) throw new ToFramework()
  const had = isUnchanged ? tag : ifNoneMatch
  deps.configurationClients.record({ environmentId, keyId, clientId, had, tag, isClosing: false })
  const offers = deps.configurations.waits.fits({ workspace: workspaceId, credential: keyId })
  if (isUnchanged) send304(response, { tag, counted, offers })
  else {
    response.writeHead(200, [
      ...headersOf({ tag, counted, offers }),
      'content-type',
      'application/json; charset=utf-8',
      'content-length',
      body.length,
    ])
    response.end(body)
  }
  const status = isUnchanged ? 304 : 200
  deps.metrics.recordRequest({ ...LABELS, status }, (performance.now() - startedAt) / 1000)
}

interface Sent {
  tag: string
  counted: Counted
  offers: boolean
}

function send304(response: ServerResponse, sent: Sent): void {
  response.writeHead(304, headersOf(sent))
  response.end()
}

function headersOf({ tag, counted: { limit, remaining, resetSeconds }, offers }: Sent): (string | number)[] {
  return [
    'x-request-id',
    randomUUID(),
    ...FIXED_HEADERS,
    'ratelimit-limit',
    limit,
    'ratelimit-remaining',
    remaining,
    'ratelimit-reset',
    resetSeconds,
    ...(offers ? [WAIT_HEADER, LIMITS.configurationWaitSeconds] : []),
    'etag',
    tag,
  ]
}

type Counted = ReturnType<RateLimit['count']>

interface Given {
  apiKey: string
  ifNoneMatch: string
  clientId: string
  isClosing: boolean
}

/** Every header that affects the answer. */
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
  // Only the framework's hooks close the connection of an unread body.
  if (knownHeaders['transfer-encoding'] !== '') return null
  return host === '' || apiKey === '' || ifNoneMatch === ''
    ? null
    : { apiKey, ifNoneMatch, clientId, isClosing: knownHeaders[CLOSING_HEADER] === 'true' }
}

function isPlainHeader(name: string): name is keyof typeof NO_HEADERS {
  return Object.hasOwn(NO_HEADERS, name)
}
