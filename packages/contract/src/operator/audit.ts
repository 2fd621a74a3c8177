import Type, { type Static } from 'typebox'
import { anyObject, cursor, id, nextCursor, pageLimit, time } from '../fields.ts'
import { LIMITS } from '../limits.ts'

const nullableId = (description: string) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'uuid', description })

export const AuditEntry = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'Entry id' }),
    at: time('When it was done'),
    workspaceId: nullableId('Where; null: the whole installation is concerned'),
    environmentId: nullableId('Where; null: no environment in particular'),
    actor: Type.Object({
      kind: Type.Enum(['operator', 'token'], { description: 'A person, or a token' }),
      id: Type.String(),
      name: Type.String({ description: 'As it was at that time' }),
    }),
    action: Type.String({ description: '`<noun>.<verb>`; a refused attempt ends in `.refused`' }),
    target: Type.Object({ kind: Type.String(), id: Type.String() }),
    detail: anyObject,
    requestId: Type.String({ description: 'Of the reply and the log line' }),
  },
  { $id: 'AuditEntry', description: 'What somebody did or tried to do' },
)
export type AuditEntry = Static<typeof AuditEntry>

export const AuditPage = Type.Object({ items: Type.Array(AuditEntry), nextCursor }, { $id: 'AuditPage' })
export type AuditPage = Static<typeof AuditPage>

const filter = (description: string) => Type.Optional(id(LIMITS.auditFilterChars, description))

export const AuditQuery = Type.Object({
  limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.operatorPageMax),
  cursor,
  action: filter('Only this action, such as `api_key.create`'),
  actorId: filter('Only what this operator or token did'),
  targetKind: filter('Only what was done to this kind of thing, such as `policy`'),
  targetId: filter('Only what was done to the thing of this id'),
  from: Type.Optional(time('At or after')),
  to: Type.Optional(time('Before')),
})
export type AuditQuery = Static<typeof AuditQuery>
