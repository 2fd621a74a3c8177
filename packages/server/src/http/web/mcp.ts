/**
 * MCP over streamable HTTP, without state. Each message is answered with reads of the operator API, with the caller's
 * own token.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { MCP_ROUTE } from '@tacho/contract/web/protocol-routes.ts'
import type { FastifyInstance, onRequestAsyncHookHandler } from 'fastify'
import { jsonFault } from '../../domain/web/json-body.ts'
import type { Deps } from './deps.ts'
import { holderOf } from '../tenants/rate-limit.ts'
import { refuse, replyError } from './reply-error.ts'
import { serveRoute } from './serve-route.ts'
import { createSharedTurns, waitForTurn } from './turns.ts'
import { sendInPieces } from './connections.ts'
import { bearerOf, foreignOrigin } from '../people/caller.ts'

/** Timeout for all reads of one message. Official clients give up after the same time. */
const READS_MS = 60_000

/** Bounded, because each message gets a separate server, which takes some milliseconds. */
const RUNNING = { most: 8, ofWorkspace: 4, ofCredential: 4 }
const TOO_MANY = refuse('overloaded', 'Too many messages of this token are waiting')

export function mcpRoutes(app: FastifyInstance, deps: Deps): void {
  const { config, replies, version } = deps
  const { mcpMessagesWaiting: ofCredential } = LIMITS
  const waiting = { most: 1_000, ofWorkspace: ofCredential, ofCredential }
  const takeTurn = createSharedTurns({ running: RUNNING, waiting, tooMany: TOO_MANY })
  let loaded: ReturnType<typeof loadAnswer> | null = null
  app.addHook('onRequest', tokenOnlyHook(config.publicUrl))

  serveRoute(app, MCP_ROUTE, { ...deps, rawBody: true }, async ({ request, reply }) => {
    const message = messageIn(request.bodyBytes)
    const token = bearerOf(request) ?? ''
    const reads = new AbortController()
    const timer = setTimeout(() => reads.abort(), READS_MS)
    reply.raw.once('close', () => {
      clearTimeout(timer)
      reads.abort()
    })
    const { answerMcp } = await (loaded ??= loadAnswer())
    const answer = await takeTurn({
      holder: holderOf(request),
      isOver: () => reply.raw.destroyed,
      run: async (away) => {
        await waitForTurn()
        const pause = (milliseconds: number) => away(() => sleep(milliseconds))
        return answerMcp(app, request, { message, token, version, end: reads.signal, pause })
      },
    })
    const tooMuch = replies.take(holderOf(request), reply, answer.text)
    if (tooMuch) return tooMuch
    if (answer.type !== null) void reply.type(answer.type)
    return sendInPieces(reply.code(answer.status), answer.text)
  })

  app.route({
    method: ['GET', 'DELETE'],
    url: MCP_ROUTE.path,
    config: { route: MCP_ROUTE },
    handler: (_request, reply) => reply.code(405).header('allow', 'POST').send(),
  })
}

/**
 * Loaded at the first message, because most installations never get one. Loading all parts at once would block the
 * event loop for 0.1 s.
 */
async function loadAnswer() {
  await import('@modelcontextprotocol/core')
  await waitForTurn()
  await import('@modelcontextprotocol/server')
  await waitForTurn()
  return import('./mcp-answer.ts')
}

/** A session cookie is not accepted, because browsers send it by themselves. */
function tokenOnlyHook(publicUrl: string | null): onRequestAsyncHookHandler {
  return async (request, reply) => {
    const foreign = foreignOrigin(request, publicUrl, { byCookie: false })
    if (foreign) return replyError(request, reply, foreign)
    if (request.operatorToken !== null) return
    void reply.header('www-authenticate', 'Bearer realm="tacho"')
    return replyError(
      request,
      reply,
      refuse('unauthenticated', 'Send the header Authorization: Bearer <operator token>'),
    )
  }
}

function messageIn(body: Buffer | null): object {
  const text = body?.toString() ?? ''
  let message: unknown
  try {
    message = JSON.parse(text)
  } catch {
    throw refuse('invalid_json', jsonFault(text))
  }
  // A batch of calls could read any amount in one request. MCP has no batches since 2025-06-18.
  if (typeof message !== 'object' || message === null || Array.isArray(message)) {
    throw refuse('invalid_request', 'Send one JSON-RPC message, not a batch')
  }
  return message
}
