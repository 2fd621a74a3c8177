import { randomBytes } from 'node:crypto'
import type { ApiKey, CreatedApiKey } from '@tacho/contract/operator/api-key.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance } from 'fastify'
import { newApiKey } from '../../domain/credential.ts'
import { isoTime } from '../../domain/run.ts'
import type { ApiKeyRow } from '../../storage/storage.ts'
import type { Deps } from '../deps.ts'
import { isRefusal, refuse } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { findEnvironment } from './environments.ts'
import { nameRefusal, refuseField, timeOf } from './field.ts'
import { listById } from './list-by-id.ts'

export function apiKeysRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors, keys, now } = deps

  serveRoute(app, OPERATOR_ROUTES.listApiKeys, deps, async ({ params, query }) => {
    const environment = await findEnvironment(storage, params.environmentId)
    if (isRefusal(environment)) return environment
    const { id } = environment
    return listById(cursors, ['keys', id], query, (page) => storage.listApiKeys(id, page), toApiKey)
  })

  serveRoute(app, OPERATOR_ROUTES.createApiKey, deps, async ({ params, body, reply }) => {
    const createdAt = now()
    const refusal = nameRefusal(body.name)
    if (refusal) return refusal
    const expiresAt = typeof body.expiresAt === 'string' ? timeOf('expiresAt', body.expiresAt) : null
    if (isRefusal(expiresAt)) return expiresAt
    if (expiresAt !== null && expiresAt <= createdAt) return refuseField('expiresAt', 'is not in the future')
    const { id, hash, text } = newApiKey(randomBytes)
    const row: ApiKeyRow = {
      id,
      environmentId: params.environmentId.toLowerCase(),
      name: body.name,
      hash,
      scopes: body.scopes,
      requestsPerSecond: body.requestsPerSecond ?? null,
      createdAt,
      expiresAt,
      revokedAt: null,
      lastUsedAt: null,
    }
    const outcome = await storage.createApiKey(row)
    if (outcome === 'no_environment') return refuse('not_found', 'There is no such environment')
    void reply.header('cache-control', 'no-store')
    return { ...toApiKey(row), key: text } satisfies CreatedApiKey
  })

  serveRoute(app, OPERATOR_ROUTES.revokeApiKey, deps, async ({ params }) => {
    const row = await storage.revokeApiKey(params.environmentId.toLowerCase(), params.keyId, now())
    if (!row) return refuse('not_found', 'The environment has no such key')
    // This node need not wait until it hears of the change.
    const askedAt = performance.now()
    keys.heard(await storage.controlRevision(), askedAt)
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
