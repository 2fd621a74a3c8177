import Type, { type Static } from 'typebox'
import { id, nextCursor, nullableText, nullableTime, time, uuid, damaged } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { SCOPES } from '../web/route.ts'

const Scope = Type.Enum([...SCOPES], { $id: 'Scope' })
const ofScopes = { maxItems: SCOPES.length, uniqueItems: true }
const Scopes = Type.Array(Scope, { minItems: 1, ...ofScopes })

const requestsPerSecond = Type.Unsafe<number | null>({
  type: ['integer', 'null'],
  minimum: 1,
  maximum: LIMITS.requestsPerSecondMax,
  description: "Rate limit of this key; null for the installation's default",
})

export const allowedAddresses = Type.Unsafe<string[] | null>({
  type: ['array', 'null'],
  items: { type: 'string', maxLength: 64 },
  minItems: 1,
  maxItems: LIMITS.allowedAddresses,
  description: 'Addresses and networks (CIDR, IPv4 and IPv6) from which it is valid; null: from every address',
})

const keyFields = {
  id: Type.String({ description: 'Public part of the key' }),
  environmentId: uuid('Environment the key belongs to'),
  name: Type.String(),
  scopes: Type.Array(Scope, ofScopes),
  requestsPerSecond,
  allowedAddresses,
  createdAt: time('When it was created'),
  expiresAt: nullableTime('When the key expires; null: never'),
  revokedAt: nullableTime('When it was revoked'),
  replacedBy: nullableText('Id of the key that a rotation created in its place; null: none'),
  lastUsedAt: nullableTime('Last use, accurate to about a minute'),
  lostRequests: Type.Integer({
    minimum: 0,
    description: 'OpenTelemetry requests that were refused for good: exporters do not repeat them',
  }),
  lastLostAt: nullableTime('When the latest of them was refused; null: none was'),
  lastLostReason: nullableText('Why the latest of them was refused'),
  damaged: damaged('The stored key does not match its checksum: it is refused, and has no scopes here'),
}

export const ApiKey = Type.Object(keyFields, { $id: 'ApiKey', description: 'An API key, without its secret' })
export type ApiKey = Static<typeof ApiKey>

export const CreatedApiKey = Type.Object(
  { ...keyFields, key: Type.String({ description: 'The key itself. It is shown once and cannot be read again' }) },
  { $id: 'CreatedApiKey', description: 'A new API key' },
)
export type CreatedApiKey = Static<typeof CreatedApiKey>

export const NewApiKey = Type.Object(
  {
    name: id(LIMITS.nameChars, 'Purpose of the key'),
    scopes: Scopes,
    expiresAt: Type.Optional(nullableTime('When the key expires, in the future; null or absent: never')),
    requestsPerSecond: Type.Optional(requestsPerSecond),
    allowedAddresses: Type.Optional(allowedAddresses),
  },
  {
    $id: 'NewApiKey',
    examples: [
      { name: 'billing agent', scopes: ['events:write', 'config:read', 'policies:read'], requestsPerSecond: 100 },
    ],
  },
)
export type NewApiKey = Static<typeof NewApiKey>

export const ApiKeyChange = Type.Object(
  {
    name: Type.Optional(NewApiKey.properties.name),
    scopes: Type.Optional(Scopes),
    expiresAt: NewApiKey.properties.expiresAt,
    requestsPerSecond: NewApiKey.properties.requestsPerSecond,
    allowedAddresses: NewApiKey.properties.allowedAddresses,
  },
  {
    $id: 'ApiKeyChange',
    additionalProperties: false,
    description: 'Absent fields stay. `scopes` can only remove scopes',
    examples: [{ name: 'billing agent, old', requestsPerSecond: 10 }],
  },
)
export type ApiKeyChange = Static<typeof ApiKeyChange>

export const ApiKeyRotation = Type.Object(
  {
    oldValidUntil: time('Until when the old key stays valid. An earlier expiry of it stays'),
    expiresAt: Type.Optional(
      nullableTime('When the new key expires, in the future; null: never; absent: like the old key'),
    ),
  },
  {
    $id: 'ApiKeyRotation',
    additionalProperties: false,
    examples: [{ oldValidUntil: '2026-10-01T00:00:00.000Z', expiresAt: null }],
  },
)
export type ApiKeyRotation = Static<typeof ApiKeyRotation>

export const ApiKeyPage = Type.Object({ items: Type.Array(ApiKey), nextCursor }, { $id: 'ApiKeyPage' })
export type ApiKeyPage = Static<typeof ApiKeyPage>

export const ApiKeyParams = Type.Object({
  environmentId: uuid('Environment id'),
  keyId: Type.String({ description: 'Public part of the key' }),
})
