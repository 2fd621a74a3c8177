import type { DeliveryStatus, WebhookEvent, WebhookFormat } from '@tacho/contract/operator/webhook.ts'

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
  /** Of the Slack app. With it, messages about approvals have buttons. */
  signingSecret: string | null
  /** Messages about requests for approval have the beginning of the recorded input. */
  showsInput: boolean
  createdAt: number
  disabledAt: number | null
  disabledReason: string | null
  /** Deleted unsent, because newer ones exceeded the bound. */
  droppedDeliveries: number
}

type Changeable =
  | 'url'
  | 'description'
  | 'events'
  | 'secret'
  | 'previousSecret'
  | 'previousUntil'
  | 'signingSecret'
  | 'showsInput'
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
