import { randomUUID } from 'node:crypto'
import { HOUR_MS, hourOf } from '../../storage/engine/times.ts'
import type { AlertKind } from '@tacho/contract/messages/alert.ts'
import { endedRuns, failedText, failureComparison, isDifferent, type Share } from '@tacho/contract/runs/statistics.ts'
import { alertNews, nextAlert, periodStart } from '../../domain/messages/alert.ts'
import { type PriceTable, estimatorOf } from '../../prices/price-table.ts'
import type { AlertRow, AlertRule, AlertWindow } from '../../storage/messages/messages.ts'
import { entryBy } from '../../storage/people/operators.ts'
import type { ShareOutcomes } from '../../storage/policies/deployments.ts'
import { StorageError } from '../../storage/engine/store.ts'
import type { WorkHold, WorkItem } from '../../storage/engine/work.ts'
import type { HandlerOptions, ItemHandler, Next } from '../engine/work.ts'

type Acts =
  | 'startAlertCheck'
  | 'measureAlert'
  | 'measureShares'
  | 'recordAlertCheck'
  | 'publish'
  | 'sumUncosted'
  | 'listPrices'

const INTERVAL_MS = 60_000
const WEEK_MS = 7 * 24 * HOUR_MS
/** Kinds whose value is money. */
const SUMS: ReadonlySet<AlertKind> = new Set(['cost', 'budget'])

interface Measured {
  value: number | null
  unpricedCalls: number
  /** Set only for error_rate. */
  share?: Share
  /** Comparison with last week, as a sentence. */
  comparison?: string | null
  isNoise?: boolean
  /** Shares of prompts that fail more often than the threshold. */
  failing?: readonly ShareOutcomes[]
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
    const { value, unpricedCalls, comparison = null, isNoise, failing = [] } = alertMeasure
    const { state: next, news } = nextAlert(alert, value, at, isNoise)
    const state = { ...next, unpricedCalls, comparison }
    const data = alertNews(alert, { ...state, value })
    const nextAt = at + INTERVAL_MS
    const check = { environmentId, id, owner, at, state, nextAt, news: news && { type: news, data } }
    const isRecorded = await storage.recordAlertCheck(check)
    // Shares end after the message, so that a crash loses no message. While the alert fires, the next check ends the
    // remaining ones.
    if (isRecorded && state.status === 'FIRING')
      for (const share of failing) await endShare(alert, workspaceId, share, at)
    return 'ended'
  }

  /** Ends a share, so that all sessions get the version in force again. */
  async function endShare(alert: AlertRow, workspaceId: string, share: ShareOutcomes, now: number): Promise<void> {
    const { environmentId, id, rule } = alert
    const { promptId, version } = share
    const items = [{ kind: 'prompt' as const, id: promptId, version, share: 0 }]
    const by = `alert ${rule.name}`
    const note = `Ended by the alert ${rule.name}: ${shareSentence(share)}`
    const act = { action: 'prompt.end_share', targetKind: 'prompt', targetId: promptId, detail: {} }
    const scope = { at: now, workspaceId, environmentId }
    const entry = entryBy({ kind: 'alert', id, name: rule.name }, scope, act, { id: randomUUID() })
    const intent = { action: 'DEPLOY' as const, items }
    // Nothing is published from a damaged configuration. The store names it, and the next check tries again.
    await storage.publish({ environmentId, intent, note, by, now }, [entry]).catch((error: unknown) => {
      if (!(error instanceof StorageError && error.code === 'configuration_damaged')) throw error
    })
  }

  /** In percent of last week. Null if one of the two has nothing to measure, or last week's value is zero. */
  async function measured(workspaceId: string, alert: AlertRow, window: AlertWindow): Promise<Measured> {
    if (alert.rule.kind === 'share_failures') {
      return worstShare(alert.rule, await storage.measureShares(alert.environmentId, alert.rule.agentId, window.since))
    }
    const current = await measuredIn(workspaceId, alert, window)
    if (!alert.rule.against) return current
    const { from, to } = window
    const before = await measuredIn(workspaceId, alert, { ...window, from: from - WEEK_MS, to: to - WEEK_MS })
    const isThere = current.value !== null && before.value !== null && before.value > 0
    const compared = current.share && before.share && withLastWeek(current.share, before.share)
    // Calls without a price are left out on both sides, so the percentage is no lower bound.
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

/** The share with the highest failure rate, among those with enough ended runs. */
function worstShare({ threshold, leastRuns = 1 }: AlertRule, shares: readonly ShareOutcomes[]): Measured {
  const percentOf = ({ shared }: ShareOutcomes) => (100 * shared.failed) / endedRuns(shared)
  const known = shares
    .filter(({ shared }) => endedRuns(shared) >= leastRuns)
    .toSorted((one, other) => percentOf(other) - percentOf(one))
  const failing = known.filter((share) => percentOf(share) > threshold)
  const [worst] = known
  if (worst === undefined) return { value: null, unpricedCalls: 0 }
  const comparison = failing.length === 0 ? shareSentence(worst) : failing.map(shareSentence).join(' ')
  return { value: percentOf(worst), unpricedCalls: 0, comparison, failing }
}

function shareSentence({ name, version, percent, inForce, shared, others }: ShareOutcomes): string {
  const one = { ...shared, name: `Version ${version} of ${name}` }
  const compared = failureComparison(one, { ...others, name: `version ${inForce}` })
  const of = `${one.name}, for ${percent} % of the sessions: ${failedText(shared)}.`
  return compared === null ? of : `${of} ${compared}`
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
  // Leave out the hour that is not over: it would be compared with a whole one.
  if (rule.against) return { since, from: hourOf(since), to: hourOf(now), now }
  // Ends after the current hour, because clocks of clients may be ahead.
  return { since, from: since, to: hourOf(now) + HOUR_MS, now }
}
