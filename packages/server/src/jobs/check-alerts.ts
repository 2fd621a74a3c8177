import { HOUR_MS, hourOf } from '../storage/hours.ts'
import { alertNews, isMoney, nextAlert, periodStart } from '../domain/alert.ts'
import type { PriceTable } from '../prices/price-table.ts'
import { estimatorOf } from '../prices/estimator.ts'
import type { AlertRow, AlertRule, AlertWindow } from '../storage/alerts.ts'
import type { WorkHold, WorkItem } from '../storage/work.ts'
import type { HandlerOptions, ItemHandler, Next } from './work.ts'

type Acts = 'startAlertCheck' | 'measureAlert' | 'recordAlertCheck' | 'sumUncosted' | 'listPrices'

const INTERVAL_MS = 60_000
const NOTHING = { cost: null, unpricedCalls: 0 }

export function checkAlerts({ storage, prices, now }: HandlerOptions<Acts> & { prices: PriceTable }): ItemHandler {
  async function check({ environmentId, subjectId: id }: WorkItem, { owner }: WorkHold): Promise<Next> {
    const at = now()
    const found = await storage.startAlertCheck(environmentId, id)
    if (found === null) return 'done'
    const { alert, workspaceId, isArchived } = found
    // An archived environment records nothing. Checks continue after a restore.
    if (isArchived) return { dueAt: at + INTERVAL_MS }
    const window = windowOf(alert.rule, at)
    const measured = await storage.measureAlert(environmentId, alert.rule, window)
    const { cost, unpricedCalls } = isMoney(alert.rule.kind) ? await estimate(workspaceId, alert, window) : NOTHING
    const value = cost === null ? measured : (measured ?? 0) + cost
    const { state: next, news } = nextAlert(alert, value, at)
    const state = { ...next, unpricedCalls }
    const data = alertNews(alert, { ...state, value })
    const nextAt = at + INTERVAL_MS
    await storage.recordAlertCheck({ environmentId, id, owner, at, state, nextAt, news: news && { type: news, data } })
    return 'ended'
  }

  async function estimate(
    workspaceId: string,
    { environmentId, rule }: AlertRow,
    window: AlertWindow,
  ): Promise<{ cost: number | null; unpricedCalls: number }> {
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

function windowOf(rule: AlertRule, now: number): AlertWindow {
  const since = rule.kind === 'budget' ? periodStart(rule.period, now) : now - rule.windowMinutes * 60_000
  return { since, from: hourOf(since), to: hourOf(now) + HOUR_MS, now }
}
