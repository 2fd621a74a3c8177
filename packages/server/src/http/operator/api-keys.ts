import { randomBytes } from 'node:crypto'
import type { ApiKey, CreatedApiKey } from '@tacho/contract/operator/api-key.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance } from 'fastify'
import { newApiKey } from '../../domain/credential.ts'
import { isoTime } from '../../domain/run.ts'
import type { ApiKeyRow } from '../../storage/api-keys.ts'
import type { Deps } from '../deps.ts'
import { isRefusal, refuse } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { environmentOf } from './access.ts'
import { auditOf } from './audit.ts'
import { nameRefusal, refuseField, timeOf } from './field.ts'
import { listById } from './list-by-id.ts'

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
    const expiresAt = typeof body.expiresAt === 'string' ? timeOf('expiresAt', body.expiresAt) : null
    if (isRefusal(expiresAt)) return expiresAt
    if (expiresAt !== null && expiresAt <= createdAt) return refuseField('expiresAt', 'must be in the future')
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
      lastUsedAt: null,
    }
    const { name, scopes, requestsPerSecond } = row
    const detail = { name, scopes, requestsPerSecond, expiresAt: body.expiresAt ?? null }
    const audit = auditOf(request, createdAt, 'api_key.create', { kind: 'api_key', id }, detail)
    const outcome = await storage.createApiKey(row, [audit])
    if (outcome === 'no_environment') return refuse('not_found', 'The environment does not exist')
    return { ...toApiKey(row), key: text } satisfies CreatedApiKey
  })

  serveRoute(app, OPERATOR_ROUTES.revokeApiKey, deps, async ({ params: { keyId }, request }) => {
    const at = now()
    const audit = auditOf(request, at, 'api_key.revoke', { kind: 'api_key', id: keyId })
    const row = await storage.revokeApiKey(environmentOf(request).id, keyId, at, [audit])
    if (!row) return refuse('not_found', 'The environment does not have this key')
    // Apply it on this node now instead of waiting for the next poll.
    const askedAt = performance.now()
    keys.observeRevision(await storage.controlRevision(), askedAt)
    return toApiKey(row)
  })
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
    lastUsedAt: row.lastUsedAt === null ? null : isoTime(row.lastUsedAt),
  }
}
