import { LIMITS } from '@tacho/contract/limits.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance } from 'fastify'
import { toOperatorRun } from '../../domain/run.ts'
import { pricingOf } from '../../prices/pricing.ts'
import type { RunPage, RunsRead } from '../../storage/runs.ts'
import { readUncosted } from '../../storage/uncosted.ts'
import type { Deps } from '../deps.ts'
import { pageFrom, startOf } from '../paging.ts'
import { refuseField } from '../field.ts'
import { isRefusal, refuse } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { environmentOf } from './access.ts'
import { activitiesOf } from './stalled-rule.ts'
import { isFindable, runFilterOf } from './run-filter.ts'

type Position = NonNullable<RunPage['after']>

/** About what a score takes in a reply, without its texts. */
const SCORE_CHARS = 120
const MOST_BYTES_OF_CHAR = 3

export function operatorRunsRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors, now } = deps

  serveRoute(app, OPERATOR_ROUTES.listOperatorRuns, deps, async ({ query, request }) => {
    const { limit = LIMITS.operatorPageDefault, cursor, scoreOrder } = query
    const chosen = runFilterOf(query, now())
    if (isRefusal(chosen)) return chosen
    if (scoreOrder !== undefined && chosen.score === undefined) return refuseField('scoreOrder', 'needs score')
    const filter = { ...chosen, scoreOrder }
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
      query.score,
      query.unscored,
      query.share,
      scoreOrder,
    ]
    const start = startOf<Position>(cursors, walk, cursor)
    if (isRefusal(start)) return start
    if (!isFindable(filter)) return { items: [], nextCursor: null }
    const { page, scores } = await scored(
      environment.id,
      await storage.listRuns(environment.id, filter, { limit, ...start }),
    )
    const calls = page.rows.flatMap(({ uncosted }) => readUncosted(uncosted))
    const pricing = await pricingOf(deps, environment.workspaceId, calls)
    const activities = await activitiesOf(storage, environment.id, page.rows, now())
    return pageFrom(
      page,
      (row) => toOperatorRun(row, pricing, scores.get(row.id), activities.get(row.id)),
      ({ startedAt, id, score }) => cursors.write(walk, { startedAt, id, score }),
    )
  })

  serveRoute(app, OPERATOR_ROUTES.readOperatorRun, deps, async ({ params, request }) => {
    const environment = environmentOf(request)
    const run = await storage.findRun(environment.id, params.runId)
    if (!run) return refuse('not_found', 'The run does not exist')
    const activities = await activitiesOf(storage, environment.id, [run], now())
    const pricing = await pricingOf(deps, environment.workspaceId, readUncosted(run.uncosted))
    const scores = await storage.readRunScores(environment.id, [run.id])
    return toOperatorRun(run, pricing, scores.get(run.id), activities.get(run.id))
  })

  /** The runs of a page with their scores, as many as fit on a page. */
  async function scored(environmentId: string, page: RunsRead) {
    const scores = await storage.readRunScores(
      environmentId,
      page.rows.map(({ id }) => id),
    )
    let chars = 0
    const end = page.rows.findIndex(({ id }, index) => {
      for (const { name, category } of scores.get(id) ?? [])
        chars += SCORE_CHARS + name.length + (category?.length ?? 0)
      return index > 0 && chars > LIMITS.listBytes / MOST_BYTES_OF_CHAR
    })
    return { page: end < 0 ? page : { rows: page.rows.slice(0, end), more: true }, scores }
  }
}
