/**
 * The state of an alert, from one check to the next.
 *
 *   OK --condition holds--> PENDING --for holdMinutes--> FIRING (alert.firing)
 *    ^                        |                            |
 *    +----condition is over---+        for holdMinutes not: OK (alert.resolved)
 *
 * A budget stays OK. In each period it reports 50, 80 and 100 percent once (budget.reached).
 */
import { spentWords } from '@tacho/contract/runs/run-text.ts'
import { money } from '@tacho/contract/engine/format.ts'
import type { AlertRow, AlertRule, AlertState } from '../../storage/messages/messages.ts'
import { MINUTE_MS } from '../../storage/engine/times.ts'

export type AlertNews = 'alert.firing' | 'alert.resolved' | 'budget.reached'

const STEPS = [100, 80, 50]

/** `isNoise`: the difference from last week may be chance, however large it is. */
export function nextAlert(
  { rule, state }: Pick<AlertRow, 'rule' | 'state'>,
  value: number | null,
  now: number,
  isNoise = false,
): { state: AlertState; news: AlertNews | null } {
  if (rule.kind === 'budget') return nextBudget(rule, state, value ?? 0, now)
  const holds = value !== null && !isNoise && (rule.kind === 'no_runs' ? value === 0 : value > rule.threshold)
  const holdMs = rule.holdMinutes * MINUTE_MS
  const same = { ...state, value }
  if (state.status === 'FIRING') {
    if (holds) return { state: { ...same, overSince: null }, news: null }
    const overSince = state.overSince ?? now
    if (now - overSince < holdMs) return { state: { ...same, overSince }, news: null }
    return { state: { ...same, status: 'OK', since: now, overSince: null }, news: 'alert.resolved' }
  }
  if (!holds) return { state: state.status === 'OK' ? same : { ...same, status: 'OK', since: now }, news: null }
  const since = state.status === 'PENDING' ? state.since : now
  if (now - since < holdMs) return { state: { ...same, status: 'PENDING', since }, news: null }
  return { state: { ...same, status: 'FIRING', since: now, overSince: null }, news: 'alert.firing' }
}

function nextBudget(rule: AlertRule, state: AlertState, value: number, now: number): ReturnType<typeof nextAlert> {
  const period = periodStart(rule.period, now)
  const tellPercent = state.period === period ? state.percentTold : 0
  const reached = STEPS.find((step) => value * 100 >= rule.threshold * step) ?? 0
  const percentTold = Math.max(tellPercent, reached)
  return { state: { ...state, value, period, percentTold }, news: percentTold > tellPercent ? 'budget.reached' : null }
}

/** False for a comparison with last week, whose value is in percent. */
export const isMoney = ({ kind, against }: { kind?: unknown; against?: unknown }): boolean =>
  kind === 'budget' || (kind === 'cost' && !against)

/** The spent amount as text. If calls without a price are missing, it is a lower bound. */
export const spentText = (value: number, unpricedCalls: number): string => spentWords(value, unpricedCalls, money)

export function alertNews(
  { id, environmentId, rule }: AlertRow,
  { value, unpricedCalls = 0, comparison, percentTold }: AlertState,
) {
  const { name, kind, threshold, agentId, against = null } = rule
  return {
    environmentId,
    alertId: id,
    title: name,
    kind,
    threshold,
    against,
    agentId,
    value,
    unpricedCalls,
    ...(comparison && { comparison }),
    percent: percentTold,
  }
}

export function periodStart(period: AlertRule['period'], now: number): number {
  const date = new Date(now)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), period === 'month' ? 1 : date.getUTCDate())
}

export function firstState(now: number): AlertState {
  return { status: 'OK', since: now, overSince: null, value: null, period: 0, percentTold: 0 }
}
