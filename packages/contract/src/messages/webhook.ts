import Type, { type Static } from 'typebox'
import {
  cursor,
  id,
  nextCursor,
  nullableText,
  nullableTime,
  pageLimit,
  text,
  time,
  uuid,
  CreationHeaders,
  damaged,
} from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { DELIVERY_STATUSES, WEBHOOK_EVENTS, WEBHOOK_FORMATS } from '../engine/words.ts'
import type { OperatorRoute } from '../web/route.ts'
import { EnvironmentParams, ListQuery } from '../tenants/workspace.ts'

export type WebhookEvent = (typeof WEBHOOK_EVENTS)[number]

export type WebhookFormat = (typeof WEBHOOK_FORMATS)[number]

const url = Type.String({
  minLength: 1,
  maxLength: LIMITS.webhookUrlChars,
  description:
    'https or http address of a host that resolves to public addresses, without user and password. For the format mail: mailto: and the address of a member of the workspace',
})
const events = Type.Array(Type.Enum([...WEBHOOK_EVENTS], { $id: 'WebhookEvent' }), {
  minItems: 1,
  maxItems: WEBHOOK_EVENTS.length,
  uniqueItems: true,
  description: 'Events that trigger it',
})
const description = text(LIMITS.descriptionChars, 'Purpose of the webhook')
const format = Type.Enum([...WEBHOOK_FORMATS], { $id: 'WebhookFormat' })

const signingSecret = Type.String({
  pattern: `^[0-9A-Za-z]{${LIMITS.slackSecretCharsMin},${LIMITS.slackSecretCharsMax}}$`,
  description:
    'Signing secret of the Slack app, for format slack: requests for approval then have the buttons Approve and Reject. No reply shows it',
})

const showsInput = Type.Boolean({
  description: `Whether messages about requests for approval have the beginning of the recorded input, about ${LIMITS.inputInShortChars} characters, as the client masked it. Only for the formats slack, teams and mail. Everyone who reads the channel sees it`,
})

const webhookFields = {
  id: uuid('Webhook id'),
  environmentId: uuid('Its environment'),
  url: Type.String({ description: 'Where messages go. Roles below admin see only the origin, then /…' }),
  description,
  format,
  events,
  interactionsUrl: nullableText(
    'Request URL for the interactivity of the Slack app, which takes decisions; null: the webhook has no signing secret',
  ),
  showsInput,
  createdAt: time('When it was created'),
  disabledAt: nullableTime('When it was disabled; null: it is active'),
  disabledReason: nullableText('Why the service disabled it'),
  droppedDeliveries: Type.Integer({
    minimum: 0,
    description: `Messages dropped unsent because ${LIMITS.webhookPendingDeliveries} newer ones were waiting`,
  }),
  damaged: damaged('The stored webhook does not match its checksum: its address is left out, and nothing is sent'),
}

export const Webhook = Type.Object(webhookFields, {
  $id: 'Webhook',
  description: 'An address that receives messages about an environment',
})
export type Webhook = Static<typeof Webhook>

export const CreatedWebhook = Type.Object(
  {
    ...webhookFields,
    secret: Type.String({ description: 'Signs the messages (Standard Webhooks). It is shown once' }),
  },
  { $id: 'CreatedWebhook', description: 'A webhook with its new secret' },
)
export type CreatedWebhook = Static<typeof CreatedWebhook>

const NewWebhook = Type.Object(
  {
    url,
    events: Type.Optional(events),
    description: Type.Optional(description),
    format: Type.Optional(format),
    signingSecret: Type.Optional(signingSecret),
    showsInput: Type.Optional(showsInput),
  },
  {
    $id: 'NewWebhook',
    examples: [{ url: 'https://example.com/tacho', events: ['approval.requested'], description: 'On-call channel' }],
  },
)
type NewWebhook = Static<typeof NewWebhook>

/** Absent fields stay unchanged. */
const WebhookChange = Type.Object(
  {
    url: Type.Optional(url),
    events: Type.Optional(events),
    description: Type.Optional(description),
    enabled: Type.Optional(Type.Boolean()),
    showsInput: Type.Optional(showsInput),
    signingSecret: Type.Optional(
      Type.Unsafe<string | null>({
        anyOf: [signingSecret, { type: 'null' }],
        description:
          'A new one, or null, removes the links of Slack users to accounts. Null: no more decisions in Slack',
      }),
    ),
  },
  { $id: 'WebhookChange', examples: [{ description: 'Approvals and issues', enabled: false }] },
)
type WebhookChange = Static<typeof WebhookChange>

export const WebhookPage = Type.Object({ items: Type.Array(Webhook), nextCursor }, { $id: 'WebhookPage' })
export type WebhookPage = Static<typeof WebhookPage>

export const WebhookParams = Type.Object({ environmentId: uuid('Environment id'), webhookId: uuid('Webhook id') })

export const DeliveryStatus = Type.Enum([...DELIVERY_STATUSES], { $id: 'DeliveryStatus' })
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number]

export const Delivery = Type.Object(
  {
    id: uuid('Delivery id, and the webhook-id header'),
    type: Type.String({ description: 'Event that triggered it' }),
    status: DeliveryStatus,
    attempts: Type.Integer({ minimum: 0 }),
    createdAt: time('When the event happened'),
    lastAttemptAt: nullableTime('Last attempt'),
    nextAttemptAt: nullableTime('Next attempt; null when there is none'),
    responseStatus: Type.Unsafe<number | null>({
      type: ['integer', 'null'],
      description: 'HTTP status of the last attempt',
    }),
    error: nullableText('Why the last attempt failed'),
  },
  { $id: 'Delivery', description: 'One message to one webhook' },
)
export type Delivery = Static<typeof Delivery>

const DeliveriesQuery = Type.Object({
  limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.operatorPageMax),
  cursor,
  status: Type.Optional(DeliveryStatus),
})

export const DeliveryPage = Type.Object({ items: Type.Array(Delivery), nextCursor }, { $id: 'DeliveryPage' })
export type DeliveryPage = Static<typeof DeliveryPage>

const DeliveryParams = Type.Object({
  environmentId: uuid('Environment id'),
  webhookId: uuid('Webhook id'),
  deliveryId: id(36, 'Delivery id'),
})

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
