import { HOUR_MS, hourOf } from '../../storage/engine/times.ts'
import type { AlertKind } from '@tacho/contract/messages/alert.ts'
import { failureComparison, isDifferent, type Share } from '@tacho/contract/runs/statistics.ts'
import { alertNews, nextAlert, periodStart } from '../../domain/messages/alert.ts'
import { type PriceTable, estimatorOf } from '../../prices/price-table.ts'
import type { AlertRow, AlertRule, AlertWindow } from '../../storage/messages/alerts.ts'
import type { WorkHold, WorkItem } from '../../storage/engine/work.ts'
import type { HandlerOptions, ItemHandler, Next } from '../engine/work.ts'

type Acts = 'startAlertCheck' | 'measureAlert' | 'recordAlertCheck' | 'sumUncosted' | 'listPrices'

const INTERVAL_MS = 60_000
const WEEK_MS = 7 * 24 * HOUR_MS
/** Kinds whose value is money. */
const SUMS: ReadonlySet<AlertKind> = new Set(['cost', 'budget'])

interface Measured {
  value: number | null
  unpricedCalls: number
  /** Of error_rate. */
  share?: Share
  /** With last week, as a sentence. */
  comparison?: string | null
  isNoise?: boolean
}

export function checkAlerts({ storage, prices, now }: HandlerOptions<Acts> & { prices: PriceTable }): ItemHandler {
  async function check({ environmentId, subjectId: id }: WorkItem, { owner }: WorkHold): Promise<Next> {
    const at = now()
    const startedCheck = await storage.startAlertCheck(environmentId, id)
    if (startedCheck === null) return 'done'
    const { alert, workspaceId, isArchived } = startedCheck
    // An archived environment records nothing. Checks continue after a restore.
    if (isArchived) return { dueAt: at + INTERVAL_MS }
    const alertMeasure = await measured(workspaceId, alert, windowOf(alert.rule, at))
    const { value, unpricedCalls, comparison = null, isNoise } = alertMeasure
    const { state: next, news } = nextAlert(alert, value, at, isNoise)
    const state = { ...next, unpricedCalls, comparison }
    const data = alertNews(alert, { ...state, value })
    const nextAt = at + INTERVAL_MS
    await storage.recordAlertCheck({ environmentId, id, owner, at, state, nextAt, news: news && { type: news, data } })
    return 'ended'
  }

  /** Against last week, in percent; null if one of both has nothing to measure, or there was nothing a week before. */
  async function measured(workspaceId: string, alert: AlertRow, window: AlertWindow): Promise<Measured> {
    const current = await measuredIn(workspaceId, alert, window)
    if (!alert.rule.against) return current
    const { from, to } = window
    const before = await measuredIn(workspaceId, alert, { ...window, from: from - WEEK_MS, to: to - WEEK_MS })
    const isThere = current.value !== null && before.value !== null && before.value > 0
    const compared = current.share && before.share && withLastWeek(current.share, before.share)
    // Calls without a price are left out on both sides: the percentage is no lower bound.
    return { value: isThere ? (100 * current.value!) / before.value! : null, unpricedCalls: 0, ...compared }
  }

  async function measuredIn(workspaceId: string, alert: AlertRow, window: AlertWindow): Promise<Measured> {
    const measure = await storage.measureAlert(alert.environmentId, alert.rule, window)
    if (measure !== null && typeof measure === 'object') {
      return { value: (100 * measure.part) / measure.whole, share: measure, unpricedCalls: 0 }
    }
    if (!SUMS.has(alert.rule.kind) || measure === null) return { value: measure, unpricedCalls: 0 }
    const { cost, unpricedCalls } = await estimate(workspaceId, alert, window)
    return { value: measure + cost, unpricedCalls }
  }

  async function estimate(
    workspaceId: string,
    { environmentId, rule }: AlertRow,
    window: AlertWindow,
  ): Promise<{ cost: number; unpricedCalls: number }> {
    const { from, to } = window
    const sums = await storage.sumUncosted(environmentId, { from, to, agentId: rule.agentId })
    const { estimatedCost, unpricedCalls } = (await estimatorOf({ storage, prices }, workspaceId, sums)).ofSums(sums)
    return { cost: estimatedCost ?? 0, unpricedCalls }
  }

  return {
    kind: 'check_alert',
    batch: 10,
    perform: check,
    giveUp: async () => ({ dueAt: now() + HOUR_MS }),
  }
}

function withLastWeek(current: Share, before: Share): Pick<Measured, 'comparison' | 'isNoise'> {
  const named = (name: string, { part, whole }: Share) => ({
    name,
    failed: part,
    completed: whole - part,
    cancelled: 0,
  })
  const comparison = failureComparison(named('This time', current), named('the same hours of last week', before))
  return { comparison, isNoise: !isDifferent(current, before) }
}

function windowOf(rule: AlertRule, now: number): AlertWindow {
  const since = rule.kind === 'budget' ? periodStart(rule.period, now) : now - rule.windowMinutes * 60_000
  // An hour that is not over would be compared with a whole one.
  if (rule.against) return { since, from: hourOf(since), to: hourOf(now), now }
  // Clocks of clients differ: what they record of the next minutes counts.
  return { since, from: since, to: hourOf(now) + HOUR_MS, now }
}
