/** Sends webhook deliveries. Each delivery has its own attempts and delays, separate from the work queue's. */
import { nextAttemptAt, webhookMessage } from '../domain/webhook.ts'
import type { Storage } from '../storage/storage.ts'
import { StorageError } from '../storage/store.ts'
import type { DeliveryAttempt, DeliveryHold } from '../storage/webhooks.ts'
import type { WorkItem } from '../storage/work.ts'
import type { RunPages } from './run-pages.ts'
import type { WebhookSender } from './webhook-sender.ts'
import type { WorkHandler } from './work.ts'

export interface DeliverOptions {
  storage: Pick<Storage, 'startDelivery' | 'recordAttempt' | 'finishWork' | 'postponeWork'>
  sender: WebhookSender
  pages: Pick<RunPages, 'placeOf'>
  owner: string
  now: () => number
  random?: () => number
}

/** Concurrent sends of this process. One workspace gets at most half of them. */
const SLOTS = 40
/** A receiver slower than this is slow: its other messages wait for a multiple of the time it took. */
const SLOW_MS = 1_000
const SLOW_PAUSE = 3
/** The status a receiver sends to stop deliveries (Standard Webhooks). */
const GONE = 410

export function deliverWebhooks({
  storage,
  sender,
  pages,
  owner,
  now,
  random = Math.random,
}: DeliverOptions): WorkHandler {
  const kind = 'deliver_webhook'
  /** When each webhook may send again from this node. So a slow receiver delays only its own messages. */
  const pauses = new Map<string, number>()

  async function deliver(item: WorkItem): Promise<unknown> {
    const { environmentId, subjectId: id } = item
    const held: DeliveryHold = { environmentId, id, owner }
    const order = await storage.startDelivery(held)
    if (order === null) return storage.finishWork({ kind, owner, items: [item] })
    const { webhook, delivery } = order
    const ended = { ...held, webhookId: webhook.id, nextAttemptAt: null, responseStatus: null, disable: null }
    if (webhook.disabledAt !== null) {
      return storage.recordAttempt({ ...ended, at: now(), status: 'FAILED', error: 'The webhook is disabled' })
    }
    const startedAt = now()
    const pausedUntil = pauses.get(webhook.id)
    if (pausedUntil !== undefined && startedAt < pausedUntil) {
      return storage.postponeWork({ kind, owner, items: [item] }, { dueAt: pausedUntil, error: null, counts: false })
    }
    const sent = await sender.send(webhookMessage(order, await pages.placeOf(environmentId), startedAt))
    const at = now()
    if (at - startedAt < SLOW_MS) pauses.delete(webhook.id)
    else pauses.set(webhook.id, at + SLOW_PAUSE * (at - startedAt))
    const result = { ...ended, at, responseStatus: sent.status }
    if (sent.ok) return storage.recordAttempt({ ...result, status: 'DELIVERED', error: null })
    const gone = sent.status === GONE
    const next = gone ? null : nextAttemptAt(delivery.attempts + 1, at, random())
    const attempt: DeliveryAttempt = {
      ...result,
      status: next === null ? 'FAILED' : 'PENDING',
      nextAttemptAt: next,
      error: sent.error,
      disable: gone ? 'The receiver answered 410: it accepts no more messages' : null,
    }
    return storage.recordAttempt(attempt)
  }

  return {
    kind,
    batch: SLOTS,
    inTurn: true,
    async perform(items) {
      // All sends end before the first failure is reported, because the lease is renewed only until then.
      const results = await Promise.allSettled(items.map(deliver))
      const failures = results.flatMap((each): unknown[] => (each.status === 'rejected' ? [each.reason] : []))
      if (failures.length > 0) throw failures.find((reason) => !(reason instanceof StorageError)) ?? failures[0]
    },
    // Only a bug gets here; a receiver's refusal is not an error.
    async giveUp(item, reason) {
      const { environmentId, subjectId: id } = item
      const held: DeliveryHold = { environmentId, id, owner }
      const order = await storage.startDelivery(held)
      if (order === null) return storage.finishWork({ kind, owner, items: [item] })
      const failed = {
        status: 'FAILED',
        nextAttemptAt: null,
        responseStatus: null,
        error: reason,
        disable: null,
      } as const
      return storage.recordAttempt({ ...held, webhookId: order.webhook.id, at: now(), ...failed })
    },
  }
}
