import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { UsageHour, UsagePoint, UsagePointsQuery } from '@tacho/contract/runs/usage.ts'
import { daysOf, fullHoursOf, isZone, monthsOf } from '@tacho/contract/engine/days.ts'
import { isoTime, DAY_MS } from '../../storage/engine/times.ts'
import { NANOS, toLatency, toUsage } from '../../domain/record/usage.ts'
import type { UsageHourRow } from '../../storage/runs/runs.ts'
import type { Estimator } from '../../domain/runs/estimate.ts'
import { estimatorOf } from '../../prices/price-table.ts'
import {
  byValue,
  type UsagePointPage,
  type UsagePointRow,
  type UsageWindow,
  type UncostedSum,
} from '../../storage/runs/usage.ts'
import { refuseField, timeOf } from '../web/field.ts'
import { NOTHING, readPage } from '../web/paging.ts'
import { isStorableText } from '../../domain/web/text.ts'
import { firstRows } from '../../storage/engine/page.ts'
import { pick } from '../../domain/web/shown.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'

interface PartRow {
  row: UsagePointRow
  part: number
}
type PartPlace = NonNullable<UsagePointPage['after']> & { part: number }

const WINDOW_MS = 31 * DAY_MS

export function usageRoutes(deps: OperatorDeps): void {
  const { serve, storage } = deps

  serve('readUsage', async ({ query, environment, paging }) => {
    const { from, to } = windowOf(query)
    if (to - from > WINDOW_MS) {
      return refuseField('to', 'must be at most 31 days after from')
    }
    const { rows, nextCursor } = await readPage(
      paging,
      (page) => storage.readUsage(environment.id, from, to, page),
      ({ hour, agentId, modelKey }: UsageHourRow) => ({ hour, agentId, modelKey }),
    )
    const estimator = await estimatorFor(environment, rows)
    return { items: rows.map((row) => toUsageHour(row, estimator)), nextCursor }
  })

  serve('readUsagePoints', async ({ query, environment, paging }) => {
    const window = windowOf(query)
    const { by, step, sort, user, metadata } = query
    if (user !== undefined && by !== 'user') return refuseField('user', 'needs by=user')
    if ((metadata === undefined) !== (by !== 'metadata')) return refuseField('metadata', 'is the key of by=metadata')
    const label = user ?? metadata
    if (label !== undefined && !isStorableText(label)) return NOTHING
    if (sort !== undefined && step !== 'window') return refuseField('sort', 'needs the step window')
    const { zone = 'UTC' } = query
    if (!isZone(zone)) return refuseField('zone', 'must be a time zone such as Europe/Berlin')
    const parts = partsOf(window, step, zone)
    const steps = parts.reduce((sum, { from, to, stepMs }) => sum + Math.ceil((to - from) / stepMs), 0)
    if (steps > LIMITS.usageSteps) return refuseField('to', `must be at most ${LIMITS.usageSteps} steps after from`)
    const tenant = { environmentId: environment.id, workspaceId: environment.workspaceId }
    const { rows, nextCursor } = await readPage(
      paging,
      sort === 'cost' ? readDearest : readParts,
      ({ row: { step: last, key, value, totalTokens }, part }: PartRow): PartPlace => {
        return { part, step: last, key, ...(sort && { value, totalTokens }) }
      },
    )
    const estimator = await estimatorFor(
      environment,
      rows.map(({ row }) => row),
    )
    return { items: rows.map(({ row, part }) => toUsagePoint(row, parts[part] ?? parts[0], estimator)), nextCursor }

    async function readParts({ limit, after }: { limit: number; after: PartPlace | null }) {
      const found: PartRow[] = []
      let more = false
      let place: UsagePointPage['after'] = after
      for (let part = after?.part ?? 0; part < parts.length && !more; part++) {
        // Report more parts without reading them. If they are empty, the next page is empty.
        if (found.length === limit) return { rows: found, more: true }
        const left = { limit: limit - found.length, sort, after: place }
        const page = await storage.readUsagePoints(
          tenant,
          { by, label, withWaits: step === 'window', ...(parts[part] ?? parts[0]) },
          left,
        )
        found.push(...page.rows.map((row) => ({ row, part })))
        more = page.more
        place = null
      }
      return { rows: found, more }
    }

    /** Sorted by the shown cost, because estimates depend on prices, which the store does not apply. */
    async function readDearest({ limit, after }: { limit: number; after: PartPlace | null }) {
      const found: UsagePointRow[] = []
      let more = true
      for (let place: UsagePointPage['after'] = null; more && found.length < LIMITS.usageRankedKeys;) {
        const next = { limit: LIMITS.usagePointsPage, sort, after: place }
        const page = await storage.readUsagePoints(tenant, { by, label, withWaits: true, ...parts[0] }, next)
        found.push(...page.rows)
        more = page.more
        place = page.rows.at(-1) ?? null
      }
      const estimator = await estimatorFor(environment, found)
      const shown = found.map((row) => {
        return {
          ...row,
          value: row.costNanos + Math.round((estimator.ofSums(row.uncosted).estimatedCost ?? 0) * NANOS),
        }
      })
      const place = after && { value: 0, totalTokens: 0, ...after }
      const rest = shown.filter((row) => place === null || byValue(place, row) < 0).toSorted(byValue)
      const page = firstRows(rest, limit)
      return { rows: page.rows.map((row) => ({ row, part: 0 })), more: page.more }
    }
  })

  function estimatorFor({ workspaceId }: { workspaceId: string }, rows: readonly { uncosted: UncostedSum[] }[]) {
    return estimatorOf(
      deps,
      workspaceId,
      rows.flatMap(({ uncosted }) => uncosted),
    )
  }
}

