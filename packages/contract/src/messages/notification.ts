/**
 * Notifications that a person gets in their browsers by Web Push. A message contains only ids; the browser reads the
 * text with its session.
 */
import Type, { type Static } from 'typebox'
import { id, nullableTime, time, uuid } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { NOTIFICATION_EVENTS, NOTIFICATION_KINDS, SEVERITIES } from '../engine/words.ts'
import type { OperatorRoute } from '../web/route.ts'

export type NotificationKind = (typeof NOTIFICATION_KINDS)[number]
export type NotificationEvent = (typeof NOTIFICATION_EVENTS)[number]

/**
 * The encrypted message to a browser. It contains only ids, so that neither the push service nor the screen of a
 * signed-out browser shows more.
 */
export interface PushedNotification {
  event: NotificationEvent
  workspaceId: string
  environmentId: string
  /** Id of the approval, alert or issue. */
  id: string
}

export const NotifiedBrowser = Type.Object(
  {
    id: uuid('Browser id'),
    userAgent: Type.String({ description: 'The browser, as it named itself' }),
    endpoint: Type.String({
      description: 'SHA-256 of its address at the push service, so that a browser knows its own row',
    }),
    current: Type.Boolean({ description: "Whether the caller's session was the last that opened it" }),
    addedAt: time('When the person switched notifications on in it'),
    notifiedAt: nullableTime('When its push service last took a message'),
  },
  { $id: 'NotifiedBrowser', description: "A browser that shows a person's notifications" },
)
export type NotifiedBrowser = Static<typeof NotifiedBrowser>

/** Keys as in `PushSubscription.toJSON()`. */
const keys = Type.Object({
  p256dh: Type.String({ pattern: '^[A-Za-z0-9_-]{87}$', description: 'Public key of the browser (RFC 8291)' }),
  auth: Type.String({ pattern: '^[A-Za-z0-9_-]{22}$', description: 'Its authentication secret' }),
})

export const NewNotifiedBrowser = Type.Object(
  {
    endpoint: Type.String({
      minLength: 1,
      maxLength: LIMITS.pushEndpointChars,
      description: 'https address of the browser at its push service, which must resolve to public addresses',
    }),
    keys,
    renew: Type.Optional(
      Type.Boolean({
        description:
          'Only if the account has this browser already: it belongs to the session of the caller from now on',
      }),
    ),
  },
  {
    $id: 'NewNotifiedBrowser',
    examples: [
      {
        endpoint: 'https://push.example.com/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV',
        keys: {
          p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
          auth: 'BTBZMqHH6r4Tts7J_aSIgg',
        },
      },
    ],
  },
)
export type NewNotifiedBrowser = Static<typeof NewNotifiedBrowser>

const minute = (description: string) => Type.Integer({ minimum: 0, maximum: 1_439, description })

export const QuietHours = Type.Object(
  {
    fromMinute: minute('Minute of the day when they begin'),
    toMinute: minute('Minute of the day when they end, maybe on the next day; not the one when they begin'),
    timeZone: id(LIMITS.timeZoneChars, 'IANA name, such as Europe/Berlin'),
    exceptCritical: Type.Boolean({ description: 'Whether what is CRITICAL is told anyway' }),
  },
  { $id: 'QuietHours', description: 'When a person is told nothing. What still holds when they end is told then' },
)
export type QuietHours = Static<typeof QuietHours>

const choice = {
  environmentId: uuid('Environment'),
  kinds: Type.Array(Type.Enum([...NOTIFICATION_KINDS], { $id: 'NotificationKind' }), {
    minItems: 1,
    maxItems: NOTIFICATION_KINDS.length,
    uniqueItems: true,
    description: 'What to tell',
  }),
  severity: Type.Enum([...SEVERITIES], { description: 'Tell what is at least this severe' }),
}

