/** Webhooks and their deliveries. */
import type { DeliveryStatus, WebhookEvent, WebhookFormat } from '@tacho/contract/operator/webhook.ts'
import type { AuditEntry } from './audit.ts'
import type { PageById } from './page.ts'
import type { WorkHold } from './work.ts'

export interface WebhookStore {
  /** `too_many`: the environment has reached its limit. */
  createWebhook(webhook: WebhookRow, audit: AuditEntry[]): Promise<'created' | 'too_many'>
  listWebhooks(environmentId: string, page: PageById): Promise<WebhookRow[]>
  findWebhook(environmentId: string, id: string): Promise<WebhookRow | null>
  /** Null: no such webhook in that environment. The same holds for the acts below. */
  changeWebhook(
    environmentId: string,
    id: string,
    change: WebhookPatch,
    audit: AuditEntry[],
  ): Promise<WebhookRow | null>
  /** Also deletes its deliveries. */
  removeWebhook(environmentId: string, id: string, audit: AuditEntry[]): Promise<WebhookRow | null>
  /** Queues a message to one webhook. */
  sendToWebhook(delivery: NewDelivery, audit: AuditEntry[]): Promise<DeliveryRow>
  /**
   * Ends work, and queues a message about a run, named by its internal id, to every webhook that subscribes to it; none if the
   * run is gone. False, queuing none: the work is no longer held.
   */
  tellOfRun(hold: WorkHold, environmentId: string, run: string, news: News): Promise<boolean>
  /** Newest first. */
  listDeliveries(
    environmentId: string,
    webhookId: string,
    filter: { status?: DeliveryStatus | undefined },
    page: PageById,
  ): Promise<DeliveryRow[]>
  /** Queues an ended delivery again. `waiting`: it has not ended. */
  redeliver(
    environmentId: string,
    webhookId: string,
    id: string,
    now: number,
    audit: AuditEntry[],
  ): Promise<DeliveryRow | 'waiting' | null>
  /** What the sender needs; null if the webhook was removed, or the owner no longer holds the delivery. */
  startDelivery(hold: DeliveryHold): Promise<DeliveryOrder | null>
  /**
   * Stores an attempt, and removes the delivery from the queue or puts it back. False, storing nothing: the owner no
   * longer holds the delivery.
   */
  recordAttempt(attempt: DeliveryAttempt): Promise<boolean>
}

export interface WebhookRow {
  id: string
  environmentId: string
  url: string
  description: string
  format: WebhookFormat
  events: WebhookEvent[]
  /** `whsec_` and base64, as Standard Webhooks writes it. */
  secret: string
  previousSecret: string | null
  previousUntil: number | null
  createdAt: number
  disabledAt: number | null
  disabledReason: string | null
  /** Deliveries deleted unsent, because newer ones exceeded the bound. */
  droppedDeliveries: number
}

type Changeable =
  | 'url'
  | 'description'
  | 'events'
  | 'secret'
  | 'previousSecret'
  | 'previousUntil'
  | 'disabledAt'
  | 'disabledReason'

/** Undefined fields stay unchanged. */
export type WebhookPatch = { [Name in Changeable]?: WebhookRow[Name] | undefined }

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
  /** JSON object. */
  data: string
}

export interface DeliveryRow {
  id: string
  type: string
  status: DeliveryStatus
  attempts: number
  createdAt: number
  lastAttemptAt: number | null
  nextAttemptAt: number | null
  responseStatus: number | null
  error: string | null
}

export interface DeliveryOrder {
  webhook: WebhookRow
  delivery: DeliveryRow & { data: string }
}

export interface DeliveryHold {
  environmentId: string
  id: string
  /** Owner of the lease in the work queue. */
  owner: string
}

export interface DeliveryAttempt extends DeliveryHold {
  webhookId: string
  at: number
  status: DeliveryStatus
  nextAttemptAt: number | null
  responseStatus: number | null
  error: string | null
  /** Set if the receiver says that it no longer exists. */
  disable: string | null
}
