import { createECDH, ECDH, hash } from 'node:crypto'
import { money } from '@tacho/contract/engine/format.ts'
import type { AlertKind } from '@tacho/contract/messages/alert.ts'
import type {
  NotificationEvent,
  NotificationKind,
  NotificationSettings,
  NotificationText,
  NotifiedBrowser,
  QuietHours,
} from '@tacho/contract/messages/notification.ts'
import type { Severity } from '@tacho/contract/policies/runtime-config.ts'
import { SEVERITIES } from '@tacho/contract/engine/words.ts'
import { completenessText } from '@tacho/contract/record/completeness-text.ts'
import { whyEnded } from '@tacho/contract/issues/failure.ts'
import type {
  BrowserRow,
  NoticeRow,
  NotificationSettingsRow,
  ToldBrowser,
  AlertRow,
} from '../../storage/messages/messages.ts'
import { alertNews } from './alert.ts'
import { attempt, cut } from '../web/text.ts'
import { isoOf, pick } from '../web/shown.ts'
import { toTold, type WebhookPlace } from './webhook-formats.ts'
import type { RunRow } from '../../storage/runs/runs.ts'
import { toCompleteness } from '../record/completeness.ts'
import { toRunFailure } from '../runs/run.ts'
import { isoTime, MINUTE_MS } from '../../storage/engine/times.ts'

const DAY_MINUTES = 24 * 60

const KINDS: Record<NotificationEvent, NotificationKind> = {
  'approval.requested': 'approvals',
  'alert.firing': 'alerts',
  'budget.reached': 'alerts',
  'issue.opened': 'issues',
  'issue.regressed': 'issues',
}

const OF_ALERTS: Record<Exclude<AlertKind, 'budget'>, Severity> = {
  error_rate: 'HIGH',
  cost: 'HIGH',
  no_runs: 'HIGH',
  approval_waiting: 'HIGH',
  stalled_runs: 'MEDIUM',
  incomplete_runs: 'LOW',
  share_failures: 'HIGH',
}

export type Notice = NoticeRow & { severity: Severity }

export function toNotice(event: NotificationEvent, row: NoticeRow): Notice {
  const { alert, policySeverity } = row
  if (event === 'issue.regressed') return { ...row, severity: 'HIGH' }
  if (alert === null) return { ...row, severity: policySeverity ?? 'MEDIUM' }
  const { kind } = alert.rule
  if (kind !== 'budget') return { ...row, severity: OF_ALERTS[kind] }
  const { percentTold } = alert.state
  return { ...row, severity: percentTold >= 100 ? 'CRITICAL' : percentTold >= 80 ? 'HIGH' : 'MEDIUM' }
}

const rank = (severity: Severity) => SEVERITIES.indexOf(severity)

export function bySeverity(one: Notice, other: Notice): number {
  return rank(other.severity) - rank(one.severity) || other.at - one.at
}

/** Chooses the notice for a browser, and its time. `notices`: most severe first. Null: the browser gets none. */
export function choose(
  event: NotificationEvent,
  notices: readonly Notice[],
  { kinds, severity, quietHours }: Pick<ToldBrowser, 'kinds' | 'severity' | 'quietHours'>,
  now: number,
): { notice: Notice; at: number } | null {
  if (!kinds.includes(KINDS[event])) return null
  const wanted = notices.filter((notice) => rank(notice.severity) >= rank(severity))
  const [first] = wanted
  if (!first) return null
  const quietUntil = quietHours && quietEnd(quietHours, now)
  if (quietUntil === null || (quietHours?.exceptCritical && first.severity === 'CRITICAL')) {
    return { notice: first, at: now }
  }
  const lasting = wanted.find(({ until }) => until === null || until > quietUntil)
  return lasting ? { notice: lasting, at: quietUntil } : null
}

export function quietEnd({ fromMinute, toMinute, timeZone }: QuietHours, now: number): number | null {
  const minute = minuteOfDay(now, timeZone)
  const isQuiet =
    fromMinute < toMinute ? minute >= fromMinute && minute < toMinute : minute >= fromMinute || minute < toMinute
  if (!isQuiet) return null
  const start = Math.floor(now / MINUTE_MS) * MINUTE_MS
  const end = start + minutesTo(toMinute, minute) * MINUTE_MS
  // Summer time may begin or end before `end`, which changes the minute of the day.
  const off = minutesTo(toMinute, minuteOfDay(end, timeZone))
  return end + (off > DAY_MINUTES / 2 ? off - DAY_MINUTES : off) * MINUTE_MS
}

const minutesTo = (to: number, from: number) => (to - from + DAY_MINUTES) % DAY_MINUTES

function minuteOfDay(time: number, timeZone: string): number {
  const parts = new Intl.DateTimeFormat('en', { timeZone, hour: 'numeric', minute: 'numeric', hourCycle: 'h23' })
  const values = new Map(parts.formatToParts(time).map(({ type, value }) => [type, Number(value)]))
  return (values.get('hour') ?? 0) * 60 + (values.get('minute') ?? 0)
}

/** Refuses an offset such as +01:00, because it has no summer time. */
export function isTimeZone(name: string): boolean {
  return /^[A-Za-z]/.test(name) && attempt(() => new Intl.DateTimeFormat('en', { timeZone: name })) !== undefined
}

const TITLE_CHARS = 120
const LINE_CHARS = 200

