import { LIMITS } from '@tacho/contract/limits.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { UsageHour, UsagePoint, UsagePointsQuery } from '@tacho/contract/operator/usage.ts'
import type { FastifyInstance } from 'fastify'
import { isoTime } from '../../domain/run.ts'
import { toLatency, toUsage } from '../../domain/usage.ts'
import type { UsageHourRow, UsagePage } from '../../storage/runs.ts'
import { pricingOf, type Pricing } from '../../prices/pricing.ts'
import type { UsagePointPage, UsagePointRow, UsageWindow } from '../../storage/usage.ts'
import type { UncostedSum } from '../../storage/uncosted.ts'
import type { Deps } from '../deps.ts'
import { pageFrom, startOf } from '../paging.ts'
import { isRefusal } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { environmentOf } from './access.ts'
import { refuseField } from '../field.ts'
import { HOUR_MS, windowOf, type HourWindow } from './window.ts'

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
    const { by, step, sort, limit = LIMITS.operatorPageDefault, cursor } = query
    if (sort !== undefined && step !== 'window') return refuseField('sort', 'needs the step window')
    const parts = partsOf(hours, step)
    const steps = parts.reduce((sum, { from, to, stepMs }) => sum + Math.ceil((to - from) / stepMs), 0)
    if (steps > LIMITS.usageSteps) return refuseField('to', `must be at most ${LIMITS.usageSteps} steps after from`)
    const walk = [environment.id, 'usage points', by, step, sort ?? '', hours.from, hours.to]
    const place = startOf<NonNullable<UsagePointPage['after']> & { part: number }>(cursors, walk, cursor)
    if (isRefusal(place)) return place
    const tenant = { environmentId: environment.id, workspaceId: environment.workspaceId }
    const found: { row: UsagePointRow; part: number }[] = []
    let more = false
    let after: UsagePointPage['after'] = place.after
    let at = place.after?.part ?? 0
    for (const part of parts.slice(at)) {
      // The rest may be empty: then another page is.
      more = found.length === limit
      if (more) break
      const page = await storage.readUsagePoints(tenant, { by, ...part }, { limit: limit - found.length, sort, after })
      const place = at++
      found.push(...page.rows.map((row) => ({ row, part: place })))
      more = page.more
      if (more) break
      after = null
    }
    const pricing = await pricingFor(
      environment,
      found.map(({ row }) => row),
    )
    return pageFrom(
      { rows: found, more },
      ({ row, part }) => toUsagePoint(row, parts[part] ?? parts[0], pricing),
      ({ row: { step: last, key, value, totalTokens }, part }) => {
        return cursors.write(walk, { part, step: last, key, ...(sort && { value, totalTokens }) })
      },
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

type Part = Omit<UsageWindow, 'by'>

/** Parts whose steps have one length: the months, or the whole window. */
function partsOf({ from, to }: HourWindow, step: UsagePointsQuery['step']): [Part, ...Part[]] {
  if (step !== 'month') return [{ from, to, stepMs: step === 'window' ? to - from : STEPS[step] }]
  const parts: Part[] = []
  // One more than a caller may ask for.
  for (let start = from; start < to && parts.length <= LIMITS.usageSteps;) {
    const date = new Date(start)
    const end = Math.min(to, Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1))
    parts.push({ from: start, to: end, stepMs: end - start })
    start = end
  }
  return parts as [Part, ...Part[]]
}

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
  const { step, key, name, events, runs, completed, failed, cancelled, calls } = row
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
    calls: calls && { failed: calls.errors, blocked: calls.blocked, approvals: calls.approvals },
  }
}
