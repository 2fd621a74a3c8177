/**
 * Items of one event become one message. An item is for all browsers, or for one browser that had quiet hours or whose
 * push service failed.
 */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { RequestDetails } from 'web-push'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { PushedNotification } from '@tacho/contract/messages/notification.ts'
import { Shares } from '../../domain/tenants/shares.ts'
import { bySeverity, choose, toNotice, type Notice, type PushKeys } from '../../domain/messages/notification.ts'
import { nextAttemptAt } from '../../domain/messages/webhook.ts'
import { subjectBeginning, subjectOf, type NoticesTold, type ToldBrowser } from '../../storage/messages/messages.ts'
import type { WorkHold, WorkItem } from '../../storage/engine/work.ts'
import type { HandlerOptions, ItemHandler, Next } from '../engine/work.ts'
import type { Sent, WebhookSender } from './webhook-sender.ts'

type Acts = 'findEnvironment' | 'findNotices' | 'listNotices' | 'listToldBrowsers' | 'recordNoticesTold'

export interface NotifyOptions extends HandlerOptions<Acts> {
  push: PushSender
  random?: () => number
}

/** Events that this process handles at a time, and messages that it sends at a time for one event. */
const SLOTS = 10
const MESSAGES = 20
/**
 * Pause between two messages of one event in one environment, so that a flood of requests causes no flood of messages.
 */
const PAUSE_MS = 10_000
const PAUSES_KEPT = 10_000
const JOINED = 200
const ATTEMPTS = 4
const DAY_SECONDS = 24 * 60 * 60
/** Maximum number of items of failing browsers that run at a time, so that most slots stay free for the others. */
const FAILING = { most: 4, ofWorkspace: 2, ofCredential: 1 }
const FAILING_PAUSE_MS = 2_000
const FAILING_KEPT = 10_000
/** The push service no longer knows the browser (RFC 8030). */
const GONE: ReadonlySet<number | null> = new Set([404, 410])
const TOO_MANY = 429

export function notifyPeople({ storage, push, now, random = Math.random }: NotifyOptions): ItemHandler {
  /** `hasNext`: an item for later news is already queued. */
  const pauses = new LRUCache<string, { until: number; hasNext: boolean }>({ max: PAUSES_KEPT })
  /** Browsers whose push service failed the last time. They delay only each other. */
  const failing = new LRUCache<string, true>({ max: FAILING_KEPT })
  const running = new Shares(FAILING)

  async function perform(item: WorkItem, workHold: WorkHold, signal: AbortSignal): Promise<Next> {
    const browserId = subjectOf(item.subjectId)?.browserId ?? null
    if (browserId === null || !failing.has(browserId)) return tellAll(item, workHold, signal)
    const environment = await storage.findEnvironment(item.environmentId)
    const holder = { workspace: environment?.workspaceId ?? '', credential: browserId }
    if (!running.take(holder, 1)) return { dueAt: now() + FAILING_PAUSE_MS }
    try {
      return await tellAll(item, workHold, signal)
    } finally {
      running.add(holder, -1)
    }
  }

  async function tellAll(item: WorkItem, workHold: WorkHold, signal: AbortSignal): Promise<Next> {
    const { environmentId, subjectId } = item
    const subject = subjectOf(subjectId)
    if (subject === null) return 'done'
    const at = now()
    const group = `${environmentId} ${subjectBeginning(subject)}`
    const pause = pauses.get(group)
    if (pause !== undefined && at < pause.until) {
      const dueAt = pause.hasNext ? pause.until + PAUSE_MS : pause.until
      pause.hasNext = true
      return { dueAt }
    }
    pauses.set(group, { until: at + PAUSE_MS, hasNext: false })

    const { browserId, event } = subject
    const joined = await storage.listNotices(environmentId, subject, JOINED)
    const ids = [subjectId, ...joined].flatMap((text) => subjectOf(text)?.id ?? [])
    const rows = await storage.findNotices(environmentId, event, ids, at)
    const notices = rows.filter(({ isCurrent }) => isCurrent).map((row) => toNotice(event, row))
    notices.sort(bySeverity)
    const environment = await storage.findEnvironment(environmentId)
    const browsers =
      environment && notices.length > 0
        ? await storage.listToldBrowsers(environmentId, browserId, LIMITS.browsersToldAtOnce)
        : []
    const outcome: NoticesTold = { at, joined, told: [], gone: [], later: [] }
    let failed: string | null = null

    async function tell(browser: ToldBrowser, workspaceId: string): Promise<void> {
      const chosen = choose(event, notices, browser, at)
      if (chosen === null) return
      const { notice, at: dueAt } = chosen
      const ofBrowser = { browserId: browser.id, event, id: notice.id }
      if (dueAt > at) {
        outcome.later.push({ ...ofBrowser, dueAt })
        return
      }
      if (browserId === null && failing.has(browser.id)) {
        outcome.later.push({ ...ofBrowser, dueAt: at })
        return
      }
      const seconds = timeToLiveSeconds(notice, at)
      const pushed = { event, workspaceId, environmentId, id: notice.id }
      const sent = await push(browser, pushed, { seconds, isUrgent: event === 'approval.requested' || isHigh(notice) })
      failing.delete(browser.id)
      if (sent.ok) outcome.told.push(browser.id)
      else if (GONE.has(sent.status)) outcome.gone.push(browser.id)
      else if (!sent.isFinal && (sent.status === null || sent.status === TOO_MANY || sent.status >= 500)) {
        failing.set(browser.id, true)
        if (browserId === null) outcome.later.push({ ...ofBrowser, dueAt: retryAt(1) })
        else failed = sent.error
      }
    }

    // All senders take from one list, so a slow push service delays only one of them.
    const waiting = browsers.values()
    const tellRest = async (workspaceId: string) => {
      for (const browser of waiting) {
        // After an abort, another process notifies the remaining browsers.
        signal.throwIfAborted()
        await tell(browser, workspaceId)
      }
    }
    if (environment) await Promise.all(Array.from({ length: MESSAGES }, () => tellRest(environment.workspaceId)))
    if (failed !== null && item.attempts < ATTEMPTS) {
      pauses.delete(group)
      return { dueAt: retryAt(item.attempts), failed }
    }
    await storage.recordNoticesTold(workHold, environmentId, outcome)
    return 'ended'
  }

  const retryAt = (attempts: number) => nextAttemptAt(attempts, now(), random()) ?? now()

  return { kind: 'notify_people', batch: SLOTS, inTurn: true, perform, giveUp: async () => 'done' }
}

