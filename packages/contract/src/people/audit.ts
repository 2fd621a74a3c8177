import Type, { type Static } from 'typebox'
import { anyObject, cursor, filterSchemas, nextCursor, pageLimit, time } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from '../web/route.ts'
import { WorkspaceParams } from '../tenants/workspace.ts'
import { AUDIT_FILTERS } from './audit-filters.ts'

const nullableId = (description: string) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'uuid', description })

export const AuditEntry = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'Entry id' }),
    at: time('When it happened'),
    workspaceId: nullableId('Workspace; null when it concerns the whole installation'),
    environmentId: nullableId('Environment; null when it concerns none in particular'),
    actor: Type.Object({
      kind: Type.Enum(['operator', 'token', 'alert'], {
        description: 'A person, a token, or an alert that ended a share',
      }),
      id: Type.String(),
      name: Type.String({ description: 'Name at that time' }),
    }),
    action: Type.String({ description: '`<noun>.<verb>`; a refused attempt ends in `.refused`' }),
    target: Type.Object({ kind: Type.String(), id: Type.String() }),
    detail: anyObject,
    requestId: Type.String({ description: 'Same as in the reply and the log line' }),
    address: Type.Unsafe<string | null>({
      type: ['string', 'null'],
      description:
        'Network address of the caller; null: the service itself acted, or an earlier build logged the entry',
    }),
  },
  { $id: 'AuditEntry', description: 'An action or attempt by an operator or token' },
)
export type AuditEntry = Static<typeof AuditEntry>

export const AuditPage = Type.Object({ items: Type.Array(AuditEntry), nextCursor }, { $id: 'AuditPage' })
export type AuditPage = Static<typeof AuditPage>

export const AuditQuery = Type.Object({
  limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.operatorPageMax),
  cursor,
  ...filterSchemas(AUDIT_FILTERS),
})
export type AuditQuery = Static<typeof AuditQuery>

const common = {
  method: 'GET',
  tag: 'Audit log',
  scopes: [],
  query: AuditQuery,
  status: 200,
  reply: AuditPage,
} as const

/** Audit log routes. Entries never change. */
export const auditRoutes = {
  listAudit: {
    ...common,
    access: 'viewer',
    path: '/workspaces/{workspaceId}/audit',
    summary: 'List what operators did in a workspace, newest first',
    params: WorkspaceParams,
    errors: ['not_found', 'invalid_cursor'],
  },
  listInstallationAudit: {
    ...common,
    access: 'installation',
    path: '/audit',
    summary: 'List what operators did in the installation, newest first',
    errors: ['invalid_cursor'],
  },
} as const satisfies Record<string, OperatorRoute>
