/** Each delivery has its own attempts and delays, separate from the work queue's. */
import { LRUCache } from 'lru-cache'
import { mailAddressOf, mailMessage } from '../../domain/messages/mail.ts'
import { askingTexts, callSentence } from '../../domain/approvals/call-sentence.ts'
import { inputsInShort } from '../../domain/approvals/recorded-input.ts'
import { gapsNews } from '../../domain/messages/notification.ts'
import {
  inputWanted,
  newsOf,
  nextAttemptAt,
  webhookMessage,
  type LaterNews,
  type ShownOfInput,
} from '../../domain/messages/webhook.ts'
import type { WebhookNews } from '../../domain/messages/webhook-formats.ts'
import type { ApprovalRow } from '../../storage/approvals/approvals.ts'
import { isoTime } from '../../storage/engine/times.ts'
import type { DeliveryAttempt, DeliveryHold, DeliveryOrder } from '../../storage/messages/messages.ts'
import type { WorkHold, WorkItem } from '../../storage/engine/work.ts'
import type { Storage } from '../../storage/storage.ts'
import type { MailSender } from './mail-sender.ts'
import type { Sent, WebhookSender } from './webhook-sender.ts'
import type { HandlerOptions, ItemHandler, Next } from '../engine/work.ts'

type Acts =
  | 'startDelivery'
  | 'recordAttempt'
  | 'isMemberAt'
  | 'findApprovals'
  | 'findLinkedInputs'
  | 'findRecordedInputs'
  | 'findRanBefore'
  | 'findPolicyVersion'
  | 'findVersionsInForce'

export interface DeliverOptions extends HandlerOptions<Acts> {
  sender: Pick<WebhookSender, 'send'>
  mail?: MailSender | null
  pages: Pick<RunPages, 'placeOf'>
  random?: () => number
  /** Measures receivers. It must be monotonic: a clock set forward by a minute would pause all receivers for three. */
  monotonicNow?: () => number
}

const SLOTS = 40
/** A receiver that takes longer than this is paused for SLOW_PAUSE times as long. */
const SLOW_MS = 1_000
const SLOW_PAUSE = 3
/** Pause between two mails of an environment to one address. */
const MAIL_PAUSE_MS = 10_000
const PAUSES_KEPT = 10_000
const BUSY_PAUSE_MS = 1_000
/** The event with the input arrives after the request, so a message that shows it waits this long for it. */
const INPUT_WAIT_MS = 3_000
const INPUT_PAUSE_MS = 500
/** With this status, a receiver stops deliveries (Standard Webhooks). */
const GONE = 410

