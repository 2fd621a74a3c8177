import type { Delivery, DeliveryStatus, Webhook, WebhookEvent } from '@tacho/contract/messages/webhook.ts'
import type { PatchOf, RowFor } from '../engine/page.ts'

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
  /** Set if the receiver says that it no longer exists. */
  disable: string | null
}
