import type { Environment } from '@tacho/contract/operator/environment.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance } from 'fastify'
import { uuidv7 } from '../../storage/uuid.ts'
import type { EnvironmentRow } from '../../storage/environments.ts'
import type { Deps } from '../deps.ts'
import { refuse } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { workspaceOf } from './access.ts'
import { auditOf } from './audit.ts'
import { listPage, byId } from '../paging.ts'
import { checkTenantName } from '../field.ts'
import { pick, isoOf } from '../../domain/shown.ts'

export function environmentsRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors, now } = deps

  serveRoute(app, OPERATOR_ROUTES.listEnvironments, deps, ({ query, request }) => {
    const { id } = workspaceOf(request)
    const withArchived = query.archived === 'true'
    return listPage(cursors, query, {
      of: ['environments', id, withArchived],
      read: (page) => storage.listEnvironments(id, page, withArchived),
      toItem: toEnvironment,
      placeOf: byId,
    })
  })

  serveRoute(app, OPERATOR_ROUTES.createEnvironment, deps, async ({ body: { name }, request }) => {
    checkTenantName(name)
    const createdAt = now()
    const id = uuidv7(createdAt)
    const row = { id, workspaceId: workspaceOf(request).id, name, createdAt, archivedAt: null, deleteAt: null }
    const audit = auditOf(request, createdAt, 'environment.create', { kind: 'environment', id: row.id }, { name })
    const outcome = await storage.createEnvironment(row, [{ ...audit, environmentId: row.id }])
    if (outcome === 'no_workspace') return refuse('not_found', 'The workspace does not exist')
    if (outcome === 'name_taken') return refuse('conflict', 'The workspace already has an environment with this name')
    return toEnvironment(row)
  })
}

export function toEnvironment(row: EnvironmentRow): Environment {
  return { ...pick(row, 'id', 'workspaceId', 'name'), ...isoOf(row, 'createdAt', 'archivedAt', 'deleteAt') }
}
