import type { NotificationChoice, NotificationEvent, QuietHours } from '@tacho/contract/messages/notification.ts'
import type { Severity } from '@tacho/contract/policies/runtime-config.ts'
import { NOTIFICATION_EVENTS } from '@tacho/contract/engine/words.ts'
import type { AskedSlackLink } from '@tacho/contract/messages/slack-link.ts'
import type { PersonRoles } from '../people/operators.ts'
import type { Alert, AlertStatus } from '@tacho/contract/messages/alert.ts'
import type { WebhookEvent, Delivery, DeliveryStatus, Webhook } from '@tacho/contract/messages/webhook.ts'
import type { PatchOf, RowFor } from '../engine/page.ts'

export interface BrowserRow {
  id: string
  operatorId: string
  sessionId: string
  endpoint: string
  endpointHash: string
  publicKey: string
  authSecret: string
  userAgent: string
  addedAt: number
  openedAt: number
  notifiedAt: number | null
}

export interface NotificationSettingsRow {
  browsers: BrowserRow[]
  choices: NotificationChoice[]
  quietHours: QuietHours | null
}

export interface NotificationSettingsPatch {
  choices?: Omit<NotificationChoice, 'workspaceId'>[] | undefined
  quietHours?: QuietHours | null | undefined
}

export interface ToldBrowser
  extends
    Pick<BrowserRow, 'id' | 'endpoint' | 'publicKey' | 'authSecret'>,
    Pick<NotificationChoice, 'kinds' | 'severity'> {
  quietHours: QuietHours | null
}

export interface NoticeRow {
  id: string
  at: number
  /** When the subject ends by itself. */
  until: number | null
  isCurrent: boolean
  policySeverity: Severity | null
  alert: AlertRow | null
  data: Record<string, unknown>
}

/** Subject of a notification. If it names a browser, only that browser gets the notification. */
export interface NoticeSubject {
  browserId: string | null
  event: NotificationEvent
  id: string
}

export interface NoticesTold {
  at: number
  /** Other work items, for the same browsers and event, that these messages covered. */
  joined: string[]
  /** `told`: ids of the browsers that got the message. `gone`: ids of those that their push service no longer knows. */
  told: string[]
  gone: string[]
  later: (NoticeSubject & { dueAt: number })[]
}

const EVENTS: ReadonlySet<string> = new Set(NOTIFICATION_EVENTS)
export const isNotificationEvent = (event: string): event is NotificationEvent => EVENTS.has(event)

export function subjectBeginning({ browserId, event }: Pick<NoticeSubject, 'browserId' | 'event'>): string {
  return browserId === null ? `${event}/` : `browser/${browserId}/${event}/`
}

export const subjectText = (subject: NoticeSubject): string => subjectBeginning(subject) + subject.id

export function subjectOf(text: string): NoticeSubject | null {
  const parts = text.split('/')
  const browserId = parts[0] === 'browser' ? (parts[1] ?? '') : null
  const [event = '', id = ''] = browserId === null ? parts : parts.slice(2)
  return isNotificationEvent(event) ? { browserId, event, id } : null
}

export type SlackUser = Omit<AskedSlackLink, 'expiresAt'>

export interface SlackLinkRow extends SlackUser {
  id: string
  environmentId: string
  webhookId: string
  operatorId: string
  email: string
  changedAt: number
}

export interface NewSlackCode extends SlackUser {
  id: string
  environmentId: string
  webhookId: string
  codeHash: string
  codeExpiresAt: number
  changedAt: number
}

export interface LinkedPerson extends PersonRoles {
  id: string
  email: string
}

export type AlertRule = Pick<
  Alert,
  'name' | 'kind' | 'threshold' | 'agentId' | 'windowMinutes' | 'holdMinutes' | 'period'
> &
  /** Missing in rules of an earlier version. */
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
  /** If the value is money: number of calls that it leaves out. Missing in states of an earlier version. */
  unpricedCalls?: number
  /** Failures compared with last week, as a sentence. Missing in states of an earlier version. */
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
  /** The row is damaged, so its rule is unknown. */
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

export interface WebhookRow extends Omit<RowFor<Webhook>, 'interactionsUrl'> {
  /** `whsec_` and base64, as Standard Webhooks writes it. */
  secret: string
  previousSecret: string | null
  previousUntil: number | null
  /** The signing secret of the Slack app. With it, messages about approvals have buttons. */
  signingSecret: string | null
}

type Fixed = 'id' | 'environmentId' | 'format' | 'createdAt' | 'droppedDeliveries' | 'damaged'
export type WebhookPatch = PatchOf<WebhookRow, Exclude<keyof WebhookRow, Fixed>>

export interface News {
  type: WebhookEvent
  at: number
  data: object
}

export interface NewDelivery {
  id: string
  webhookId: string
  environmentId: string
  type: string
  createdAt: number
  data: string
}

export type DeliveryRow = RowFor<Delivery>

export interface DeliveryOrder {
  webhook: WebhookRow
  delivery: DeliveryRow & { data: string }
}

export interface DeliveryHold {
  environmentId: string
  id: string
  owner: string
}

export interface DeliveryAttempt extends DeliveryHold {
  webhookId: string
  at: number
  status: DeliveryStatus
  nextAttemptAt: number | null
  responseStatus: number | null
  error: string | null
  /** Set if the receiver reports that it no longer exists. */
  disable: string | null
}