export const NotificationChoice = Type.Object(
  { workspaceId: uuid('Its workspace'), ...choice },
  { $id: 'NotificationChoice', description: 'What a person wants to know of an environment' },
)
export type NotificationChoice = Static<typeof NotificationChoice>

export const NotificationSettings = Type.Object(
  {
    publicKey: Type.String({ description: 'Key of this server for a browser to subscribe with (VAPID, RFC 8292)' }),
    browsers: Type.Array(NotifiedBrowser),
    environments: Type.Array(NotificationChoice),
    quietHours: Type.Union([QuietHours, Type.Null()]),
  },
  { $id: 'NotificationSettings', description: 'What a person is told, where, and when not' },
)
export type NotificationSettings = Static<typeof NotificationSettings>

/** Absent fields stay unchanged. */
export const NotificationSettingsChange = Type.Object(
  {
    environments: Type.Optional(
      Type.Array(Type.Object(choice), {
        maxItems: LIMITS.notifiedEnvironments,
        description: 'All of them: an environment that is not here is told no more',
      }),
    ),
    quietHours: Type.Optional(Type.Union([QuietHours, Type.Null()])),
  },
  {
    $id: 'NotificationSettingsChange',
    examples: [
      {
        environments: [],
        quietHours: { fromMinute: 1_320, toMinute: 420, timeZone: 'Europe/Berlin', exceptCritical: true },
      },
    ],
  },
)
export type NotificationSettingsChange = Static<typeof NotificationSettingsChange>

export const NotificationText = Type.Object(
  {
    title: Type.String(),
    body: Type.String(),
    path: Type.String({ description: 'Page of the console' }),
  },
  { $id: 'NotificationText', description: 'What a notification says, as things are now' },
)
export type NotificationText = Static<typeof NotificationText>

const NotifiedBrowserParams = Type.Object({ browserId: id(36, 'Browser id') })

const NotificationParams = Type.Object({
  environmentId: uuid('Environment id'),
  event: Type.Enum([...NOTIFICATION_EVENTS]),
  subjectId: id(36, 'Id of the approval, alert or issue'),
})

const ownRoute = { tag: 'Notifications', scopes: [], access: 'signed-in', status: 200 } as const
const write = { method: 'POST', bodyBytes: LIMITS.operatorBodyBytes } as const

/** Routes for people only: tokens have no browsers. */
export const notificationRoutes = {
  readNotificationSettings: {
    ...ownRoute,
    method: 'GET',
    path: '/me/notifications',
    summary: "Read the caller's browsers, choices and quiet hours",
    reply: NotificationSettings,
    errors: ['forbidden'],
  },
  changeNotificationSettings: {
    ...ownRoute,
    ...write,
    path: '/me/notifications/change',
    audit: { action: 'notifications.change', target: 'operator' },
    summary: 'Change the notifications of the caller, and the quiet hours',
    body: NotificationSettingsChange,
    reply: NotificationSettings,
    errors: ['forbidden'],
  },
  addNotifiedBrowser: {
    ...ownRoute,
    ...write,
    path: '/me/browsers',
    audit: { action: 'browser.add', target: 'browser' },
    summary: "Tell the caller's notifications to a browser; it leaves with the session",
    body: NewNotifiedBrowser,
    reply: NotifiedBrowser,
    errors: ['forbidden', 'not_found', 'conflict'],
  },
  removeNotifiedBrowser: {
    ...ownRoute,
    method: 'POST',
    path: '/me/browsers/{browserId}/remove',
    audit: { action: 'browser.remove', target: 'browser' },
    summary: "Stop the caller's notifications in a browser",
    params: NotifiedBrowserParams,
    reply: NotifiedBrowser,
    errors: ['forbidden', 'not_found'],
  },
  readNotification: {
    ...ownRoute,
    method: 'GET',
    access: 'viewer',
    path: '/environments/{environmentId}/notifications/{event}/{subjectId}',
    summary: 'Read what a notification says',
    params: NotificationParams,
    reply: NotificationText,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