const isHigh = ({ severity }: Notice) => severity === 'HIGH' || severity === 'CRITICAL'

function timeToLiveSeconds({ until }: Notice, now: number): number {
  return until === null ? DAY_SECONDS : Math.max(1, Math.floor((until - now) / 1_000))
}

/** Encrypts messages for browsers and sends them to their push services, as webhooks are sent: to public addresses only. */

type PushSender = (
  browser: Pick<ToldBrowser, 'endpoint' | 'publicKey' | 'authSecret'>,
  pushed: PushedNotification,
  how: { seconds: number; isUrgent: boolean },
) => Promise<Sent>

interface PushOptions {
  keys: PushKeys
  contact: () => string
  send: WebhookSender['send']
}

/** Maximum number of characters that push services accept. */
const TOPIC_CHARS = 32

export function createPushSender({ keys, contact, send }: PushOptions): PushSender {
  return async ({ endpoint, publicKey: p256dh, authSecret: auth }, pushed, { seconds, isUrgent }) => {
    const { default: webPush } = await import('web-push')
    const { environmentId, event } = pushed
    let request: RequestDetails
    try {
      request = webPush.generateRequestDetails({ endpoint, keys: { p256dh, auth } }, JSON.stringify(pushed), {
        vapidDetails: { subject: contact(), ...keys },
        TTL: seconds,
        urgency: isUrgent ? 'high' : 'normal',
        contentEncoding: 'aes128gcm',
        // With the same topic, a newer message replaces one that an offline browser has not received yet.
        topic: hash('sha256', `${environmentId} ${event}`).slice(0, TOPIC_CHARS),
      })
    } catch {
      // A failure, not an exception, so that one browser does not hold up the others.
      return { ok: false, status: null, error: 'Nothing can be encrypted for this browser', isFinal: true }
    }
    const { 'Content-Length': _length, ...headers } = request.headers
    const texts = Object.entries(headers).map(([name, value]): [string, string] => [name.toLowerCase(), String(value)])
    return send({ url: endpoint, headers: Object.fromEntries(texts), body: request.body ?? Buffer.alloc(0) })
  }
}

export function contactOf(publicUrl: string, mailFrom: string | null): string {
  if (mailFrom !== null) return `mailto:${mailFrom}`
  return publicUrl.startsWith('https://') ? new URL(publicUrl).origin : 'mailto:operator@localhost'
}
