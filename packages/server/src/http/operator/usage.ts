import { LIMITS } from '@tacho/contract/limits.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { UsageHour, UsagePoint } from '@tacho/contract/operator/usage.ts'
import type { FastifyInstance } from 'fastify'
import { isoTime } from '../../domain/run.ts'
import { toLatency, toUsage } from '../../domain/usage.ts'
import type { UsageHourRow, UsagePage } from '../../storage/runs.ts'
import { pricingOf, type Pricing } from '../../prices/pricing.ts'
import type { UsagePointPage, UsagePointRow } from '../../storage/usage.ts'
import type { UncostedSum } from '../../storage/uncosted.ts'
import type { Deps } from '../deps.ts'
import { pageFrom, startOf } from '../paging.ts'
import { isRefusal } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { environmentOf } from './access.ts'
import { refuseField } from './field.ts'
import { HOUR_MS, windowOf } from './window.ts'

type Position = NonNullable<UsagePage['after']>

const WINDOW_MS = 31 * 24 * HOUR_MS

export function usageRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors } = deps
  serveRoute(app, OPERATOR_ROUTES.readUsage, deps, async ({ query, request }) => {
    const window = windowOf(query)
    if (isRefusal(window)) return window
    const { from } = window
    const to = window.to - HOUR_MS
    if (Date.parse(query.to) - Date.parse(query.from) > WINDOW_MS) {
      return refuseField('to', 'must be at most 31 days after from')
    }
    const environment = environmentOf(request)
    const { limit = LIMITS.operatorPageDefault, cursor } = query
    const walk = [environment.id, 'usage', from, to]
    const start = startOf<Position>(cursors, walk, cursor)
    if (isRefusal(start)) return start
    const page = await storage.readUsage(environment.id, from, to, { limit, ...start })
    const pricing = await pricingFor(environment, page.rows)
    return pageFrom(
      page,
      (row) => toUsageHour(row, pricing),
      ({ hour, agentId, modelKey }) => cursors.write(walk, { hour, agentId, modelKey }),
    )
  })

  serveRoute(app, OPERATOR_ROUTES.readUsagePoints, deps, async ({ query, request }) => {
    const hours = windowOf(query)
    if (isRefusal(hours)) return hours
    const environment = environmentOf(request)
    const { by, step, limit = LIMITS.operatorPageDefault, cursor } = query
    const window = { by, ...hours, stepMs: step === 'window' ? hours.to - hours.from : STEPS[step] }
    if (window.to - window.from > LIMITS.usageSteps * window.stepMs) {
      return refuseField('to', `must be at most ${LIMITS.usageSteps} steps after from`)
    }
    const walk = [environment.id, 'usage points', by, step, window.from, window.to]
    const place = startOf<NonNullable<UsagePointPage['after']>>(cursors, walk, cursor)
    if (isRefusal(place)) return place
    const tenant = { environmentId: environment.id, workspaceId: environment.workspaceId }
    const page = await storage.readUsagePoints(tenant, window, { limit, ...place })
    const pricing = await pricingFor(environment, page.rows)
    return pageFrom(
      page,
      (row) => toUsagePoint(row, window, pricing),
      ({ step: last, key }) => cursors.write(walk, { step: last, key }),
    )
  })

  function pricingFor({ workspaceId }: { workspaceId: string }, rows: readonly { uncosted: UncostedSum[] }[]) {
    return pricingOf(
      deps,
      workspaceId,
      rows.flatMap(({ uncosted }) => uncosted),
    )
  }
}

const STEPS = { hour: HOUR_MS, day: 24 * HOUR_MS } as const

function toUsageHour(row: UsageHourRow, pricing: Pricing): UsageHour {
  return {
    hour: isoTime(row.hour),
    agent: { id: row.agentId, name: row.agentName },
    model: row.model,
    events: row.events,
    usage: toUsage(row),
    ...pricing.ofSums(row.uncosted),
  }
}

function toUsagePoint(row: UsagePointRow, window: { from: number; stepMs: number }, pricing: Pricing): UsagePoint {
  const { step, key, name, events, runs, completed, failed, cancelled } = row
  return {
    from: isoTime(window.from + step * window.stepMs),
    key,
    name,
    events,
    runs,
    completed,
    failed,
    cancelled,
    usage: toUsage(row),
    ...pricing.ofSums(row.uncosted),
    llmLatency: toLatency(row.llm),
    toolLatency: toLatency(row.tool),
  }
}
