import { randomBytes } from 'node:crypto'
import type { ApiKey, CreatedApiKey } from '@tacho/contract/operator/api-key.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance } from 'fastify'
import { newApiKey } from '../../domain/credential.ts'
import { isoTime } from '../../domain/run.ts'
import type { ApiKeyRow } from '../../storage/api-keys.ts'
import type { Deps } from '../deps.ts'
import { isRefusal, refuse, type Refusal } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { environmentOf } from './access.ts'
import { auditOf } from './audit.ts'
import { nameRefusal, refuseField, timeOf } from '../field.ts'
import { listById } from './list-by-id.ts'

const NO_KEY = refuse('not_found', 'The environment does not have this key')
const ENDED = refuse('conflict', 'The key is revoked, expired or already replaced')

export function apiKeysRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors, keys, now } = deps

  serveRoute(app, OPERATOR_ROUTES.listApiKeys, deps, ({ query, request }) => {
    const { id } = environmentOf(request)
    return listById(cursors, ['keys', id], query, (page) => storage.listApiKeys(id, page), toApiKey)
  })

  serveRoute(app, OPERATOR_ROUTES.createApiKey, deps, async ({ body, request }) => {
    const createdAt = now()
    const refusal = nameRefusal(body.name)
    if (refusal) return refusal
    const expiresAt = expiryOf(body.expiresAt, createdAt) ?? null
    if (isRefusal(expiresAt)) return expiresAt
    const { id, hash, text } = newApiKey(randomBytes)
    const row: ApiKeyRow = {
      id,
      environmentId: environmentOf(request).id,
      name: body.name,
      hash,
      scopes: body.scopes,
      requestsPerSecond: body.requestsPerSecond ?? null,
      createdAt,
      expiresAt,
      revokedAt: null,
      replacedBy: null,
      lastUsedAt: null,
    }
    const { name, scopes, requestsPerSecond } = row
    const detail = { name, scopes, requestsPerSecond, expiresAt: body.expiresAt ?? null }
    const audit = auditOf(request, createdAt, 'api_key.create', { kind: 'api_key', id }, detail)
    const outcome = await storage.createApiKey(row, [audit])
    if (outcome === 'no_environment') return refuse('not_found', 'The environment does not exist')
    return { ...toApiKey(row), key: text } satisfies CreatedApiKey
  })

  serveRoute(app, OPERATOR_ROUTES.changeApiKey, deps, async ({ params: { keyId }, body, request }) => {
    const at = now()
    const { name, scopes, requestsPerSecond } = body
    const expiresAt = expiryOf(body.expiresAt, at)
    if (isRefusal(expiresAt)) return expiresAt
    const refusal = name === undefined ? null : nameRefusal(name)
    if (refusal) return refusal
    const detail = { name, scopes, requestsPerSecond, expiresAt: body.expiresAt }
    const audit = auditOf(request, at, 'api_key.change', { kind: 'api_key', id: keyId }, detail)
    const change = { name, scopes, expiresAt, requestsPerSecond }
    const row = await storage.changeApiKey(environmentOf(request).id, keyId, change, at, [audit])
    if (row === null) return NO_KEY
    if (row === 'ended') return ENDED
    if (row === 'widened') return refuse('conflict', 'A key cannot get more scopes. Create another key')
    await refreshKeys()
    return toApiKey(row)
  })

  serveRoute(app, OPERATOR_ROUTES.rotateApiKey, deps, async ({ params: { keyId }, body, request }) => {
    const at = now()
    const oldValidUntil = timeOf('oldValidUntil', body.oldValidUntil)
    if (isRefusal(oldValidUntil)) return oldValidUntil
    const expiresAt = expiryOf(body.expiresAt, at)
    if (isRefusal(expiresAt)) return expiresAt
    const { id, hash, text } = newApiKey(randomBytes)
    const detail = { ...body, newKey: id }
    const audit = auditOf(request, at, 'api_key.rotate', { kind: 'api_key', id: keyId }, detail)
    const rotation = { id, hash, now: at, oldValidUntil, expiresAt }
    const row = await storage.rotateApiKey(environmentOf(request).id, keyId, rotation, [audit])
    if (row === null) return NO_KEY
    if (row === 'ended') return ENDED
    await refreshKeys()
    return { ...toApiKey(row), key: text } satisfies CreatedApiKey
  })

  serveRoute(app, OPERATOR_ROUTES.revokeApiKey, deps, async ({ params: { keyId }, request }) => {
    const at = now()
    const audit = auditOf(request, at, 'api_key.revoke', { kind: 'api_key', id: keyId })
    const row = await storage.revokeApiKey(environmentOf(request).id, keyId, at, [audit])
    if (!row) return NO_KEY
    await refreshKeys()
    return toApiKey(row)
  })

  /** Applies it on this node now instead of waiting for the next poll. */
  async function refreshKeys(): Promise<void> {
    const askedAt = performance.now()
    keys.observeRevision(await storage.controlRevision(), askedAt)
  }
}

/** Undefined if it is not given. */
function expiryOf(text: string | null | undefined, now: number): number | null | undefined | Refusal {
  if (typeof text !== 'string') return text
  const time = timeOf('expiresAt', text)
  return isRefusal(time) || time > now ? time : refuseField('expiresAt', 'must be in the future')
}

function toApiKey(row: ApiKeyRow): ApiKey {
  return {
    id: row.id,
    environmentId: row.environmentId,
    name: row.name,
    scopes: row.scopes,
    requestsPerSecond: row.requestsPerSecond,
    createdAt: isoTime(row.createdAt),
    expiresAt: row.expiresAt === null ? null : isoTime(row.expiresAt),
    revokedAt: row.revokedAt === null ? null : isoTime(row.revokedAt),
    replacedBy: row.replacedBy,
    lastUsedAt: row.lastUsedAt === null ? null : isoTime(row.lastUsedAt),
  }
}
