import type { FastifyReply, FastifyRequest, onRequestAsyncHookHandler, preHandlerAsyncHookHandler } from 'fastify'
import type { OperatorRoute } from '@tacho/contract/web/route.ts'
import type { SessionRow, OperatorTokenRow } from '../../storage/people/operators.ts'
import { isAddressAllowed, wrongAddress } from '../tenants/allowed-addresses.ts'
import type { Deps } from '../web/deps.ts'
import { isRefusal, refuse, replyError, type Refusal } from '../web/reply-error.ts'
import { sessionTokenOf } from './sign-in-records.ts'
import { actorWith, admitAgain, personActor, type Actor } from './access.ts'
import type { OperatorLimits } from './attempts.ts'

declare module 'fastify' {
  interface FastifyRequest {
    operatorToken: OperatorTokenRow | null
    session: SessionRow | null
  }
}

export type CallerDeps = Pick<Deps, 'operatorTokens' | 'sessions' | 'reportAddress' | 'config' | 'now'>

type Caller = { token: OperatorTokenRow } | { session: SessionRow }

/**
 * Failed attempts are not counted per token: a token has at least 190 random bits, and counting would let strangers lock
 * operators out.
 */
export function callerHook(deps: CallerDeps, limits: OperatorLimits): onRequestAsyncHookHandler {
  return async (request, reply) => {
    const refusal = limits.byAddress(request, reply) ?? (await admit(deps, limits, request, reply))
    if (refusal) return replyError(request, reply, refusal)
  }
}

export function callerAgainHook(deps: CallerDeps): preHandlerAsyncHookHandler {
  return async (request, reply) => {
    if (request.bodyBytes === null || request.operator === null) return
    const actor = await currentActor(deps, request)
    const refusal = actor ? admitAgain(request, actor) : unauthenticated(request, reply)
    if (refusal) return replyError(request, reply, refusal)
  }
}

export async function currentActor(deps: CallerDeps, request: FastifyRequest): Promise<Actor | null> {
  const caller = await findCaller(deps, request)
  return caller === null || isRefusal(caller) ? null : actorOfCaller(caller)
}

async function admit(
  deps: CallerDeps,
  limits: OperatorLimits,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Refusal | null> {
  const route = request.routeOptions.config.route as OperatorRoute | undefined
  const reads = request.method === 'GET' || request.method === 'HEAD'
  const { publicUrl } = deps.config
  if (route?.access === 'anyone') return reads ? null : foreignOrigin(request, publicUrl, { byCookie: false })
  const caller = await findCaller(deps, request)
  if (caller === null) return unauthenticated(request, reply)
  if (isRefusal(caller)) {
    void reply.header('www-authenticate', 'Bearer realm="tacho", error="invalid_token"')
    return caller
  }
  request.actor = actorOfCaller(caller)
  const tooMany = limits.byCaller('token' in caller ? caller.token.id : caller.session.id, reply)
  if (tooMany) return tooMany
  if ('token' in caller) {
    request.operatorToken = caller.token
    return null
  }
  request.session = caller.session
  return reads ? null : foreignOrigin(request, publicUrl, { byCookie: true })
}

/** A bad token fails even with a valid cookie. */
async function findCaller(
  { operatorTokens, sessions, reportAddress, now }: CallerDeps,
  request: FastifyRequest,
): Promise<Caller | Refusal | null> {
  if (request.headers.authorization !== undefined) {
    const text = bearerOf(request)
    const token = text === undefined ? null : await operatorTokens.find(text, now())
    if (token === null || isAddressAllowed(token.allowedAddresses, request.ip)) return token && { token }
    reportAddress(request, { kind: 'operator_token', ...token })
    return wrongAddress(request, 'operator token')
  }
  const sessionToken = sessionTokenOf(request)
  const session = sessionToken === null ? null : await sessions.find(sessionToken, now())
  return session && { session }
}

function actorOfCaller(caller: Caller): Actor {
  if ('session' in caller) return personActor(caller.session.operator, caller.session)
  const { id, name, workspaceId, role } = caller.token
  const who = { kind: 'token', id, name } as const
  return workspaceId === null ? actorWith(who, role, new Map()) : actorWith(who, null, new Map([[workspaceId, role]]))
}

export function bearerOf({ headers }: FastifyRequest): string | undefined {
  return /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1]
}

function unauthenticated(request: FastifyRequest, reply: FastifyReply): Refusal {
  const { authorization } = request.headers
  const sent = bearerOf(request) !== undefined
  // RFC 6750: name the error only if a token was sent.
  void reply.header('www-authenticate', `Bearer realm="tacho"${sent ? ', error="invalid_token"' : ''}`)
  if (sent) return refuse('unauthenticated', 'The operator token is unknown, expired or revoked')
  if (authorization === undefined && sessionTokenOf(request) !== null) {
    return refuse('unauthenticated', 'The session has ended')
  }
  return refuse('unauthenticated', 'Send the header Authorization: Bearer <operator token>, or sign in')
}

/**
 * Whether a request comes from another origin. Pages cannot change these headers. A request without them and without a
 * cookie is not from a browser.
 */
export function foreignOrigin(
  request: FastifyRequest,
  publicUrl: string | null,
  { byCookie }: { byCookie: boolean },
): Refusal | null {
  const { 'sec-fetch-site': site, origin } = request.headers
  if (site !== undefined) return site === 'same-origin' ? null : foreign()
  if (origin === undefined) return byCookie ? foreign() : null
  return isOurs(origin, request, publicUrl) ? null : foreign()
}

function isOurs(origin: string, { headers }: FastifyRequest, publicUrl: string | null): boolean {
  const originUrl = URL.parse(origin)
  if (originUrl === null) return false
  return originUrl.host === headers.host || (publicUrl !== null && originUrl.origin === new URL(publicUrl).origin)
}

function foreign(): Refusal {
  return refuse('forbidden', 'Cross-origin request refused')
}
