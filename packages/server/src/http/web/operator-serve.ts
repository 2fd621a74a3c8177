/**
 * Serves a route of the operator API by its name. The handler gets what the path names: the tenant, and the run. The
 * route's row declares its audit entry, and its cursors are bound to the row, the path and the query.
 */
import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyRequest, FastifyReply } from 'fastify'
import type { OperatorRoute, Route } from '@tacho/contract/web/route.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/web/operator-routes.ts'
import { IDEMPOTENCY_KEY_HEADER, REPLAYED_HEADER } from '@tacho/contract/web/fields.ts'
import type { AuditEntry } from '../../storage/people/operators.ts'
import type { EnvironmentRow, WorkspaceRow } from '../../storage/tenants/tenants.ts'
import type { RunRow } from '../../storage/runs/runs.ts'
import type { Deps } from './deps.ts'
import { checkTexts } from './field.ts'
import { createPaging, type ListQuery, type Paging } from './paging.ts'
import { runOf } from '../runs/runs.ts'
import {
  serveRoute,
  type RouteOptions,
  type RouteReply,
  type RouteRequest,
  type Answer,
  type AnswerOnce,
} from './serve-route.ts'
import { type Actor, actorOf } from '../people/access.ts'
import { auditOf } from '../people/audit.ts'
import { IDEMPOTENCY_KEPT_MS, type IdempotencyKey, type KeptReply } from '../../storage/engine/work.ts'
import type { Storage } from '../../storage/storage.ts'
import { refuse } from './reply-error.ts'

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
    /** Start of the handler. */
    at: number
    paging: Paging
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
        // A thread parses an import, because that takes long, and its lines have separate checks.
        const rawBody = name === 'importEnvironment'
        serveRoute(app, route, { memory, replies, once, refused, rawBody }, async (routeRequest) => {
          const { request, params } = routeRequest
          const at = now()
          if (route.body && !rawBody) checkTexts(route.body, routeRequest.body)
          const { environment = null } = request.operator ?? {}
          const { runId, ...ids } = params as Record<string, string>
          const run = namesRun && environment && runId ? await runOf(storage, environment.id, runId) : null
          const query: ListQuery = routeRequest.query
          const { limit: _, cursor: __, ...filter } = query
          const paging = createPaging(cursors, [name, ids, run?.id, filter], query)
          const more = { run, at, paging, ...(route.audit && audited(request, at, route.audit)) }
          return handler({ ...routeRequest, ...request.operator, ...more } as unknown as Parameters<typeof handler>[0])
        })
      }
    },
    async refreshCredentials() {
      const askedAt = performance.now()
      const revision = await storage.controlRevision()
      for (const cache of [deps.keys, deps.operatorTokens, deps.sessions, deps.waitingKeys])
        cache.observeRevision(revision, askedAt)
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

/** Every creation ends within this time, so an older claim belongs to a dead request. */
const DEAD_MS = 60 * 1000

function onceByKey(
  route: Route,
  storage: Pick<Storage, 'claimIdempotencyKey' | 'keepIdempotentReply' | 'releaseIdempotencyKey'>,
  now: () => number,
): AnswerOnce | null {
  if (!route.headers || !Object.hasOwn(route.headers.properties, IDEMPOTENCY_KEY_HEADER)) return null

  return async (request, reply, answer) => {
    const text = request.headers[IDEMPOTENCY_KEY_HEADER.toLowerCase()]
    if (typeof text !== 'string') return answer()
    const { kind, id } = actorOf(request)
    const key: IdempotencyKey = { actorKind: kind, actorId: id, key: text }
    const claimedAt = now()
    const outcome = await storage.claimIdempotencyKey(key, {
      fingerprint: fingerprintOf(request),
      now: claimedAt,
      freeUntil: claimedAt - IDEMPOTENCY_KEPT_MS,
      deadUntil: claimedAt - DEAD_MS,
    })
    if (outcome === 'claimed') return first(request, key, claimedAt, answer)
    if (outcome === 'other') return refuse('conflict', 'This Idempotency-Key belongs to another request')
    if (outcome === 'running') {
      void reply.header('retry-after', 1)
      return refuse('conflict', 'The first request with this Idempotency-Key is still running')
    }
    return again(reply, outcome)
  }

  async function first(request: FastifyRequest, key: IdempotencyKey, claimedAt: number, answer: () => Promise<Answer>) {
    const finish = async (keptReply: KeptReply | null) => {
      try {
        if (keptReply === null) await storage.releaseIdempotencyKey(key, claimedAt)
        else await storage.keepIdempotentReply(key, claimedAt, keptReply)
      } catch (error) {
        // The creation succeeded, so reply; the claim expires by itself.
        request.log.error({ requestId: request.id, err: error }, 'could not store the idempotency key')
      }
    }
    let routeAnswer: Answer
    try {
      routeAnswer = await answer()
    } catch (error) {
      await finish(null)
      throw error
    }
    await finish(typeof routeAnswer === 'string' ? { status: route.status, json: withoutSecret(routeAnswer) } : null)
    return routeAnswer
  }

  function withoutSecret(json: string): string {
    if (route.shownOnce === undefined) return json
    const { [route.shownOnce]: _, ...shownMembers } = JSON.parse(json) as Record<string, unknown>
    return JSON.stringify(shownMembers)
  }

  function again(reply: FastifyReply, { status, json }: KeptReply): Answer {
    if (route.shownOnce !== undefined) {
      const { id } = JSON.parse(json) as { id: string }
      const detail = `The first request with this Idempotency-Key created it and showed its ${route.shownOnce}`
      return refuse('conflict', detail, { current: { id } })
    }
    void reply.code(status).header(REPLAYED_HEADER, 'true').type('application/json; charset=utf-8').send(json)
    return null
  }
}

function fingerprintOf({ method, url, bodyBytes }: FastifyRequest): string {
  const [path] = url.split('?', 1)
  return createHash('sha256')
    .update(`${method} ${path}\n`)
    .update(bodyBytes ?? '')
    .digest('hex')
}
