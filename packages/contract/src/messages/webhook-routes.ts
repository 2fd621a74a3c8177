import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from '../web/access.ts'
import { EnvironmentParams } from '../tenants/environment.ts'
import { CreationHeaders } from '../web/idempotency.ts'
import {
  CreatedWebhook,
  DeliveriesQuery,
  Delivery,
  DeliveryPage,
  DeliveryParams,
  NewWebhook,
  Webhook,
  WebhookChange,
  WebhookPage,
  WebhookParams,
} from './webhook.ts'
import { ListQuery } from '../tenants/workspace.ts'

const common = { tag: 'Webhooks', scopes: [] } as const
const read = { ...common, method: 'GET', access: 'viewer', status: 200 } as const
const change = { ...common, method: 'POST', access: 'admin', params: WebhookParams } as const
const act = { ...change, status: 200, errors: ['not_found'] } as const
const send = {
  ...change,
  headers: CreationHeaders,
  status: 202,
  reply: Delivery,
  errors: ['not_found', 'conflict'],
} as const
const body = { bodyBytes: LIMITS.operatorBodyBytes } as const

const WEBHOOKS = '/environments/{environmentId}/webhooks'
const WEBHOOK = `${WEBHOOKS}/{webhookId}` as const
const DELIVERIES = `${WEBHOOK}/deliveries` as const

/** Webhooks: signed messages about approvals and issues. */
export const webhookRoutes = {
  listWebhooks: {
    ...read,
    path: WEBHOOKS,
    summary: 'List webhooks',
    params: EnvironmentParams,
    query: ListQuery,
    reply: WebhookPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  createWebhook: {
    ...change,
    ...body,
    path: WEBHOOKS,
    audit: { action: 'webhook.create', target: 'webhook' },
    summary: 'Create a webhook; the reply shows its secret once',
    params: EnvironmentParams,
    headers: CreationHeaders,
    body: NewWebhook,
    status: 201,
    reply: CreatedWebhook,
    shownOnce: 'secret',
    errors: ['not_found', 'conflict'],
  },
  changeWebhook: {
    ...act,
    ...body,
    path: `${WEBHOOK}/change`,
    audit: { action: 'webhook.change', target: 'webhook' },
    summary: 'Change, enable or disable a webhook',
    body: WebhookChange,
    reply: Webhook,
  },
  rotateWebhookSecret: {
    ...act,
    path: `${WEBHOOK}/rotate-secret`,
    audit: { action: 'webhook.rotate_secret', target: 'webhook' },
    summary: 'Create a new secret for a webhook; messages carry signatures of both secrets for a day',
    reply: CreatedWebhook,
  },
  removeWebhook: {
    ...act,
    path: `${WEBHOOK}/remove`,
    audit: { action: 'webhook.remove', target: 'webhook' },
    summary: 'Remove a webhook and its deliveries',
    reply: Webhook,
  },
  testWebhook: {
    ...send,
    path: `${WEBHOOK}/test`,
    audit: { action: 'webhook.test', target: 'webhook' },
    summary: 'Send a test message; see the result in the delivery log',
  },
  listDeliveries: {
    ...read,
    path: DELIVERIES,
    summary: 'List the deliveries of a webhook, newest first',
    params: WebhookParams,
    query: DeliveriesQuery,
    reply: DeliveryPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  redeliver: {
    ...send,
    path: `${DELIVERIES}/{deliveryId}/redeliver`,
    audit: { action: 'webhook.redeliver', target: 'webhook' },
    summary: 'Send a message again with the same id',
    params: DeliveryParams,
  },
} as const satisfies Record<string, OperatorRoute>
