import type { Workspace, Environment } from '@tacho/contract/tenants/workspace.ts'
import { uuidv7 } from '../../storage/engine/uuid.ts'
import type { WorkspaceRow, EnvironmentRow } from '../../storage/tenants/tenants.ts'
import { refuse } from '../web/reply-error.ts'
import { listById } from '../web/paging.ts'
import { checkTenantName } from '../web/field.ts'
import { pick, isoOf } from '../../domain/web/shown.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'

export function workspacesRoutes({ serve, storage }: OperatorDeps): void {
  serve('listWorkspaces', ({ query, actor: { everywhere, ownWorkspaces }, paging }) => {
    const within = everywhere === null ? ownWorkspaces : null
    return listById(paging, (page) => storage.listWorkspaces(page, within, query.archived === 'true'), toWorkspace)
  })

  serve('createWorkspace', async ({ body: { name }, at, audit }) => {
    checkTenantName(name)
    const row = { id: uuidv7(at), name, createdAt: at, archivedAt: null }
    // The workspace's owners see who created it.
    const entries = audit(row.id, { name }).map((entry) => ({ ...entry, workspaceId: row.id }))
    if ((await storage.createWorkspace(row, entries)) === 'name_taken') {
      return refuse('conflict', 'A workspace with this name already exists')
    }
    return toWorkspace(row)
  })
}

export function toWorkspace(row: WorkspaceRow): Workspace {
  return { ...pick(row, 'id', 'name'), ...isoOf(row, 'createdAt', 'archivedAt') }
}

export function environmentsRoutes({ serve, storage }: OperatorDeps): void {
  serve('listEnvironments', ({ query, workspace: { id }, paging }) =>
    listById(paging, (page) => storage.listEnvironments(id, page, query.archived === 'true'), toEnvironment),
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
