import type { FastifyRequest, onRequestHookHandler, preHandlerHookHandler } from 'fastify'
import type { Route, Scope } from '@tacho/contract/web/route.ts'
import { parseOperatorToken } from '../../domain/people/credential.ts'
import { keyFamilyOf, type ApiKeyRow } from '../../storage/tenants/tenants.ts'
import { isAddressAllowed, wrongAddress, type ReportAddress } from './allowed-addresses.ts'
import type { CredentialCache } from './credential-cache.ts'
import { limitRate, type RateLimit, network, createWindows } from './rate-limit.ts'
import { isRefusal, refuse, replyError, type Refusal } from '../web/reply-error.ts'

export type FoundApiKey = ApiKeyRow & { workspaceId: string }

declare module 'fastify' {
  interface FastifyRequest {
    apiKey: FoundApiKey | null
  }
}

export function apiKeyHook(
  route: Route,
  keys: CredentialCache<FoundApiKey>,
  rateLimit: RateLimit,
  unknownKeys: UnknownKeys,
  reportAddress: ReportAddress,
  now: () => number,
): onRequestHookHandler {
  return (request, reply, done) => {
    const presented = request.headers['x-api-key']
    const remembered = typeof presented === 'string' ? keys.findRemembered(presented, now()) : null
    if (remembered !== null) return admit(admitted(remembered, request, route))
    const tooMany = presented === undefined ? null : unknownKeys.refusal(request)
    if (tooMany) return void replyError(request, reply, tooMany)
    const callerKey = currentKey(keys, request, now(), route)
    if (callerKey instanceof Promise) callerKey.then(admit, done)
    else admit(callerKey)

    function admit(key: FoundApiKey | Refusal): void {
      if (isRefusal(key)) {
        if (key.code === 'unauthenticated' && typeof presented === 'string') {
          unknownKeys.count(request)
          const known = keys.findRemembered(presented, now())
          if (known !== null) reportAddress(request, { kind: 'api_key', ...known })
        }
        return void replyError(request, reply, key)
      }
      request.apiKey = key
      const tooMany = limitRate(rateLimit, reply, key.id, key.requestsPerSecond)
      if (tooMany) replyError(request, reply, tooMany)
      else done()
    }
  }
}

/** A slow body can outlast its key, so the key is checked again when the body has arrived. */
export function keyAgainHook(keys: CredentialCache<FoundApiKey>, now: () => number): preHandlerHookHandler {
  return (request, reply, done) => {
    const callerKey = currentKey(keys, request, now())
    if (callerKey instanceof Promise) callerKey.then(admit, done)
    else admit(callerKey)

    function admit(key: FoundApiKey | Refusal): void {
      if (isRefusal(key)) replyError(request, reply, key)
      else done()
    }
  }
}

export function currentKey(
  keys: CredentialCache<FoundApiKey>,
  request: FastifyRequest,
  now: number,
  route = request.routeOptions.config.route,
): FoundApiKey | Refusal | Promise<FoundApiKey | Refusal> {
  const presented = request.headers['x-api-key']
  if (typeof presented !== 'string' || presented === '') return refuse('unauthenticated', 'Send the header X-API-Key')
  const callerKey = keys.find(presented, now)
  const answered = (key: FoundApiKey | null) => (key === null ? unknownKey(presented) : admitted(key, request, route))
  return callerKey instanceof Promise ? callerKey.then(answered) : answered(callerKey)
}

const OPERATOR_TOKEN_SENT = 'This is an operator token; send it as Authorization: Bearer'

function unknownKey(presented: string): Refusal {
  const isToken = parseOperatorToken(presented) !== null
  return refuse(
    'unauthenticated',
    isToken ? OPERATOR_TOKEN_SENT : 'The API key is unknown, expired or revoked, or its environment is archived',
  )
}

function admitted(key: FoundApiKey, request: FastifyRequest, route: Route | undefined): FoundApiKey | Refusal {
  if (!isAddressAllowed(key.allowedAddresses, request.ip)) return wrongAddress(request, 'API key')
  const missing = missingScopes(key, route?.scopes ?? [])
  return missing.length > 0 ? refuse('forbidden', `The API key lacks ${missing.join(', ')}`) : key
}

export function missingScopes(key: FoundApiKey, scopes: readonly Scope[]): Scope[] {
  return scopes.filter((scope) => !key.scopes.includes(scope))
}

/** The id of a key's family: a key and those that it replaced by rotation count as one. */
export function familyOf(request: FastifyRequest): string {
  if (!request.apiKey) throw new Error('the route is not behind the API key hook')
  return keyFamilyOf(request.apiKey)
}

export function tenantOf(request: FastifyRequest): { workspaceId: string; environmentId: string } {
  if (!request.apiKey) throw new Error('the route is not behind the API key hook')
  return request.apiKey
}

/**
 * Limits unknown keys by address. Cached keys are never refused here, so other clients behind the address are not
 * blocked.
 */

type UnknownKeys = ReturnType<typeof createUnknownKeys>

const PER_ADDRESS_A_SECOND = 500

interface UnknownKeysOptions {
  perSecond?: number
  monotonicNow?: () => number
}

export function createUnknownKeys({ perSecond = PER_ADDRESS_A_SECOND, ...clock }: UnknownKeysOptions = {}) {
  const addresses = createWindows({ windowMs: 1_000, ...clock })
  return {
    count: ({ ip }: Pick<FastifyRequest, 'ip'>) => void addresses.take(network(ip), perSecond),
    refusal({ ip }: Pick<FastifyRequest, 'ip'>): Refusal | null {
      if (!addresses.isFull(network(ip), perSecond)) return null
      return refuse('rate_limited', `This address sent ${perSecond} invalid keys within a second`)
    },
  }
}
