import { LIMITS } from '@tacho/contract/limits.ts'
import type { OperatorRunsQuery } from '@tacho/contract/operator/run.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance } from 'fastify'
import { toOperatorRun } from '../../domain/run.ts'
import { isStorableText } from '../../domain/text.ts'
import { pricingOf } from '../../prices/pricing.ts'
import type { RunPage, RunSift } from '../../storage/runs.ts'
import { readUncosted } from '../../storage/uncosted.ts'
import type { Deps } from '../deps.ts'
import { pageFrom, startOf } from '../paging.ts'
import { isRefusal, refuse } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { environmentOf } from './access.ts'
import { timeOf } from './field.ts'

type Position = NonNullable<RunPage['after']>

export function operatorRunsRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors } = deps

  serveRoute(app, OPERATOR_ROUTES.listOperatorRuns, deps, async ({ query, request }) => {
    const { limit = LIMITS.operatorPageDefault, cursor, status, sessionId, agent, q } = query
    const agentId = query.agentId?.toLowerCase()
    const from = query.from === undefined ? undefined : timeOf('from', query.from)
    const to = query.to === undefined ? undefined : timeOf('to', query.to)
    if (isRefusal(from)) return from
    if (isRefusal(to)) return to
    const environment = environmentOf(request)
    const sift = siftOf(query)
    const approvalsLookedAt = query.hasApprovals === undefined ? undefined : LIMITS.searchedApprovals
    const walk = [
      environment.id,
      'operator runs',
      agentId,
      agent,
      sessionId,
      status,
      from,
      to,
      q,
      approvalsLookedAt,
      sift,
    ]
    const start = startOf<Position>(cursors, walk, cursor)
    if (isRefusal(start)) return start
    // A text that no store can keep matches no run.
    const texts = [sessionId, agent, q, ...Object.values(sift?.traits ?? {})]
    const isFindable = texts.every((text) => text === undefined || isStorableText(text))
    if (!isFindable) return { items: [], nextCursor: null }
    const filter = { agentId, agent, sessionId, status, from, to, search: q, approvalsLookedAt, sift }
    const page = await storage.listRuns(environment.id, filter, { limit, ...start })
    const calls = page.rows.flatMap(({ uncosted }) => readUncosted(uncosted))
    const pricing = await pricingOf(deps, environment.workspaceId, calls)
    return pageFrom(
      page,
      (row) => toOperatorRun(row, pricing),
      ({ startedAt, id }) => cursors.write(walk, { startedAt, id }),
    )
  })

  serveRoute(app, OPERATOR_ROUTES.readOperatorRun, deps, async ({ params, request }) => {
    const environment = environmentOf(request)
    const run = await storage.findRun(environment.id, params.runId)
    if (!run) return refuse('not_found', 'The run does not exist')
    return toOperatorRun(run, await pricingOf(deps, environment.workspaceId, readUncosted(run.uncosted)))
  })
}

/** The filters that no index answers; undefined if none is given. */
function siftOf(query: OperatorRunsQuery): RunSift | undefined {
  const { minCost, minLengthMs, hasErrors, tool, model, policyId, promptVersionId } = query
  const given = [minCost, minLengthMs, hasErrors, tool, model, policyId, promptVersionId]
  if (given.every((value) => value === undefined)) return undefined
  return {
    runsLookedAt: LIMITS.runsLookedAt,
    costNanosMin: Math.round(Number(minCost ?? 0) * NANOS),
    lengthMsMin: minLengthMs ?? 0,
    errorsMin: hasErrors === 'true' ? 1 : 0,
    traits: {
      ...(tool !== undefined && { tool }),
      ...(model !== undefined && { model }),
      ...(policyId !== undefined && { policy: policyId }),
      ...(promptVersionId !== undefined && { prompt: promptVersionId.toLowerCase() }),
    },
  }
}

const NANOS = 1e9
