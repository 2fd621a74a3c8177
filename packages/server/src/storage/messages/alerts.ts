import type { Alert, AlertStatus } from '@tacho/contract/messages/alert.ts'
import type { WebhookEvent } from '@tacho/contract/messages/webhook.ts'

export type AlertRule = Pick<
  Alert,
  'name' | 'kind' | 'threshold' | 'agentId' | 'windowMinutes' | 'holdMinutes' | 'period'
> &
  /** Rules of an earlier build have none. */
  Partial<Pick<Alert, 'leastRuns' | 'against'>>

export interface AlertRef {
  environmentId: string
  id: string
  at: number
}

export type AlertPatch = Partial<Omit<AlertRule, 'kind'>>

export interface AlertNewsRow {
  type: WebhookEvent
  data: { agentId: string | null }
}

export interface AlertState {
  status: AlertStatus
  since: number
  /** While firing: since when the condition no longer holds. */
  overSince: number | null
  value: number | null
  /** For money: calls that the value leaves out. States of an earlier build have none. */
  unpricedCalls?: number
  /** Failures compared with last week, as a sentence. States of an earlier build have none. */
  comparison?: string | null
  /** For a budget: start of the last checked period, and the highest percentage reported in it. */
  period: number
  percentTold: number
}

export interface AlertRow {
  id: string
  environmentId: string
  rule: AlertRule
  state: AlertState
  checkedAt: number | null
  createdAt: number
  /** Then its rule says nothing. */
  damaged?: true
}

export interface AlertWindow {
  /** `since`: start of the window. `from` and `to`: what error_rate, cost and budget count; `to` is exclusive. */
  since: number
  from: number
  to: number
  now: number
}

export interface AlertCheck {
  environmentId: string
  id: string
  owner: string
  at: number
  state: AlertState
  nextAt: number
  news: AlertNewsRow | null
}
