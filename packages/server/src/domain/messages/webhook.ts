/** Builds the messages of webhooks, signed as Standard Webhooks requires. */
import { createHmac } from 'node:crypto'
import { SLACK_PATH } from '@tacho/contract/messages/slack-link.ts'
import { INPUT_FORMATS, type WithdrawnReason } from '@tacho/contract/engine/words.ts'
import type { InputCheck, RanBefore } from '@tacho/contract/approvals/operator-approval.ts'
import type { SentencePart } from '@tacho/contract/approvals/call-sentence.ts'
import type { Delivery, Webhook } from '@tacho/contract/messages/webhook.ts'
import type { DeliveryOrder, DeliveryRow, WebhookRow } from '../../storage/messages/messages.ts'
import { isoTime } from '../../storage/engine/times.ts'
import type { Random } from '../../storage/engine/uuid.ts'
import { pick, isoOf } from '../web/shown.ts'
import { consolePageOf, SHAPES, type WebhookNews, type WebhookPlace } from './webhook-formats.ts'

const SECRET_PREFIX = 'whsec_'
const SECRET_BYTES = 32
const SECOND_MS = 1_000
/** Delays before the second and later attempts, about a day in total. */
const DELAYS_MS = [5, 30, 120, 600, 1_800, 3_600, 10_800, 21_600, 43_200].map((seconds) => seconds * SECOND_MS)

export function newWebhookSecret(random: Random): string {
  return SECRET_PREFIX + Buffer.from(random(SECRET_BYTES)).toString('base64')
}

export function nextAttemptAt(attempts: number, now: number, spread: number): number | null {
  const delay = DELAYS_MS[attempts - 1]
  return delay === undefined ? null : now + Math.round(delay * (0.9 + 0.2 * spread))
}

export interface WebhookMessage {
  url: string
  headers: Record<string, string>
  body: string
}

/** The beginning of a recorded input, if the webhook shows it. Stored messages never contain it. */
export interface ShownOfInput {
  text: string
  check: InputCheck
  sentence: SentencePart[]
}

/** Facts about a request that became known between its creation and the message. Empty: nothing new. */
export type LaterNews = Partial<{ ranBefore: RanBefore; withdrawnAt: string | null; withdrawnReason: WithdrawnReason }>

export function newsOf(
  { webhook, delivery }: DeliveryOrder,
  place: WebhookPlace | null,
  input: ShownOfInput | null = null,
  later: LaterNews = {},
): WebhookNews {
  const { id, type, createdAt } = delivery
  const shown = input === null ? {} : { inputInShort: input.text, inputCheck: input.check, sentence: input.sentence }
  const data = { ...(JSON.parse(delivery.data) as Record<string, unknown>), ...shown, ...later }
  const isInputMissing = input === null && showsInput(webhook)
  return { id, type, createdAt, data, place, hasButtons: webhook.signingSecret !== null, isInputMissing }
}

const showsInput = (webhook: WebhookRow): boolean => webhook.showsInput && INPUT_FORMATS.includes(webhook.format)

/** The approval whose input the message shows; null: none. */
export function inputWanted({ webhook, delivery }: DeliveryOrder): string | null {
  if (!showsInput(webhook) || delivery.type !== 'approval.requested') return null
  const { approvalId, runId } = JSON.parse(delivery.data) as Record<string, unknown>
  return typeof runId === 'string' ? String(approvalId) : null
}

export function webhookMessage(
  { webhook, delivery }: DeliveryOrder,
  place: WebhookPlace | null,
  now: number,
  input: ShownOfInput | null = null,
  later: LaterNews = {},
): WebhookMessage {
  const news = newsOf({ webhook, delivery }, place, input, later)
  const { id: _id, type, createdAt, data } = news
  const { url, body: content } =
    webhook.format === 'standard' || webhook.format === 'mail'
      ? { url: webhook.url, body: { type, timestamp: isoTime(createdAt), data: { ...data, url: consolePageOf(news) } } }
      : SHAPES[webhook.format](news, webhook.url)
  const body = JSON.stringify(content)
  const timestamp = String(Math.floor(now / SECOND_MS))
  const previous = webhook.previousUntil !== null && now < webhook.previousUntil ? webhook.previousSecret : null
  const signatures = [webhook.secret, previous]
    .filter((secret) => secret !== null)
    .map((secret) => sign(secret, `${delivery.id}.${timestamp}.${body}`))
  return {
    url,
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

/** `base`: where people reach the server. Without `showsUrl` only the origin: path and query often contain a secret. */
export function toWebhook(row: WebhookRow, base: string, showsUrl = true): Webhook {
  const { environmentId, id: webhookId, signingSecret } = row
  const path = SLACK_PATH.replace('{environmentId}', environmentId).replace('{webhookId}', webhookId)
  return {
    ...pick(row, 'id', 'environmentId', 'description', 'format', 'events', 'disabledReason', 'droppedDeliveries'),
    showsInput: row.showsInput,
    ...isoOf(row, 'createdAt', 'disabledAt'),
    url: showsUrl || row.damaged ? row.url : shortUrl(row),
    interactionsUrl: signingSecret === null ? null : `${base}${path}`,
    ...(row.damaged && { damaged: true as const }),
  }
}

function shortUrl({ url, format }: WebhookRow): string {
  return format === 'mail' ? 'mailto:…' : `${new URL(url).origin}/…`
}

export function toDelivery(row: DeliveryRow): Delivery {
  return { ...row, ...isoOf(row, 'createdAt', 'lastAttemptAt', 'nextAttemptAt') }
}

function sign(secret: string, text: string): string {
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')
  return `v1,${createHmac('sha256', key).update(text).digest('base64')}`
}
