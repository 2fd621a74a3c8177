import { randomBytes } from 'node:crypto'
import type { Environment } from '@tacho/contract/operator/environment.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance } from 'fastify'
import { isoTime } from '../../domain/run.ts'
import { uuidv7 } from '../../domain/uuid.ts'
import type { EnvironmentRow, Storage } from '../../storage/storage.ts'
import type { Deps } from '../deps.ts'
import { refuse, type Refusal } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { nameRefusal } from './field.ts'
import { listById } from './list-by-id.ts'

const NO_WORKSPACE = refuse('not_found', 'There is no such workspace')

export function environmentsRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors, now } = deps

  serveRoute(app, OPERATOR_ROUTES.listEnvironments, deps, async ({ params, query }) => {
    const workspace = await storage.findWorkspace(params.workspaceId.toLowerCase())
    if (!workspace) return NO_WORKSPACE
    const read = (page: Parameters<Storage['listEnvironments']>[1]) => storage.listEnvironments(workspace.id, page)
    return listById(cursors, ['environments', workspace.id], query, read, toEnvironment)
  })

  serveRoute(app, OPERATOR_ROUTES.createEnvironment, deps, async ({ params, body: { name } }) => {
    const refusal = nameRefusal(name)
    if (refusal) return refusal
    const createdAt = now()
    const row = { id: uuidv7(createdAt, randomBytes), workspaceId: params.workspaceId.toLowerCase(), name, createdAt }
    const outcome = await storage.createEnvironment(row)
    if (outcome === 'no_workspace') return NO_WORKSPACE
    if (outcome === 'name_taken') return refuse('conflict', 'The workspace has an environment of that name')
    return toEnvironment(row)
  })
}

/** The environment that a path names. */
export async function findEnvironment(storage: Storage, id: string): Promise<EnvironmentRow | Refusal> {
  return (await storage.findEnvironment(id.toLowerCase())) ?? refuse('not_found', 'There is no such environment')
}

function toEnvironment({ id, workspaceId, name, createdAt }: EnvironmentRow): Environment {
  return { id, workspaceId, name, createdAt: isoTime(createdAt) }
}
