import { LIMITS } from '@tacho/contract/limits.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance } from 'fastify'
import { toOperatorRun } from '../../domain/run.ts'
import { pricingOf } from '../../prices/pricing.ts'
import type { RunPage } from '../../storage/runs.ts'
import { readUncosted } from '../../storage/uncosted.ts'
import type { Deps } from '../deps.ts'
import { pageFrom, startOf } from '../paging.ts'
import { isRefusal, refuse } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { environmentOf } from './access.ts'
import { activitiesOf } from './stalled-rule.ts'
import { isFindable, runFilterOf } from './run-filter.ts'

type Position = NonNullable<RunPage['after']>

export function operatorRunsRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors, now } = deps

  serveRoute(app, OPERATOR_ROUTES.listOperatorRuns, deps, async ({ query, request }) => {
    const { limit = LIMITS.operatorPageDefault, cursor } = query
    const filter = runFilterOf(query, now())
    if (isRefusal(filter)) return filter
    const environment = environmentOf(request)
    const { agentId, agent, sessionId, status, from, to, search, approvalsLookedAt, sift } = filter
    const walk = [
      environment.id,
      'operator runs',
      agentId,
      agent,
      sessionId,
      status,
      query.activity,
      from,
      to,
      search,
      approvalsLookedAt,
      sift,
    ]
    const start = startOf<Position>(cursors, walk, cursor)
    if (isRefusal(start)) return start
    if (!isFindable(filter)) return { items: [], nextCursor: null }
    const page = await storage.listRuns(environment.id, filter, { limit, ...start })
    const calls = page.rows.flatMap(({ uncosted }) => readUncosted(uncosted))
    const pricing = await pricingOf(deps, environment.workspaceId, calls)
    const activities = await activitiesOf(storage, environment.id, page.rows, now())
    return pageFrom(
      page,
      (row) => toOperatorRun(row, pricing, activities.get(row.id)),
      ({ startedAt, id }) => cursors.write(walk, { startedAt, id }),
    )
  })

  serveRoute(app, OPERATOR_ROUTES.readOperatorRun, deps, async ({ params, request }) => {
    const environment = environmentOf(request)
    const run = await storage.findRun(environment.id, params.runId)
    if (!run) return refuse('not_found', 'The run does not exist')
    const activities = await activitiesOf(storage, environment.id, [run], now())
    const pricing = await pricingOf(deps, environment.workspaceId, readUncosted(run.uncosted))
    return toOperatorRun(run, pricing, activities.get(run.id))
  })
}