type Part = Omit<UsageWindow, 'by'>

/** Each part has steps of one length: neighbouring hours, days or months of the same length, or the whole window. */
function partsOf({ from, to }: TimeWindow, step: UsagePointsQuery['step'], zone: string): [Part, ...Part[]] {
  if (step === 'window') return [{ from, to, stepMs: Math.max(to - from, 1) }]
  const starts = { hour: fullHoursOf, day: daysOf, month: monthsOf }[step]
  const parts: Part[] = []
  // Reads one step more than a caller may request, so that the check sees it.
  const begins = starts({ from, to }, zone, LIMITS.usageSteps)
  for (const [index, start] of begins.entries()) {
    const end = begins[index + 1] ?? to
    const last = parts.at(-1)
    if (last?.stepMs === end - start) last.to = end
    else parts.push({ from: start, to: end, stepMs: end - start })
  }
  return parts.length === 0 ? [{ from, to, stepMs: 1 }] : (parts as [Part, ...Part[]])
}

function toUsageHour(row: UsageHourRow, estimator: Estimator): UsageHour {
  return {
    hour: isoTime(row.hour),
    agent: { id: row.agentId, name: row.agentName },
    model: row.model,
    events: row.events,
    usage: toUsage(row),
    ...estimator.ofSums(row.uncosted),
  }
}

function toUsagePoint(row: UsagePointRow, window: { from: number; stepMs: number }, estimator: Estimator): UsagePoint {
  const { step, calls } = row
  return {
    from: isoTime(window.from + step * window.stepMs),
    ...pick(row, 'key', 'name', 'events', 'runs', 'completed', 'failed', 'cancelled'),
    usage: toUsage(row),
    ...estimator.ofSums(row.uncosted),
    llmLatency: toLatency(row.llm),
    toolLatency: toLatency(row.tool),
    waiting: row.waiting && { runs: toLatency(row.waiting.runs), approvals: toLatency(row.waiting.approvals) },
    calls: calls && { failed: calls.errors, blocked: calls.blocked, approvals: calls.approvals },
  }
}

/** `from` inclusive, `to` exclusive. */
interface TimeWindow {
  from: number
  to: number
}

export function windowOf(query: { from: string; to: string }): TimeWindow {
  const from = timeOf('from', query.from)
  const to = timeOf('to', query.to)
  if (to < from) throw refuseField('to', 'must not be before from')
  return { from, to }
}
