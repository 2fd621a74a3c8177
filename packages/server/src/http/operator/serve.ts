/** A route of the operator API is served by its name. Its handler gets the caller, and the tenant that its path names. */
import type { OperatorRoute } from '@tacho/contract/operator/access.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance } from 'fastify'
import type { EnvironmentRow } from '../../storage/environments.ts'
import type { WorkspaceRow } from '../../storage/workspaces.ts'
import type { Deps } from '../deps.ts'
import { serveRoute, type RouteOptions, type RouteReply, type RouteRequest } from '../serve-route.ts'
import type { Actor } from './access.ts'
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

type OperatorRequest<R extends OperatorRoute> = RouteRequest<R> & ScopeOf<R>

export interface OperatorDeps extends Deps {
  serve: <Name extends keyof Routes>(
    names: Name | readonly Name[],
    handler: (request: OperatorRequest<Routes[Name]>) => Promise<RouteReply<Routes[Name]>> | RouteReply<Routes[Name]>,
    refused?: RouteOptions['refused'],
  ) => void
  refreshCredentials: () => Promise<void>
}

export function operatorDeps(app: FastifyInstance, deps: Deps): OperatorDeps {
  const { memory, replies } = deps
  return {
    ...deps,
    serve(names, handler, refused) {
      for (const name of [names].flat()) {
        const route = OPERATOR_ROUTES[name]
        const once = onceByKey(route, deps.storage, deps.now)
        serveRoute(app, route, { memory, replies, once, refused }, (given) =>
          handler({ ...given, ...given.request.operator } as Parameters<typeof handler>[0]),
        )
      }
    },
    async refreshCredentials() {
      const askedAt = performance.now()
      const revision = await deps.storage.controlRevision()
      for (const cache of [deps.keys, deps.operatorTokens, deps.sessions]) cache.observeRevision(revision, askedAt)
    },
  }
}
