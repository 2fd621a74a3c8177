/** Who calls the public interface: the API key selects the tenant; then its scopes and its rate limit. */
import type { FastifyReply, FastifyRequest, onRequestAsyncHookHandler } from 'fastify'
import type { ApiKeyRow } from '../storage/storage.ts'
import type { CredentialCache } from './credential-cache.ts'
import type { RateLimit } from './rate-limit.ts'
import { isRefusal, refuse, replyError, type Refusal } from './reply-error.ts'

export type FoundApiKey = ApiKeyRow & { workspaceId: string }

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on every request of the public interface that reaches a handler. */
    apiKey: FoundApiKey | null
  }
}

export function apiKeyHook(
  keys: CredentialCache<FoundApiKey>,
  rateLimit: RateLimit,
  now: () => number,
): onRequestAsyncHookHandler {
  return async (request, reply) => {
    const refusal = await admit(request, reply)
    if (refusal) return replyError(request, reply, refusal)
  }

  async function admit(request: FastifyRequest, reply: FastifyReply): Promise<Refusal | null> {
    const key = await presentKey(keys, request, now())
    if (isRefusal(key)) return key
    request.apiKey = key
    return rateLimit(reply, key.id, key.requestsPerSecond)
  }
}

/** The key of a request as it is at `now`, or why it is refused. A request that waits asks again before its answer. */
export async function presentKey(
  keys: CredentialCache<FoundApiKey>,
  request: FastifyRequest,
  now: number,
): Promise<FoundApiKey | Refusal> {
  // A Bearer token beside it is ignored: older clients send both.
  const presented = request.headers['x-api-key']
  if (typeof presented !== 'string' || presented === '') return refuse('unauthenticated', 'Send the header X-API-Key')
  const key = await keys.find(presented, now)
  if (!key) return refuse('unauthenticated', 'The API key is unknown, expired or revoked')
  const missing = request.routeOptions.config.route?.scopes.filter((scope) => !key.scopes.includes(scope)) ?? []
  return missing.length > 0 ? refuse('forbidden', `The API key lacks ${missing.join(', ')}`) : key
}

/** The tenant of a request that has passed the hook. */
export function tenantOf(request: FastifyRequest): { workspaceId: string; environmentId: string } {
  if (!request.apiKey) throw new Error('the route is not behind the API key hook')
  return request.apiKey
}
