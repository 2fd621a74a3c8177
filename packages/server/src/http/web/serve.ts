/**
 * A route of the operator API is served by its name. Its handler gets what its path names: the tenant, and the run. Its
 * entry in the audit log is declared in the route's row, and its cursors are bound to the row, the path and the query.
 */
import type { OperatorRoute } from '@tacho/contract/web/access.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/web/operator-routes.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { AuditEntry } from '../../storage/people/audit.ts'
import type { EnvironmentRow } from '../../storage/tenants/environments.ts'
import type { RunRow } from '../../storage/runs/runs.ts'
import type { WorkspaceRow } from '../../storage/tenants/workspaces.ts'
import type { Deps } from './deps.ts'
import { checkTexts } from './field.ts'
import { createWalk, type ListQuery, type Walk } from './paging.ts'
import { runOf } from '../runs/runs.ts'
import { serveRoute, type RouteOptions, type RouteReply, type RouteRequest } from './serve-route.ts'
import type { Actor } from '../people/access.ts'
import { auditOf } from '../people/audit.ts'
import { onceByKey } from './idempotency.ts'

type Routes = typeof OPERATOR_ROUTES

interface Tenant {
  actor: Actor
  workspace: WorkspaceRow
}

type ScopeOf<R extends OperatorRoute> = R['access'] extends 'anyone'
  ? unknown
  : R['path'] extends `/environments/${string}`
    ? Tenant & { environment: EnvironmentRow }
    : R['path'] extends `/workspaces/${string}`
      ? Tenant
      : { actor: Actor; workspace: WorkspaceRow | null }

type RunOf<Path> = Path extends `${string}/events/${string}`
  ? unknown
  : Path extends `${string}/runs/{runId}${string}`
    ? { run: RunRow }
    : unknown

type Audited = Record<'audit' | 'auditRefused', (targetId: string, detail?: object) => [AuditEntry]>

type OperatorRequest<R extends OperatorRoute> = RouteRequest<R> &
  ScopeOf<R> &
  RunOf<R['path']> &
  (R extends { audit: object } ? Audited : unknown) & {
    /** When the handler began. */
    at: number
    walk: Walk
  }

export type OperatorRequestOf<Name extends keyof Routes> = OperatorRequest<Routes[Name]>

export interface OperatorDeps extends Deps {
  serve: <Name extends keyof Routes>(
    names: Name | readonly Name[],
    handler: (request: OperatorRequestOf<Name>) => Promise<RouteReply<Routes[Name]>> | RouteReply<Routes[Name]>,
    refused?: RouteOptions['refused'],
  ) => void
  refreshCredentials: () => Promise<void>
}

export function operatorDeps(app: FastifyInstance, deps: Deps): OperatorDeps {
  const { memory, replies, storage, cursors, now } = deps
  return {
    ...deps,
    serve(names, handler, refused) {
      for (const name of [names].flat()) {
        const route: OperatorRoute = OPERATOR_ROUTES[name]
        const namesRun = /\/runs\/\{runId\}(?!\/events\/)/.test(route.path)
        const once = onceByKey(route, storage, now)
        // It takes long to parse, so a thread does it, and the lines have their own checks.
        const rawBody = name === 'importEnvironment'
        serveRoute(app, route, { memory, replies, once, refused, rawBody }, async (given) => {
          const { request, params } = given
          const at = now()
          if (route.body && !rawBody) checkTexts(route.body, given.body)
          const { environment = null } = request.operator ?? {}
          const { runId, ...ids } = params as Record<string, string>
          const run = namesRun && environment && runId ? await runOf(storage, environment.id, runId) : null
          const query: ListQuery = given.query
          const { limit: _, cursor: __, ...filter } = query
          const walk = createWalk(cursors, [name, ids, run?.id, filter], query)
          const more = { run, at, walk, ...(route.audit && audited(request, at, route.audit)) }
          return handler({ ...given, ...request.operator, ...more } as unknown as Parameters<typeof handler>[0])
        })
      }
    },
    async refreshCredentials() {
      const askedAt = performance.now()
      const revision = await storage.controlRevision()
      for (const cache of [deps.keys, deps.operatorTokens, deps.sessions]) cache.observeRevision(revision, askedAt)
    },
  }
}

function audited(
  request: FastifyRequest,
  at: number,
  { action, target: kind }: NonNullable<OperatorRoute['audit']>,
): Audited {
  return {
    audit: (id, detail) => [auditOf(request, at, action, { kind, id }, detail)],
    auditRefused: (id, detail) => [auditOf(request, at, `${action}.refused`, { kind, id }, detail)],
  }
}
