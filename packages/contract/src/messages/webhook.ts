import Type, { type Static } from 'typebox'
import { cursor, id, nextCursor, nullableText, nullableTime, pageLimit, text, time, uuid } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { DELIVERY_STATUSES, WEBHOOK_EVENTS, WEBHOOK_FORMATS } from '../engine/words.ts'

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

export const NewWebhook = Type.Object(
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
export type NewWebhook = Static<typeof NewWebhook>

/** Absent fields stay unchanged. */
export const WebhookChange = Type.Object(
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
export type WebhookChange = Static<typeof WebhookChange>

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

export const DeliveriesQuery = Type.Object({
  limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.operatorPageMax),
  cursor,
  status: Type.Optional(DeliveryStatus),
})

export const DeliveryPage = Type.Object({ items: Type.Array(Delivery), nextCursor }, { $id: 'DeliveryPage' })
export type DeliveryPage = Static<typeof DeliveryPage>

export const DeliveryParams = Type.Object({
  environmentId: uuid('Environment id'),
  webhookId: uuid('Webhook id'),
  deliveryId: id(36, 'Delivery id'),
})
