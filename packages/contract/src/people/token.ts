import Type, { type Static } from 'typebox'
import { id, nextCursor, nullableTime, time, uuid } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { allowedAddresses } from '../tenants/api-key.ts'
import { ROLES } from '../engine/words.ts'

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
  lastUsedAt: nullableTime('Last use, accurate to about a minute'),
  damaged: Type.Optional(
    Type.Literal(true, { description: 'The stored token does not match its checksum: it is refused' }),
  ),
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

export const OperatorTokenPage = Type.Object(
  { items: Type.Array(OperatorToken), nextCursor },
  { $id: 'OperatorTokenPage' },
)
export type OperatorTokenPage = Static<typeof OperatorTokenPage>

const tokenId = Type.String({ description: 'Public part of the token' })

export const TokenParams = Type.Object({ tokenId })
export const WorkspaceTokenParams = Type.Object({ workspaceId: uuid('Workspace id'), tokenId })
