import Type, { type Static } from 'typebox'
import { id, nextCursor, nullableText, nullableTime, time, uuid, CreationHeaders, damaged } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { allowedAddresses } from '../tenants/api-key.ts'
import { ROLES } from '../engine/words.ts'
import type { OperatorRoute } from '../web/route.ts'
import { ListQuery, WorkspaceParams } from '../tenants/workspace.ts'

const role = Type.Enum([...ROLES], { description: 'What the token can do; each role includes the roles before it' })

const tokenFields = {
  id: Type.String({ description: 'Public part of the token' }),
  workspaceId: Type.Unsafe<string | null>({
    type: ['string', 'null'],
    format: 'uuid',
    description: 'Workspace of the token; null: every workspace and, with the role owner, the whole installation',
  }),
  name: Type.String(),
  role,
  allowedAddresses,
  createdBy: Type.Unsafe<{ kind: 'operator' | 'token'; id: string; name: string } | null>({
    type: ['object', 'null'],
    required: ['kind', 'id', 'name'],
    properties: { kind: { enum: ['operator', 'token'] }, id: { type: 'string' }, name: { type: 'string' } },
    description: 'The person or token that made it; null: the service, or a build that did not record it',
  }),
  createdAt: time('When it was created'),
  expiresAt: nullableTime('When the token expires; null: never'),
  revokedAt: nullableTime('When it was revoked'),
  replacedBy: nullableText('Id of the token that a rotation created in its place; null: none'),
  lastUsedAt: nullableTime('Last use, accurate to about a minute'),
  damaged: damaged('The stored token does not match its checksum: it is refused'),
}

export const OperatorToken = Type.Object(tokenFields, {
  $id: 'OperatorToken',
  description: 'An operator token, without its secret',
})
export type OperatorToken = Static<typeof OperatorToken>

export const CreatedOperatorToken = Type.Object(
  {
    ...tokenFields,
    token: Type.String({ description: 'The token itself. It is shown once and cannot be read again' }),
  },
  { $id: 'CreatedOperatorToken', description: 'A new operator token' },
)
export type CreatedOperatorToken = Static<typeof CreatedOperatorToken>

export const NewOperatorToken = Type.Object(
  {
    name: id(LIMITS.nameChars, 'Purpose of the token'),
    role,
    expiresAt: Type.Optional(nullableTime('When the token expires; null or absent: never')),
    allowedAddresses: Type.Optional(allowedAddresses),
  },
  { $id: 'NewOperatorToken', examples: [{ name: 'deploy script', role: 'admin' }] },
)
export type NewOperatorToken = Static<typeof NewOperatorToken>

export const OperatorTokenRotation = Type.Object(
  {
    oldValidUntil: time('Until when the old token stays valid. An earlier expiry of it stays'),
    expiresAt: Type.Optional(
      nullableTime('When the new token expires, in the future; null: never; absent: like the old token'),
    ),
  },
  { $id: 'OperatorTokenRotation', examples: [{ oldValidUntil: '2026-10-01T00:00:00.000Z', expiresAt: null }] },
)
export type OperatorTokenRotation = Static<typeof OperatorTokenRotation>

export const RevokedOperatorToken = Type.Object(
  {
    ...tokenFields,
    madeTokens: Type.Array(
      Type.Object({
        id: tokenFields.id,
        workspaceId: tokenFields.workspaceId,
        name: tokenFields.name,
        role,
        revokedAt: nullableTime('When this request revoked it; null: it stays valid'),
      }),
      {
        maxItems: LIMITS.operatorPageMax,
        description: 'Valid tokens that it made, and that these made, by id. If the list is full, ask again',
      },
    ),
  },
  { $id: 'RevokedOperatorToken', description: 'A revoked operator token, and those that came from it' },
)
export type RevokedOperatorToken = Static<typeof RevokedOperatorToken>

