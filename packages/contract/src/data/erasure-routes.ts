import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from '../web/access.ts'
import { EnvironmentParams } from '../tenants/environment.ts'
import { Erasure, ErasurePage, ErasureParams, ErasurePreview, ErasureSubject, NewErasure } from './erasure.ts'
import { CreationHeaders } from '../web/idempotency.ts'
import { ListQuery } from '../tenants/workspace.ts'

const common = { tag: 'Erasures', scopes: [], params: EnvironmentParams } as const
const read = { ...common, method: 'GET', access: 'viewer', status: 200 } as const
const write = { ...common, method: 'POST', access: 'admin', bodyBytes: LIMITS.operatorBodyBytes } as const

const ERASURES = '/environments/{environmentId}/erasures'

export const erasureRoutes = {
  createErasure: {
    ...write,
    path: ERASURES,
    audit: { action: 'erasure.create', target: 'erasure' },
    summary: 'Erase a run, a session, an agent, a client or everything of a user, forever',
    headers: CreationHeaders,
    body: NewErasure,
    status: 201,
    reply: Erasure,
    errors: ['not_found', 'conflict'],
  },
  previewErasure: {
    ...write,
    path: `${ERASURES}/preview`,
    summary: 'Count what an erasure would remove',
    body: ErasureSubject,
    status: 200,
    reply: ErasurePreview,
    errors: ['not_found'],
  },
  listErasures: {
    ...read,
    path: ERASURES,
    summary: 'List the erasures of an environment, newest first',
    query: ListQuery,
    reply: ErasurePage,
    errors: ['not_found', 'invalid_cursor'],
  },
  readErasure: {
    ...read,
    path: `${ERASURES}/{erasureId}`,
    summary: 'Read an erasure and how far it is',
    params: ErasureParams,
    reply: Erasure,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
