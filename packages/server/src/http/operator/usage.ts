import { LIMITS } from '@tacho/contract/limits.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { UsageHour, UsagePoint } from '@tacho/contract/operator/usage.ts'
import type { FastifyInstance } from 'fastify'
import { isoTime } from '../../domain/run.ts'
import { toLatency, toUsage } from '../../domain/usage.ts'
import type { UsageHourRow, UsagePage } from '../../storage/runs.ts'
import type { UsagePointPage, UsagePointRow } from '../../storage/usage.ts'
import type { Deps } from '../deps.ts'
import { pageFrom, startOf } from '../paging.ts'
import { isRefusal } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { environmentOf } from './access.ts'
import { refuseField, timeOf } from './field.ts'

type Position = NonNullable<UsagePage['after']>

const HOUR_MS = 3_600_000
const WINDOW_MS = 31 * 24 * HOUR_MS

export function usageRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors } = deps
  serveRoute(app, OPERATOR_ROUTES.readUsage, deps, async ({ query, request }) => {
    const from = timeOf('from', query.from)
    if (isRefusal(from)) return from
    const to = timeOf('to', query.to)
    if (isRefusal(to)) return to
    if (to < from) return refuseField('to', 'must not be before from')
    if (to - from > WINDOW_MS) return refuseField('to', 'must be at most 31 days after from')
    const environment = environmentOf(request)
    const { limit = LIMITS.operatorPageDefault, cursor } = query
    const walk = [environment.id, 'usage', hourOf(from), hourOf(to)]
    const start = startOf<Position>(cursors, walk, cursor)
    if (isRefusal(start)) return start
    const page = await storage.readUsage(environment.id, hourOf(from), hourOf(to), { limit, ...start })
    return pageFrom(page, toUsageHour, ({ hour, agentId, modelKey }) =>
      cursors.write(walk, { hour, agentId, modelKey }),
    )
  })

  serveRoute(app, OPERATOR_ROUTES.readUsagePoints, deps, async ({ query, request }) => {
    const from = timeOf('from', query.from)
    if (isRefusal(from)) return from
    const to = timeOf('to', query.to)
    if (isRefusal(to)) return to
    if (to < from) return refuseField('to', 'must not be before from')
    const environment = environmentOf(request)
    const { by, step, limit = LIMITS.operatorPageDefault, cursor } = query
    const [start, end] = [hourOf(from), hourOf(to) + HOUR_MS]
    const window = { by, from: start, to: end, stepMs: step === 'window' ? end - start : STEPS[step] }
    if (window.to - window.from > LIMITS.usageSteps * window.stepMs) {
      return refuseField('to', `must be at most ${LIMITS.usageSteps} steps after from`)
    }
    const walk = [environment.id, 'usage points', by, step, window.from, window.to]
    const place = startOf<NonNullable<UsagePointPage['after']>>(cursors, walk, cursor)
    if (isRefusal(place)) return place
    const tenant = { environmentId: environment.id, workspaceId: environment.workspaceId }
    const page = await storage.readUsagePoints(tenant, window, { limit, ...place })
    return pageFrom(
      page,
      (row) => toUsagePoint(row, window),
      ({ step: last, key }) => cursors.write(walk, { step: last, key }),
    )
  })
}

const STEPS = { hour: HOUR_MS, day: 24 * HOUR_MS } as const

function hourOf(time: number): number {
  return Math.floor(time / HOUR_MS) * HOUR_MS
}

function toUsageHour(row: UsageHourRow): UsageHour {
  return {
    hour: isoTime(row.hour),
    agent: { id: row.agentId, name: row.agentName },
    model: row.model,
    events: row.events,
    usage: toUsage(row),
  }
}

function toUsagePoint(row: UsagePointRow, window: { from: number; stepMs: number }): UsagePoint {
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
    llmLatency: toLatency(row.llm),
    toolLatency: toLatency(row.tool),
  }
}
