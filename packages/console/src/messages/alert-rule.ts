/** An alert in words. */
import type { Alert, AlertKind } from '@tacho/contract/messages/alert.ts'
import { spentWords } from '@tacho/contract/runs/run-text.ts'
import { counted, duration, money, number } from '../web/text/format.ts'

interface KindLook {
  name: string
  note: string
  /** Label of the threshold; null: the kind has no threshold. */
  label: string | null
  /** Formats a measured value. */
  format: (value: number) => string
  hasWindow: boolean
}

const minutes = (value: number) => duration(value * 60_000)

export const KINDS: Record<AlertKind, KindLook> = {
  error_rate: {
    name: 'Many runs fail',
    note: 'More than a share of the ended runs failed.',
    label: 'Percent of ended runs',
    format: (value) => `${number(Math.round(value * 10) / 10)} %`,
    hasWindow: true,
  },
  cost: {
    name: 'High cost',
    note: 'The calls of a while cost more, estimates included.',
    label: 'Cost in US dollars',
    format: money,
    hasWindow: true,
  },
  no_runs: {
    name: 'No runs',
    note: 'No run started for a while.',
    label: null,
    format: (value) => counted(value, 'run'),
    hasWindow: true,
  },
  approval_waiting: {
    name: 'A request waits',
    note: 'A request for approval waits too long.',
    label: 'Minutes',
    format: minutes,
    hasWindow: false,
  },
  stalled_runs: {
    name: 'Stalled runs',
    note: 'More running runs had no event for 15 minutes.',
    label: 'Runs',
    format: (value) => counted(value, 'run'),
    hasWindow: true,
  },
  incomplete_runs: {
    name: 'Incomplete runs',
    note: 'Events of more runs did not arrive.',
    label: 'Runs',
    format: (value) => counted(value, 'run'),
    hasWindow: true,
  },
  share_failures: {
    name: 'A shared prompt fails',
    note: 'More runs failed with the version of a prompt that a share of the sessions gets. Then the share ends.',
    label: 'Percent of its ended runs',
    format: (value) => `${number(Math.round(value * 10) / 10)} %`,
    hasWindow: true,
  },
  budget: {
    name: 'Budget',
    note: 'Tells when 50, 80 and 100 % of an amount are used.',
    label: 'Amount in US dollars',
    format: money,
    hasWindow: false,
  },
}

/** Whether the alert requires a minimum number of ended runs, below which it does not measure. */
export const hasLeastRuns = (kind: AlertKind): boolean => canCompare(kind) || kind === 'share_failures'

export const canCompare = (kind: AlertKind): boolean => kind === 'error_rate' || kind === 'cost'

/** Formats a measured value, or its percentage of last week. */
const formatOf = ({ kind, against }: Pick<Alert, 'kind' | 'against'>): KindLook['format'] =>
  against === null ? KINDS[kind].format : (value) => `${number(Math.round(value))} %`

/** Condition of the alert, after “Fires if” or “Tells of”. */
export function ruleText(alert: Alert): string {
  const base = ruleBase(alert)
  return alert.leastRuns > 1 ? `${base}, of at least ${number(alert.leastRuns)} ended runs` : base
}

function ruleBase({ kind, threshold, windowMinutes, period, against }: Alert): string {
  const limit = formatOf({ kind, against })(threshold)
  const window = minutes(windowMinutes)
  switch (kind) {
    case 'error_rate':
      if (against !== null) return `the share that failed in ${window} is more than ${limit} of that a week before`
      return `more than ${limit} of the runs of ${window} failed`
    case 'cost':
      if (against !== null) return `the cost of ${window} is more than ${limit} of that a week before`
      return `more than ${limit} in ${window}`
    case 'no_runs':
      return `no run started in ${window}`
    case 'approval_waiting':
      return `a request waits longer than ${limit}`
    case 'stalled_runs':
      return `more than ${limit} of ${window} stalled`
    case 'incomplete_runs':
      return `more than ${limit} of ${window} have missing events`
    case 'share_failures':
      return `more than ${limit} of the runs of ${window} failed with the version of a share; it ends the share`
    case 'budget':
      return `${limit} a ${period}`
  }
}

/** The measured value. With calls of unknown cost, it is a lower bound. */
export function valueText(alert: Alert): string {
  const { value, unpricedCalls } = alert
  return value === null ? '' : spentWords(value, unpricedCalls, formatOf(alert))
}

export const unpricedNote = ({ unpricedCalls }: Alert): string | undefined =>
  unpricedCalls === 0 ? undefined : `${counted(unpricedCalls, 'call')} without a cost or a known price`

export const shareOf = ({ value, threshold }: Alert): number => (threshold === 0 ? 0 : (100 * (value ?? 0)) / threshold)

/** Whether an alert needs attention now: it is firing, or its budget is nearly used or exceeded. */
export const isUrgent = (alert: Alert): boolean =>
  alert.kind === 'budget' ? shareOf(alert) >= 80 : alert.status === 'FIRING'