export function deliverWebhooks(options: DeliverOptions): ItemHandler {
  const {
    storage,
    sender,
    mail = null,
    pages,
    now,
    random = Math.random,
    monotonicNow = () => performance.now(),
  } = options
  /** A slow receiver delays only its own messages, on this node. Mail is paused by address, which many webhooks can share. */
  const pauses = new LRUCache<string, number>({ max: PAUSES_KEPT })

  const heldBy = ({ environmentId, subjectId: id }: WorkItem, { owner }: WorkHold): DeliveryHold => {
    return { environmentId, id, owner }
  }

  async function record(
    held: DeliveryHold,
    { webhook }: DeliveryOrder,
    attempt: Pick<DeliveryAttempt, 'status' | 'error'> & Partial<DeliveryAttempt>,
  ): Promise<Next> {
    const unset = { webhookId: webhook.id, at: now(), nextAttemptAt: null, responseStatus: null, disable: null }
    await storage.recordAttempt({ ...held, ...unset, ...attempt })
    return 'ended'
  }

  async function deliver(item: WorkItem, workHold: WorkHold): Promise<Next> {
    const { environmentId } = item
    const held = heldBy(item, workHold)
    const order = await storage.startDelivery(held)
    if (order === null) return 'done'
    const { webhook, delivery } = order
    if (webhook.disabledAt !== null) return record(held, order, { status: 'FAILED', error: 'The webhook is disabled' })
    const startedAt = now()
    const begun = monotonicNow()
    const isMail = webhook.format === 'mail'
    const row = await requestOf(environmentId, order)
    const wanted = inputWanted(order)
    const input = wanted === null || row === null ? null : await inputOf(row)
    if (wanted && input === null && startedAt < delivery.createdAt + INPUT_WAIT_MS) {
      return { dueAt: startedAt + INPUT_PAUSE_MS }
    }
    const later = row === null ? {} : await laterNews(row)
    const paused = isMail ? `${environmentId} ${mailAddressOf(webhook.url)}` : webhook.id
    const pausedUntil = pauses.get(paused)
    if (pausedUntil !== undefined && startedAt < pausedUntil) return { dueAt: pausedUntil }
    // Set before sending, because other mails of the batch are being sent too.
    if (isMail) pauses.set(paused, startedAt + MAIL_PAUSE_MS)
    const place = await pages.placeOf(environmentId)
    const sent = isMail
      ? await sendMail(order, () => newsOf(order, place, input, later), place)
      : await sender.send(webhookMessage(order, place, startedAt, input, later))
    if (sent === 'no_member') {
      const disable = 'The address belongs to no member of the workspace'
      return record(held, order, { status: 'FAILED', error: disable, disable })
    }
    const at = now()
    if (sent === 'busy') {
      pauses.delete(paused)
      return { dueAt: at + BUSY_PAUSE_MS }
    }
    const tookMs = Math.round(monotonicNow() - begun)
    if (tookMs >= SLOW_MS) pauses.set(paused, at + SLOW_PAUSE * tookMs)
    else if (!isMail) pauses.delete(paused)
    const result = { at, responseStatus: sent.status }
    if (sent.ok) return record(held, order, { ...result, status: 'DELIVERED', error: null })
    const gone = sent.status === GONE
    const next = gone || sent.isFinal ? null : nextAttemptAt(delivery.attempts + 1, at, random())
    return record(held, order, {
      ...result,
      status: next === null ? 'FAILED' : 'PENDING',
      nextAttemptAt: next,
      error: sent.error,
      disable: gone ? 'The receiver answered 410: it accepts no more messages' : null,
    })
  }

  /** The request that the message is about. */
  async function requestOf(environmentId: string, { delivery }: DeliveryOrder): Promise<ApprovalRow | null> {
    if (delivery.type !== 'approval.requested') return null
    const { approvalId } = JSON.parse(delivery.data) as Record<string, unknown>
    return (await storage.findApprovals(environmentId, [String(approvalId)]))[0] ?? null
  }

  async function inputOf(row: ApprovalRow): Promise<ShownOfInput | null> {
    const [input] = await inputsInShort(storage, row.environmentId, [row])
    if (!input?.text || !input.check) return null
    const workspaceId = (await pages.placeOf(row.environmentId))?.workspaceId ?? ''
    const [asking = null] = await askingTexts(storage, workspaceId, [row])
    const { text, check, decision } = input
    return { text, check, sentence: callSentence(row.toolName, decision, asking) }
  }

  async function laterNews(row: ApprovalRow): Promise<LaterNews> {
    const { withdrawnAt, withdrawnReason: reason, toolCallId } = row
    const [before] = toolCallId === null ? [] : await storage.findRanBefore(row.environmentId, [row])
    return {
      ...(before && { ranBefore: { ...before, at: isoTime(before.at) } }),
      ...(withdrawnAt !== null && { withdrawnAt: isoTime(withdrawnAt), withdrawnReason: reason ?? 'cancelled' }),
    }
  }

  /** Checked for each mail, because the person may have left since an admin chose the address. */
  async function sendMail(
    { webhook: { url, environmentId } }: DeliveryOrder,
    news: () => WebhookNews,
    place: Awaited<ReturnType<RunPages['placeOf']>>,
  ): Promise<Sent | 'busy' | 'no_member'> {
    const address = mailAddressOf(url)
    if (address === null || !(await storage.isMemberAt(environmentId, address))) return 'no_member'
    if (mail === null) return { ok: false, status: null, error: 'This server sends no mail: TACHO_SMTP_URL is not set' }
    return mail.send(mailMessage(news(), address), place?.workspaceId ?? '')
  }

  return {
    kind: 'deliver_webhook',
    batch: SLOTS,
    inTurn: true,
    perform: deliver,
    // Only a bug leads here: a receiver's refusal is not an error.
    async giveUp(item, error, workHold) {
      const held = heldBy(item, workHold)
      const order = await storage.startDelivery(held)
      return order === null ? 'done' : record(held, order, { status: 'FAILED', error })
    },
  }
}

type GapsOptions = HandlerOptions<'tellOfRun' | 'findRun'> & { pages: Pick<RunPages, 'urlOf'> }

/** Sends one message per run, after the time in which a retry or a spool can still fill the gaps. */
export function tellGaps({ storage, pages, now }: GapsOptions): ItemHandler {
  return {
    kind: 'tell_gaps',
    batch: 50,
    async perform({ environmentId, subjectId }, workHold) {
      const run = await storage.findRun(environmentId, subjectId)
      const data = run && gapsNews(environmentId, run)
      if (data === null) return 'done'
      const url = await pages.urlOf(environmentId, subjectId)
      const news = { type: 'run.incomplete', at: now(), data: { ...data, url } } as const
      await storage.tellOfRun(workHold, environmentId, subjectId, news)
      return 'ended'
    },
    giveUp: async () => 'done',
  }
}

export type RunPages = ReturnType<typeof runPages>

/**
 * Uses ids, so that the address survives a rename of the workspace. Null: the environment was deleted. `run` is an
 * internal id.
 */
export function runPages(storage: Pick<Storage, 'findEnvironment'>, publicUrl: () => string) {
  async function placeOf(environmentId: string) {
    const environmentRow = await storage.findEnvironment(environmentId)
    if (!environmentRow) return null
    const { name: environment, workspaceId } = environmentRow
    return { environment, workspaceId, url: `${publicUrl()}/w/${workspaceId}/${environmentId}` }
  }
  return {
    placeOf,
    async urlOf(environmentId: string, run: string): Promise<string | null> {
      const place = await placeOf(environmentId)
      return place && `${place.url}/runs/${run}`
    },
  }
}
