import { randomBytes } from 'node:crypto'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { Workspace } from '@tacho/contract/operator/workspace.ts'
import type { FastifyInstance } from 'fastify'
import { isoTime, nullableIsoTime } from '../../domain/run.ts'
import type { PageById } from '../../storage/page.ts'
import { uuidv7 } from '../../storage/uuid.ts'
import type { WorkspaceRow } from '../../storage/workspaces.ts'
import type { Deps } from '../deps.ts'
import { refuse } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { actorOf } from './access.ts'
import { auditOf } from './audit.ts'
import { tenantNameRefusal } from '../field.ts'
import { listById } from './list-by-id.ts'

export function workspacesRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors, now } = deps

  serveRoute(app, OPERATOR_ROUTES.listWorkspaces, deps, ({ query, request }) => {
    const { everywhere, ownWorkspaces } = actorOf(request)
    const within = everywhere === null ? ownWorkspaces : null
    const withArchived = query.archived === 'true'
    const read = (page: PageById) => storage.listWorkspaces(page, within, withArchived)
    return listById(cursors, ['workspaces', withArchived], query, read, toWorkspace)
  })

  serveRoute(app, OPERATOR_ROUTES.createWorkspace, deps, async ({ body: { name }, request }) => {
    const refusal = tenantNameRefusal(name)
    if (refusal) return refusal
    const createdAt = now()
    const row = { id: uuidv7(createdAt, randomBytes), name, createdAt, archivedAt: null }
    // The workspace's owners should see who created it.
    const target = { kind: 'workspace', id: row.id }
    const audit = { ...auditOf(request, createdAt, 'workspace.create', target, { name }), workspaceId: row.id }
    if ((await storage.createWorkspace(row, [audit])) === 'name_taken') {
      return refuse('conflict', 'A workspace with this name already exists')
    }
    return toWorkspace(row)
  })
}

export function toWorkspace({ id, name, createdAt, archivedAt }: WorkspaceRow): Workspace {
  return { id, name, createdAt: isoTime(createdAt), archivedAt: nullableIsoTime(archivedAt) }
}
