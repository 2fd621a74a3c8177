import type { Workspace } from '@tacho/contract/operator/workspace.ts'
import { uuidv7 } from '../../storage/uuid.ts'
import type { WorkspaceRow } from '../../storage/workspaces.ts'
import { refuse } from '../reply-error.ts'
import { auditOf } from './audit.ts'
import { listPage, byId } from '../paging.ts'
import { checkTenantName } from '../field.ts'
import { pick, isoOf } from '../../domain/shown.ts'
import type { OperatorDeps } from './serve.ts'

export function workspacesRoutes({ serve, storage, cursors, now }: OperatorDeps): void {
  serve('listWorkspaces', ({ query, actor }) => {
    const { everywhere, ownWorkspaces } = actor
    const within = everywhere === null ? ownWorkspaces : null
    const withArchived = query.archived === 'true'
    return listPage(cursors, query, {
      of: ['workspaces', withArchived],
      read: (page) => storage.listWorkspaces(page, within, withArchived),
      toItem: toWorkspace,
      placeOf: byId,
    })
  })

  serve('createWorkspace', async ({ body: { name }, request }) => {
    checkTenantName(name)
    const createdAt = now()
    const row = { id: uuidv7(createdAt), name, createdAt, archivedAt: null }
    // The workspace's owners see who created it.
    const target = { kind: 'workspace', id: row.id }
    const audit = { ...auditOf(request, createdAt, 'workspace.create', target, { name }), workspaceId: row.id }
    if ((await storage.createWorkspace(row, [audit])) === 'name_taken') {
      return refuse('conflict', 'A workspace with this name already exists')
    }
    return toWorkspace(row)
  })
}

export function toWorkspace(row: WorkspaceRow): Workspace {
  return { ...pick(row, 'id', 'name'), ...isoOf(row, 'createdAt', 'archivedAt') }
}