export function notificationText(
  event: NotificationEvent,
  notice: NoticeRow,
  place: WebhookPlace,
  waiting: number,
  sentence: string | null = null,
): NotificationText {
  const { alert, data: noticeData, id, at } = notice
  const data = alert === null ? noticeData : { ...alertNews(alert, alert.state), ...noticeData }
  const { title, about, facts, url } = toTold({ id, type: eventNow(event, notice), createdAt: at, data, place })
  const textOf = (name: string) => facts.find(({ label }) => label === name)?.text
  // Only the person's browser reads this text, in the person's session: no push service sees it.
  const subject = sentence ?? textOf('Tool') ?? about
  const others = event === 'approval.requested' && notice.isCurrent ? waiting - 1 : 0
  const lines = [
    subject === about ? null : about,
    event === 'budget.reached' && alert ? budgetText(alert) : null,
    [notice.isCurrent ? undefined : textOf('Decision'), textOf('Agent'), textOf('Environment')]
      .filter((text) => text !== undefined)
      .join(' · '),
    others > 0 ? `${others} more ${others === 1 ? 'waits' : 'wait'}` : null,
  ]
  return {
    title: cut(subject === null ? title : `${title}: ${subject}`, TITLE_CHARS),
    body: lines.flatMap((line) => (line === null || line === '' ? [] : [cut(line, LINE_CHARS)])).join('\n'),
    path: url ?? place.url,
  }
}

function budgetText({ rule, state: { percentTold, unpricedCalls = 0 } }: AlertRow): string {
  return `${unpricedCalls > 0 ? 'at least ' : ''}${percentTold} % of ${money(rule.threshold)}`
}

function eventNow(event: NotificationEvent, { isCurrent, data }: NoticeRow): string {
  if (isCurrent) return event
  if (event === 'approval.requested') return data['status'] === 'EXPIRED' ? 'approval.expired' : 'approval.decided'
  return event === 'alert.firing' ? 'alert.resolved' : event
}

export function endpointFault(endpoint: string): string | null {
  const url = URL.parse(endpoint)
  if (url === null) return 'must be an https address'
  // An address of this machine. The address check refuses it unless the operator allows it.
  const isLocal = url.hostname === '[::1]' || /^127(\.\d+){3}$/.test(url.hostname)
  // The library reads other names differently, and would sign its token for the wrong service.
  if (/[^a-z0-9.:[\]-]/.test(url.hostname)) return 'must name a host in letters, digits, dots and hyphens'
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLocal)) return 'must be an https address'
  return null
}

export const endpointHash = (endpoint: string): string => hash('sha256', endpoint)

const CURVE = 'prime256v1'

/** Whether a key is a point of the curve. Messages cannot be encrypted for other keys. */
export function isPublicKey(text: string): boolean {
  return attempt(() => ECDH.convertKey(text, CURVE, 'base64url', 'base64url', 'uncompressed')) !== undefined
}

/** The server's VAPID key, in the form that the store keeps. */
export function newPushKey(): string {
  const pair = createECDH(CURVE)
  pair.generateKeys()
  // Pad, because a number that begins with zeros would be shorter.
  return pair.getPrivateKey('hex').padStart(64, '0')
}

export type PushKeys = ReturnType<typeof pushKeysOf>

export function pushKeysOf(stored: string) {
  const pair = createECDH(CURVE)
  pair.setPrivateKey(stored, 'hex')
  return {
    publicKey: pair.getPublicKey('base64url'),
    privateKey: Buffer.from(stored, 'hex').toString('base64url'),
  }
}

export function toNotifiedBrowser(row: BrowserRow, sessionId: string): NotifiedBrowser {
  const { endpointHash: endpoint } = row
  const times = isoOf(row, 'addedAt', 'notifiedAt')
  return { ...pick(row, 'id', 'userAgent'), ...times, endpoint, current: row.sessionId === sessionId }
}

export function toNotificationSettings(
  { browsers, choices, quietHours }: NotificationSettingsRow,
  publicKey: string,
  sessionId: string,
): NotificationSettings {
  const shown = browsers.map((row) => toNotifiedBrowser(row, sessionId))
  return { publicKey, browsers: shown, environments: choices, quietHours }
}

export function gapsNews(environmentId: string, run: RunRow): object | null {
  const completeness = toCompleteness(run)
  const { state, unnumbered: _unnumbered, recorders: _recorders, ...counts } = completeness
  if (state !== 'GAPS') return null
  const title = completenessText(completeness, (iso) => `${iso.slice(0, 16).replace('T', ' ')} UTC`)
  return { ...newsOf(environmentId, run, title), ...counts }
}

export function failedRunNews(environmentId: string, run: RunRow): object | null {
  const { status, ruleClosedAt } = run
  if (status !== 'FAILED') return null
  // If the stalled rule closed the run, an earlier failure is not the reason.
  const failure = ruleClosedAt === null ? toRunFailure(run) : null
  const why = whyEnded({ status, closedByRuleAt: isoTime(ruleClosedAt), failure })
  return { ...newsOf(environmentId, run, why ?? 'It says FAILED and no error'), failure }
}

function newsOf(environmentId: string, run: RunRow, title: string) {
  const { id, runId, sessionId, agentExternalId: agentId, status: runStatus } = run
  return {
    environmentId,
    id,
    runId,
    sessionId,
    agentId,
    agentName: run.agentDisplayName ?? run.agentName,
    runStatus,
    title,
  }
}
