import { BODY_ERRORS } from '../body-errors.ts'
import { LIMITS } from '../limits.ts'
import type { OperatorRoute } from './access.ts'
import { EnvironmentParams } from './environment.ts'
import { Erasure, ErasurePage, ErasureParams, ErasurePreview, ErasureSubject, NewErasure } from './erasure.ts'
import { CreationHeaders } from './idempotency.ts'
import { ListQuery } from './workspace.ts'

const common = { tag: 'Erasures', scopes: [] } as const
const body = { bodyBytes: LIMITS.operatorBodyBytes } as const

const ERASURES = '/environments/{environmentId}/erasures'

export const erasureRoutes = {
  createErasure: {
    ...common,
    ...body,
    method: 'POST',
    access: 'admin',
    path: ERASURES,
    summary: 'Erase a run, a session, an agent, a client or everything of a user, forever',
    params: EnvironmentParams,
    headers: CreationHeaders,
    body: NewErasure,
    status: 201,
    reply: Erasure,
    errors: ['not_found', 'conflict', ...BODY_ERRORS],
  },
  previewErasure: {
    ...common,
    ...body,
    method: 'POST',
    access: 'admin',
    path: `${ERASURES}/preview`,
    summary: 'Count what an erasure would remove',
    params: EnvironmentParams,
    body: ErasureSubject,
    status: 200,
    reply: ErasurePreview,
    errors: ['not_found', ...BODY_ERRORS],
  },
  listErasures: {
    ...common,
    method: 'GET',
    access: 'viewer',
    path: ERASURES,
    summary: 'List the erasures of an environment, newest first',
    params: EnvironmentParams,
    query: ListQuery,
    status: 200,
    reply: ErasurePage,
    errors: ['not_found', 'invalid_cursor'],
  },
  readErasure: {
    ...common,
    method: 'GET',
    access: 'viewer',
    path: `${ERASURES}/{erasureId}`,
    summary: 'Read an erasure and how far it is',
    params: ErasureParams,
    status: 200,
    reply: Erasure,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
