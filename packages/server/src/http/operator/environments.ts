import type { Environment } from '@tacho/contract/operator/environment.ts'
import { uuidv7 } from '../../storage/uuid.ts'
import type { EnvironmentRow } from '../../storage/environments.ts'
import { refuse } from '../reply-error.ts'
import { auditOf } from './audit.ts'
import { listPage, byId } from '../paging.ts'
import { checkTenantName } from '../field.ts'
import { pick, isoOf } from '../../domain/shown.ts'
import type { OperatorDeps } from './serve.ts'

export function environmentsRoutes({ serve, storage, cursors, now }: OperatorDeps): void {
  serve('listEnvironments', ({ query, workspace: { id } }) => {
    const withArchived = query.archived === 'true'
    return listPage(cursors, query, {
      of: ['environments', id, withArchived],
      read: (page) => storage.listEnvironments(id, page, withArchived),
      toItem: toEnvironment,
      placeOf: byId,
    })
  })

  serve('createEnvironment', async ({ body: { name }, request, workspace }) => {
    checkTenantName(name)
    const createdAt = now()
    const id = uuidv7(createdAt)
    const row = { id, workspaceId: workspace.id, name, createdAt, archivedAt: null, deleteAt: null }
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