const RevokeQuery = Type.Object({
  alsoMade: Type.Optional(
    Type.Enum(['true'], { description: 'Also revoke the tokens that it made, and those that these made' }),
  ),
})

const OperatorTokenPage = Type.Object({ items: Type.Array(OperatorToken), nextCursor }, { $id: 'OperatorTokenPage' })
type OperatorTokenPage = Static<typeof OperatorTokenPage>

const tokenId = Type.String({ description: 'Public part of the token' })

const TokenParams = Type.Object({ tokenId })
const WorkspaceTokenParams = Type.Object({ workspaceId: uuid('Workspace id'), tokenId })

const common = { tag: 'Operator tokens', scopes: [] } as const
const list = { ...common, method: 'GET', query: ListQuery, status: 200, reply: OperatorTokenPage } as const
const create = {
  ...common,
  method: 'POST',
  headers: CreationHeaders,
  body: NewOperatorToken,
  bodyBytes: LIMITS.operatorBodyBytes,
  status: 201,
  reply: CreatedOperatorToken,
  shownOnce: 'token',
} as const
const rotate = { ...create, body: OperatorTokenRotation } as const
const revoke = { ...common, method: 'POST', query: RevokeQuery, status: 200, reply: RevokedOperatorToken } as const
const ROTATED =
  'Create a token that replaces an operator token; the old one stays valid for a time. The reply shows it once'

/** Tokens that authenticate scripts: tokens of one workspace, and tokens of the whole installation. */
export const tokenRoutes = {
  listTokens: {
    ...list,
    access: 'owner',
    path: '/workspaces/{workspaceId}/tokens',
    summary: 'List the operator tokens of a workspace',
    params: WorkspaceParams,
    errors: ['not_found', 'invalid_cursor'],
  },
  createToken: {
    ...create,
    access: 'owner',
    path: '/workspaces/{workspaceId}/tokens',
    audit: { action: 'operator_token.create', target: 'operator_token' },
    summary: 'Create an operator token for a workspace; the reply shows it once',
    params: WorkspaceParams,
    errors: ['not_found', 'conflict'],
  },
  rotateToken: {
    ...rotate,
    access: 'owner',
    path: '/workspaces/{workspaceId}/tokens/{tokenId}/rotate',
    audit: { action: 'operator_token.rotate', target: 'operator_token' },
    summary: ROTATED,
    params: WorkspaceTokenParams,
    errors: ['not_found', 'conflict'],
  },
  revokeToken: {
    ...revoke,
    access: 'owner',
    path: '/workspaces/{workspaceId}/tokens/{tokenId}/revoke',
    audit: { action: 'operator_token.revoke', target: 'operator_token' },
    summary: 'Revoke an operator token; all nodes reject it within 5 seconds',
    params: WorkspaceTokenParams,
    errors: ['not_found'],
  },
  listInstallationTokens: {
    ...list,
    access: 'installation',
    path: '/tokens',
    summary: 'List the operator tokens for every workspace',
    errors: ['invalid_cursor'],
  },
  createInstallationToken: {
    ...create,
    access: 'installation',
    path: '/tokens',
    audit: { action: 'operator_token.create', target: 'operator_token' },
    summary: 'Create an operator token for every workspace; the reply shows it once',
    errors: ['conflict'],
  },
  rotateInstallationToken: {
    ...rotate,
    access: 'installation',
    path: '/tokens/{tokenId}/rotate',
    audit: { action: 'operator_token.rotate', target: 'operator_token' },
    summary: ROTATED,
    params: TokenParams,
    errors: ['not_found', 'conflict'],
  },
  revokeInstallationToken: {
    ...revoke,
    access: 'installation',
    path: '/tokens/{tokenId}/revoke',
    audit: { action: 'operator_token.revoke', target: 'operator_token' },
    summary: 'Revoke an operator token for every workspace; all nodes reject it within 5 seconds',
    params: TokenParams,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
