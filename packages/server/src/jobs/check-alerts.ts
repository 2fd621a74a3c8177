/** Once a minute, from rollups; the node that claims a check does it. */
import { HOUR_MS, hourOf } from '../storage/hours.ts'
import { alertNews, isMoney, nextAlert, periodStart } from '../domain/alert.ts'
import type { PriceTable } from '../prices/price-table.ts'
import { pricingOf } from '../prices/pricing.ts'
import type { AlertRow, AlertRule, AlertWindow } from '../storage/alerts.ts'
import type { WorkItem } from '../storage/work.ts'
import { oneByOne, type Next } from './one-by-one.ts'
import type { Storage } from '../storage/storage.ts'
import type { WorkHandler } from './work.ts'

export interface CheckOptions {
  storage: Pick<
    Storage,
    | 'startAlertCheck'
    | 'measureAlert'
    | 'recordAlertCheck'
    | 'sumUncosted'
    | 'listPrices'
    | 'finishWork'
    | 'postponeWork'
  >
  prices: PriceTable
  owner: string
  now: () => number
  intervalMs?: number
}

const BATCH = 10
const NANOS = 1e9

export function checkAlerts({ storage, prices, owner, now, intervalMs = 60_000 }: CheckOptions): WorkHandler {
  async function check({ environmentId, subjectId: id }: WorkItem): Promise<Next> {
    const at = now()
    const found = await storage.startAlertCheck(environmentId, id)
    if (found === null) return 'done'
    const { alert, workspaceId, isArchived } = found
    // An archived environment records nothing. Checks continue after a restore.
    if (isArchived) return { dueAt: at + intervalMs }
    const window = windowOf(alert.rule, at)
    const measured = await storage.measureAlert(environmentId, alert.rule, window)
    const value = isMoney(alert.rule.kind) ? (measured ?? 0) + (await estimate(workspaceId, alert, window)) : measured
    const { state, news } = nextAlert(alert, value, at)
    const data = alertNews(alert, { ...state, value })
    const nextAt = at + intervalMs
    await storage.recordAlertCheck({ environmentId, id, owner, at, state, nextAt, news: news && { type: news, data } })
    return 'ended'
  }

  async function estimate(
    workspaceId: string,
    { environmentId, rule }: AlertRow,
    window: AlertWindow,
  ): Promise<number> {
    const { from, to } = window
    const sums = await storage.sumUncosted(environmentId, { from, to, agentId: rule.agentId })
    return (await pricingOf({ storage, prices }, workspaceId, sums)).nanosOf(sums) / NANOS
  }

  return oneByOne({
    kind: 'check_alert',
    batch: BATCH,
    storage,
    owner,
    perform: check,
    // A rule that fails now may work later.
    giveUp: () => ({ dueAt: now() + HOUR_MS }),
  })
}

function windowOf(rule: AlertRule, now: number): AlertWindow {
  const since = rule.kind === 'budget' ? periodStart(rule.period, now) : now - rule.windowMinutes * 60_000
  return { since, from: hourOf(since), to: hourOf(now) + HOUR_MS, now }
}
