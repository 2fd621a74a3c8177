import type { NotificationChoice, NotificationEvent, QuietHours } from '@tacho/contract/messages/notification.ts'
import type { Severity } from '@tacho/contract/policies/runtime-config.ts'
import { NOTIFICATION_EVENTS } from '@tacho/contract/engine/words.ts'
import type { AskedSlackLink } from '@tacho/contract/messages/slack-link.ts'
import type { AlertRow } from './alerts.ts'
import type { PersonRoles } from '../people/operators.ts'

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
  /** When it ends by itself. */
  until: number | null
  isCurrent: boolean
  policySeverity: Severity | null
  alert: AlertRow | null
  data: Record<string, unknown>
}

/** With a browser, only that browser gets the message. */
export interface NoticeSubject {
  browserId: string | null
  event: NotificationEvent
  id: string
}

export interface NoticesTold {
  at: number
  /** Other work items, of the same browsers and event, that were told by the same messages. */
  joined: string[]
  /** Ids of browsers. `gone`: their push service no longer knows them. */
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
