import { randomBytes } from 'node:crypto'
import type { ApiKey, CreatedApiKey } from '@tacho/contract/operator/api-key.ts'
import { newApiKey } from '../../domain/credential.ts'
import type { ApiKeyRow } from '../../storage/api-keys.ts'
import { refuse } from '../reply-error.ts'
import { auditOf } from './audit.ts'
import { checkTexts, timeOf, futureTimeOf } from '../field.ts'
import { listPage, byId } from '../paging.ts'
import { pick, isoOf } from '../../domain/shown.ts'
import type { OperatorDeps } from './serve.ts'

const NO_KEY = refuse('not_found', 'The environment does not have this key')
const ENDED = refuse('conflict', 'The key is revoked, expired or already replaced')

export function apiKeysRoutes({ serve, storage, cursors, now, refreshCredentials }: OperatorDeps): void {
  serve('listApiKeys', ({ query, environment: { id } }) => {
    return listPage(cursors, query, {
      of: ['keys', id],
      read: (page) => storage.listApiKeys(id, page),
      toItem: toApiKey,
      placeOf: byId,
    })
  })

  serve('createApiKey', async ({ body, request, environment }) => {
    const createdAt = now()
    checkTexts({ name: body.name })
    const expiresAt = expiryOf(body.expiresAt, createdAt) ?? null
    const { id, hash, text } = newApiKey(randomBytes)
    const row: ApiKeyRow = {
      id,
      environmentId: environment.id,
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

  serve('changeApiKey', async ({ params: { keyId }, body, request, environment }) => {
    const at = now()
    const { name, scopes, requestsPerSecond } = body
    const expiresAt = expiryOf(body.expiresAt, at)
    checkTexts({ name })
    const detail = { name, scopes, requestsPerSecond, expiresAt: body.expiresAt }
    const audit = auditOf(request, at, 'api_key.change', { kind: 'api_key', id: keyId }, detail)
    const change = { name, scopes, expiresAt, requestsPerSecond }
    const row = await storage.changeApiKey(environment.id, keyId, change, at, [audit])
    if (row === null) return NO_KEY
    if (row === 'ended') return ENDED
    if (row === 'widened') return refuse('conflict', 'A key cannot get more scopes. Create another key')
    await refreshCredentials()
    return toApiKey(row)
  })

  serve('rotateApiKey', async ({ params: { keyId }, body, request, environment }) => {
    const at = now()
    const oldValidUntil = timeOf('oldValidUntil', body.oldValidUntil)
    const expiresAt = expiryOf(body.expiresAt, at)
    const { id, hash, text } = newApiKey(randomBytes)
    const detail = { ...body, newKey: id }
    const audit = auditOf(request, at, 'api_key.rotate', { kind: 'api_key', id: keyId }, detail)
    const rotation = { id, hash, now: at, oldValidUntil, expiresAt }
    const row = await storage.rotateApiKey(environment.id, keyId, rotation, [audit])
    if (row === null) return NO_KEY
    if (row === 'ended') return ENDED
    await refreshCredentials()
    return { ...toApiKey(row), key: text } satisfies CreatedApiKey
  })

  serve('revokeApiKey', async ({ params: { keyId }, request, environment }) => {
    const at = now()
    const audit = auditOf(request, at, 'api_key.revoke', { kind: 'api_key', id: keyId })
    const row = await storage.revokeApiKey(environment.id, keyId, at, [audit])
    if (!row) return NO_KEY
    await refreshCredentials()
    return toApiKey(row)
  })
}

function expiryOf(text: string | null | undefined, now: number): number | null | undefined {
  return typeof text === 'string' ? futureTimeOf('expiresAt', text, now) : text
}

function toApiKey(row: ApiKeyRow): ApiKey {
  return {
    ...pick(row, 'id', 'environmentId', 'name', 'scopes', 'requestsPerSecond', 'replacedBy'),
    ...isoOf(row, 'createdAt', 'expiresAt', 'revokedAt', 'lastUsedAt'),
  }
}
