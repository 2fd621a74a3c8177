/** Builds webhook messages: signed according to Standard Webhooks, or formatted for Slack. */
import { createHmac } from 'node:crypto'
import { money } from '@tacho/contract/format.ts'
import type { Delivery, Webhook, WebhookEvent } from '@tacho/contract/operator/webhook.ts'
import type { DeliveryOrder, DeliveryRow, WebhookRow } from '../storage/webhooks.ts'
import { isMoney } from './alert.ts'
import { isoTime } from './run.ts'
import type { Random } from '../storage/uuid.ts'
import { pick, isoOf } from './shown.ts'

const SECRET_PREFIX = 'whsec_'
const SECRET_BYTES = 32
const SECOND_MS = 1_000
/** Delays before the second and later attempts, in milliseconds; about a day in total. */
const DELAYS_MS = [5, 30, 120, 600, 1_800, 3_600, 10_800, 21_600, 43_200].map((seconds) => seconds * SECOND_MS)

/** `whsec_` and base64 (Standard Webhooks, "Secret"). */
export function newWebhookSecret(random: Random): string {
  return SECRET_PREFIX + Buffer.from(random(SECRET_BYTES)).toString('base64')
}

export function nextAttemptAt(attempts: number, now: number, spread: number): number | null {
  const delay = DELAYS_MS[attempts - 1]
  return delay === undefined ? null : now + Math.round(delay * (0.9 + 0.2 * spread))
}

export interface WebhookMessage {
  headers: Record<string, string>
  body: string
}

/** Builds the request of a delivery, signed at `now` with the secret and, while it is valid, the previous secret. */
export function webhookMessage({ webhook, delivery }: DeliveryOrder, now: number): WebhookMessage {
  const { type, createdAt } = delivery
  const data = JSON.parse(delivery.data) as Record<string, unknown>
  const body = JSON.stringify(
    webhook.format === 'slack' ? slackMessage(type, data) : { type, timestamp: isoTime(createdAt), data },
  )
  const timestamp = String(Math.floor(now / SECOND_MS))
  const previous = webhook.previousUntil !== null && now < webhook.previousUntil ? webhook.previousSecret : null
  const signatures = [webhook.secret, previous]
    .filter((secret) => secret !== null)
    .map((secret) => sign(secret, `${delivery.id}.${timestamp}.${body}`))
  return {
    headers: {
      'content-type': 'application/json',
      'user-agent': 'Tacho-Webhooks',
      'webhook-id': delivery.id,
      'webhook-timestamp': timestamp,
      'webhook-signature': signatures.join(' '),
    },
    body,
  }
}

/** `showsUrl`: with path and query, which often contain a secret; otherwise only the origin. */
export function toWebhook(row: WebhookRow, showsUrl = true): Webhook {
  return {
    ...pick(row, 'id', 'environmentId', 'description', 'format', 'events', 'disabledReason', 'droppedDeliveries'),
    ...isoOf(row, 'createdAt', 'disabledAt'),
    url: showsUrl ? row.url : `${new URL(row.url).origin}/…`,
  }
}

export function toDelivery(row: DeliveryRow): Delivery {
  return { ...row, ...isoOf(row, 'createdAt', 'lastAttemptAt', 'nextAttemptAt') }
}

function sign(secret: string, text: string): string {
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')
  return `v1,${createHmac('sha256', key).update(text).digest('base64')}`
}

const TITLES: Record<string, string> = {
  'approval.requested': 'Approval requested',
  'approval.decided': 'Approval decided',
  'approval.expired': 'Approval expired undecided',
  'issue.opened': 'New issue',
  'issue.regressed': 'An issue came back',
  'alert.firing': 'Alert',
  'alert.resolved': 'Resolved',
  'budget.reached': 'Budget',
  'run.failed': 'A run failed',
  'run.incomplete': 'Events of a run are missing',
  'webhook.test': 'This is a test',
} satisfies Record<WebhookEvent | 'webhook.test', string>

/** Shown in this order, if the data has them. */
const SHOWN = {
  toolName: 'Tool',
  status: 'Decision',
  agentId: 'Agent',
  runId: 'Run',
  policyId: 'Policy',
  deciderName: 'By',
  decisionReason: 'Reason',
  expiresAt: 'Until',
  detectionType: 'Detector',
  occurrences: 'Occurrences',
  value: 'Value',
  threshold: 'Threshold',
  percent: 'Percent of the budget',
  url: 'In the console',
} as const

/** Slack's limits: 150 characters in a header, 3,000 in a text, 2,000 in a field. */
const HEADER_CHARS = 150
const TEXT_CHARS = 2_900
const FIELD_CHARS = 1_900

function slackMessage(type: string, data: Record<string, unknown>): object {
  const title = TITLES[type] ?? type
  const about = data['title'] ?? data['reason']
  const fields = Object.entries(SHOWN)
    .filter(([name]) => data[name] !== null && data[name] !== undefined)
    .map(([name, label]) => ({ type: 'mrkdwn', text: `*${label}*\n${slackText(shown(data, name), FIELD_CHARS)}` }))
  return {
    text: `${title}${about ? `: ${slackText(about, HEADER_CHARS)}` : ''}`,
    blocks: [
      { type: 'header', text: { type: 'plain_text', text: title } },
      ...(about ? [{ type: 'section', text: { type: 'mrkdwn', text: slackText(about, TEXT_CHARS) } }] : []),
      ...(fields.length > 0 ? [{ type: 'section', fields }] : []),
    ],
  }
}

function shown(data: Record<string, unknown>, name: string): unknown {
  const value = data[name]
  // The name, and the id behind it.
  if (name === 'agentId' && typeof data['agentName'] === 'string') return `${data['agentName']} (${String(value)})`
  const isAmount = isMoney(data['kind']) && (name === 'value' || name === 'threshold')
  return isAmount && typeof value === 'number' ? money(value) : value
}

/** Slack reads & < > as markup; unescaped, a tool's name could notify a whole channel. */
function slackText(value: unknown, chars: number): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  const short = Array.from(text).slice(0, chars).join('')
  return short.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
