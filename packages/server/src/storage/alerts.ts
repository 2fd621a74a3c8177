/** Alerts and budgets. */
import type { AlertKind, AlertStatus } from '@tacho/contract/operator/alert.ts'
import type { WebhookEvent } from '@tacho/contract/operator/webhook.ts'
import type { AuditEntry } from './audit.ts'

export interface AlertStore {
  /** By id; bounded by LIMITS.alerts. */
  listAlerts(environmentId: string): Promise<AlertRow[]>
  createAlert(alert: AlertRow, audit: AuditEntry[]): Promise<'created' | 'too_many'>
  findAlert(environmentId: string, id: string): Promise<AlertRow | null>
  /** Also checks the alert at once. A budget whose measure changes gets the state `fresh`. Null: no such alert. */
  changeAlert(alert: AlertRef, change: AlertPatch, fresh: AlertState, audit: AuditEntry[]): Promise<AlertRow | null>
  /** Queues a message to every webhook that subscribes to it. Returns how many. */
  testAlert(alert: AlertRef, news: AlertNewsRow, audit: AuditEntry[]): Promise<number>
  /** Null: no such alert in that environment. */
  removeAlert(environmentId: string, id: string, audit: AuditEntry[]): Promise<AlertRow | null>
  /** What the job needs; null if the alert was removed. */
  startAlertCheck(environmentId: string, id: string): Promise<StartedAlertCheck | null>
  /** From rollups and indexes only. Null: nothing to measure. Money without estimates. */
  measureAlert(environmentId: string, rule: AlertRule, window: AlertWindow): Promise<number | null>
  /** Stores the state, queues messages and the next check. False: the owner no longer holds the check. */
  recordAlertCheck(check: AlertCheck): Promise<boolean>
}

export interface AlertRule {
  name: string
  kind: AlertKind
  threshold: number
  agentId: string | null
  windowMinutes: number
  holdMinutes: number
  period: 'month' | 'day'
}

/** `at`: when it is changed or tested. */
export interface AlertRef {
  environmentId: string
  id: string
  at: number
}

export type AlertPatch = Partial<Omit<AlertRule, 'kind'>>

export interface AlertNewsRow {
  type: WebhookEvent
  /** `agentId`: the internal id of the agent that the alert is about. The message gets its name too. */
  data: { agentId: string | null }
}

export interface AlertState {
  status: AlertStatus
  since: number
  /** While firing: since when the condition is over. */
  overSince: number | null
  value: number | null
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
}

export interface AlertWindow {
  /** Start of the window, not rounded, and starts of the hours around it. */
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

export interface StartedAlertCheck {
  alert: AlertRow
  workspaceId: string
  /** Whether its environment or workspace is archived, so that it is not evaluated. */
  isArchived: boolean
}
