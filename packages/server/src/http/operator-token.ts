/** Who calls the operator API with a token. */
import type { FastifyRequest, onRequestAsyncHookHandler } from 'fastify'
import type { OperatorTokenRow } from '../storage/storage.ts'
import type { CredentialCache } from './credential-cache.ts'
import { actorWith, type Actor } from './operator/access.ts'
import { refuse, replyError } from './reply-error.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on every request of the operator API that reaches a handler. */
    operatorToken: OperatorTokenRow | null
  }
}

/**
 * Failed attempts are not counted or slowed: a token has 256 random bits (at the least 190, where it was brought along),
 * so guessing does not get anywhere, and counting would let a stranger lock operators out.
 */
export function operatorTokenHook(
  tokens: CredentialCache<OperatorTokenRow>,
  now: () => number,
): onRequestAsyncHookHandler {
  return async (request, reply) => {
    const text = bearerOf(request)
    const token = text === undefined ? null : await tokens.find(text, now())
    if (token) {
      request.operatorToken = token
      request.actor = tokenActor(token)
      return
    }
    // RFC 6750: the error is told only where a token was sent.
    void reply.header('www-authenticate', `Bearer realm="tacho"${text === undefined ? '' : ', error="invalid_token"'}`)
    const detail =
      text === undefined
        ? 'Send the header Authorization: Bearer <operator token>'
        : 'The operator token is unknown, expired or revoked'
    return replyError(request, reply, refuse('unauthenticated', detail))
  }
}

function tokenActor({ id, name, workspaceId, role }: OperatorTokenRow): Actor {
  const who = { kind: 'token', id, name } as const
  return workspaceId === null ? actorWith(who, role, new Map()) : actorWith(who, null, new Map([[workspaceId, role]]))
}

/** The token that a request carries, good or not. */
export function bearerOf({ headers }: FastifyRequest): string | undefined {
  return /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1]
}
