import { includesRole } from '@tacho/contract/engine/words.ts'
import type { Access, OperatorRoute, Role } from '@tacho/contract/web/route.ts'
import type { FastifyRequest, onRequestAsyncHookHandler } from 'fastify'
import { isUuid } from '../../storage/engine/uuid.ts'
import type { Storage } from '../../storage/storage.ts'
import type { EnvironmentRow, WorkspaceRow } from '../../storage/tenants/tenants.ts'
import type { PersonRoles, AuditEntry } from '../../storage/people/operators.ts'
import { refuse, replyError, type Refusal } from '../web/reply-error.ts'
import { auditOf } from './audit.ts'
import type { OperatorLimits } from './attempts.ts'

export interface Actor {
  kind: 'operator' | 'token'
  id: string
  name: string
  installation: boolean
  everywhere: Role | null
  ownWorkspaces: readonly string[]
  roleIn: (workspaceId: string) => Role | null
}

export interface OperatorScope {
  actor: Actor
  workspace: WorkspaceRow | null
  environment: EnvironmentRow | null
}

declare module 'fastify' {
  interface FastifyRequest {
    actor: Actor | null
    operator: OperatorScope | null
  }
}

type Lookups = Pick<Storage, 'findWorkspace' | 'findTenant' | 'appendAudit'>

/**
 * For a caller without a role in the workspace, the entry goes to the installation's log: strangers cannot write into a
 * workspace's log.
 */
export function accessHook(storage: Lookups, limits: OperatorLimits, now: () => number): onRequestAsyncHookHandler {
  return async (request, reply) => {
    const refusal = await admit(storage, request)
    if (refusal === null) return
    if (request.operator && request.method === 'POST') {
      const tooMany = limits.ofRefusedChanges(request.operator.actor.id)
      if (tooMany) return replyError(request, reply, tooMany)
      await storage.appendAudit([refusedEntry(request, now())])
    }
    return replyError(request, reply, refusal)
  }
}

function refusedEntry(request: FastifyRequest, now: number): AuditEntry {
  const { method, path, access } = request.routeOptions.config.route as OperatorRoute
  const target = { kind: 'endpoint', id: `${method} ${path}` }
  // The audit log names runs by their internal ids, because it outlives their erasure.
  const { runId: _, ...params } = request.params as Record<string, string>
  return auditOf(request, now, 'endpoint.call.refused', target, { needs: access, ...params })
}

export function personActor({ id, email }: { id: string; email: string }, { everywhere, roles }: PersonRoles): Actor {
  // People choose their own names, so use the address.
  const who = { kind: 'operator', id, name: email } as const
  return actorWith(who, everywhere, new Map(roles.map(({ workspaceId, role }) => [workspaceId, role])))
}

export function actorWith(
  who: Pick<Actor, 'kind' | 'id' | 'name'>,
  everywhere: Role | null,
  operatorRoles: ReadonlyMap<string, Role>,
): Actor {
  return {
    ...who,
    installation: everywhere === 'owner',
    everywhere,
    ownWorkspaces: [...operatorRoles.keys()],
    roleIn(workspaceId) {
      const role = operatorRoles.get(workspaceId) ?? null
      if (role === null || everywhere === null) return role ?? everywhere
      return includesRole(role, everywhere) ? role : everywhere
    },
  }
}

export function actorOf({ operator }: FastifyRequest): Actor {
  if (!operator) throw new Error('the route is not behind the access hook')
  return operator.actor
}

export function environmentOf(request: FastifyRequest): EnvironmentRow {
  if (!request.operator?.environment) throw new Error('the path of this route names no environment')
  return request.operator.environment
}

export function workspaceOf(request: FastifyRequest): WorkspaceRow {
  if (!request.operator?.workspace) throw new Error('the path of this route names no workspace')
  return request.operator.workspace
}

async function admit(storage: Lookups, request: FastifyRequest): Promise<Refusal | null> {
  const { actor } = request
  // A path without a route has nothing to protect: let it pass to the 404.
  const access = (request.routeOptions.config.route as OperatorRoute | undefined)?.access
  if (!actor || access === undefined || access === 'anyone') return null
  const named = request.params as NamedTenant
  // A malformed id names nothing: let it pass to the parameter check, which answers 400.
  if ([named.workspaceId, named.environmentId].some((id) => id !== undefined && !isUuid(id))) return null
  const { scope, refusal } = await admitActor(storage, actor, access, named)
  request.operator = scope
  return refusal
}

interface NamedTenant {
  workspaceId?: string
  environmentId?: string
}

export async function admitActor(
  storage: Pick<Lookups, 'findTenant' | 'findWorkspace'>,
  actor: Actor,
  access: Exclude<Access, 'anyone'>,
  { workspaceId, environmentId }: NamedTenant,
): Promise<{ scope: OperatorScope; refusal: Refusal | null }> {
  const { workspace, environment } = await namedTenant(
    storage,
    workspaceId?.toLowerCase(),
    environmentId?.toLowerCase(),
  )
  const role = workspace ? actor.roleIn(workspace.id) : null
  const named = environmentId !== undefined || workspaceId !== undefined
  // A workspace without access looks like one that does not exist.
  if (named && role === null) {
    const refusal = refuse('not_found', `The ${environmentId ? 'environment' : 'workspace'} does not exist`)
    return { scope: { actor, workspace: null, environment: null }, refusal }
  }
  const scope = { actor, workspace, environment }
  if (mayCall(access, actor, role)) return { scope, refusal: null }
  return { scope, refusal: refuse('forbidden', `This requires ${requirementOf(access)}`) }
}

async function namedTenant(
  storage: Pick<Lookups, 'findTenant' | 'findWorkspace'>,
  workspaceId: string | undefined,
  environmentId: string | undefined,
) {
  if (environmentId !== undefined) return storage.findTenant(environmentId)
  return { workspace: workspaceId === undefined ? null : await storage.findWorkspace(workspaceId), environment: null }
}

export function admitAgain(request: FastifyRequest, actor: Actor): Refusal | null {
  const { access } = request.routeOptions.config.route as OperatorRoute
  const { workspace = null, environment = null } = request.operator ?? {}
  request.operator = { actor, workspace, environment }
  if (access === 'anyone' || mayCall(access, actor, workspace && actor.roleIn(workspace.id))) return null
  return refuse('forbidden', `This requires ${requirementOf(access)}`)
}

function mayCall(access: Exclude<Access, 'anyone'>, actor: Actor, role: Role | null): boolean {
  if (access === 'signed-in') return true
  if (access === 'installation') return actor.installation
  return role !== null && includesRole(role, access)
}

function requirementOf(access: Access): string {
  return access === 'installation' ? 'an owner of the whole installation' : `the role ${access}`
}
