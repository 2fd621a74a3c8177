import type { Environment } from '@tacho/contract/tenants/environment.ts'
import { uuidv7 } from '../../storage/engine/uuid.ts'
import type { EnvironmentRow } from '../../storage/tenants/environments.ts'
import { refuse } from '../web/reply-error.ts'
import { listById } from '../web/paging.ts'
import { checkTenantName } from '../web/field.ts'
import { pick, isoOf } from '../../domain/web/shown.ts'
import type { OperatorDeps } from '../web/serve.ts'

export function environmentsRoutes({ serve, storage }: OperatorDeps): void {
  serve('listEnvironments', ({ query, workspace: { id }, walk }) =>
    listById(walk, (page) => storage.listEnvironments(id, page, query.archived === 'true'), toEnvironment),
  )

  serve('createEnvironment', async ({ body: { name }, workspace, at, audit }) => {
    checkTenantName(name)
    const id = uuidv7(at)
    const row = { id, workspaceId: workspace.id, name, createdAt: at, archivedAt: null, deleteAt: null }
    const entries = audit(id, { name }).map((entry) => ({ ...entry, environmentId: id }))
    const outcome = await storage.createEnvironment(row, entries)
    if (outcome === 'no_workspace') return refuse('not_found', 'The workspace does not exist')
    if (outcome === 'name_taken') return refuse('conflict', 'The workspace already has an environment with this name')
    return toEnvironment(row)
  })
}

export function toEnvironment(row: EnvironmentRow): Environment {
  return { ...pick(row, 'id', 'workspaceId', 'name'), ...isoOf(row, 'createdAt', 'archivedAt', 'deleteAt') }
}
