import { randomBytes } from 'node:crypto'
import type { ApiKey, CreatedApiKey } from '@tacho/contract/tenants/api-key.ts'
import { newApiKey } from '../../domain/people/credential.ts'
import { NONE_LOST, type ApiKeyRow } from '../../storage/tenants/tenants.ts'
import { foundOr, refuse } from '../web/reply-error.ts'
import { timeOf, futureTimeOf, networksOf } from '../web/field.ts'
import { listById } from '../web/paging.ts'
import { pick, isoOf } from '../../domain/web/shown.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'

const NO_KEY = refuse('not_found', 'The environment does not have this key')
const ENDED = refuse('conflict', 'The key is revoked, expired or already replaced')

export function apiKeysRoutes({ serve, storage, refreshCredentials }: OperatorDeps): void {
  serve('listApiKeys', ({ environment: { id }, paging }) =>
    listById(paging, (page) => storage.listApiKeys(id, page), toApiKey),
  )

  serve('createApiKey', async ({ body, environment, actor, at, audit }) => {
    const { name, scopes, requestsPerSecond = null } = body
    const allowedAddresses = networksOf(body.allowedAddresses) ?? null
    const expiresAt = expiryOf(body.expiresAt, at) ?? null
    const { id, hash, text } = newApiKey(randomBytes)
    const keyFields = {
      id,
      environmentId: environment.id,
      name,
      hash,
      scopes,
      requestsPerSecond,
      allowedAddresses,
      createdAt: at,
      expiresAt,
    }
    const row: ApiKeyRow = {
      ...keyFields,
      revokedAt: null,
      replacedBy: null,
      lastUsedAt: null,
      family: null,
      creatorKind: actor.kind,
      creatorId: actor.id,
      ...NONE_LOST,
    }
    const detail = { name, scopes, requestsPerSecond, allowedAddresses, expiresAt: body.expiresAt ?? null }
    const outcome = await storage.createApiKey(row, audit(id, detail))
    if (outcome === 'no_environment') return refuse('not_found', 'The environment does not exist')
    return { ...toApiKey(row), key: text } satisfies CreatedApiKey
  })

  serve('changeApiKey', async ({ params: { keyId }, body, environment, at, audit }) => {
    const { name, scopes, requestsPerSecond } = body
    const allowedAddresses = networksOf(body.allowedAddresses)
    const change = { name, scopes, expiresAt: expiryOf(body.expiresAt, at), requestsPerSecond, allowedAddresses }
    const entries = audit(keyId, { name, scopes, requestsPerSecond, allowedAddresses, expiresAt: body.expiresAt })
    const row = foundOr(await storage.changeApiKey(environment.id, keyId, change, at, entries), NO_KEY)
    if (row === 'ended') return ENDED
    if (row === 'widened') return refuse('conflict', 'A key cannot get more scopes. Create another key')
    await refreshCredentials()
    return toApiKey(row)
  })

  serve('rotateApiKey', async ({ params: { keyId }, body, environment, actor, at, audit }) => {
    const oldValidUntil = timeOf('oldValidUntil', body.oldValidUntil)
    const expiresAt = expiryOf(body.expiresAt, at)
    const { id, hash, text } = newApiKey(randomBytes)
    const rotation = { id, hash, now: at, oldValidUntil, expiresAt, creatorKind: actor.kind, creatorId: actor.id }
    const entries = audit(keyId, { ...body, newKey: id })
    const row = foundOr(await storage.rotateApiKey(environment.id, keyId, rotation, entries), NO_KEY)
    if (row === 'ended') return ENDED
    await refreshCredentials()
    return { ...toApiKey(row), key: text } satisfies CreatedApiKey
  })

  serve('revokeApiKey', async ({ params: { keyId }, environment, at, audit }) => {
    const row = foundOr(await storage.revokeApiKey(environment.id, keyId, at, audit(keyId)), NO_KEY)
    await refreshCredentials()
    return toApiKey(row)
  })
}

function expiryOf(text: string | null | undefined, now: number): number | null | undefined {
  return typeof text === 'string' ? futureTimeOf('expiresAt', text, now) : text
}

function toApiKey(row: ApiKeyRow): ApiKey {
  return {
    ...pick(
      row,
      'id',
      'environmentId',
      'name',
      'scopes',
      'requestsPerSecond',
      'allowedAddresses',
      'replacedBy',
      'lostRequests',
      'lastLostReason',
    ),
    ...isoOf(row, 'createdAt', 'expiresAt', 'revokedAt', 'lastUsedAt', 'lastLostAt'),
    ...(row.damaged && { damaged: true }),
  }
}
