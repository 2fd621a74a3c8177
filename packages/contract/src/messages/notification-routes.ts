import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from '../web/access.ts'
import {
  NewNotifiedBrowser,
  NotificationParams,
  NotificationSettings,
  NotificationSettingsChange,
  NotificationText,
  NotifiedBrowser,
  NotifiedBrowserParams,
} from './notification.ts'

const own = { tag: 'Notifications', scopes: [], access: 'signed-in', status: 200 } as const
const write = { method: 'POST', bodyBytes: LIMITS.operatorBodyBytes } as const

/** For people only: tokens have no browsers. */
export const notificationRoutes = {
  readNotificationSettings: {
    ...own,
    method: 'GET',
    path: '/me/notifications',
    summary: "Read the caller's browsers, choices and quiet hours",
    reply: NotificationSettings,
    errors: ['forbidden'],
  },
  changeNotificationSettings: {
    ...own,
    ...write,
    path: '/me/notifications/change',
    audit: { action: 'notifications.change', target: 'operator' },
    summary: 'Change what the caller is told, and the quiet hours',
    body: NotificationSettingsChange,
    reply: NotificationSettings,
    errors: ['forbidden'],
  },
  addNotifiedBrowser: {
    ...own,
    ...write,
    path: '/me/browsers',
    audit: { action: 'browser.add', target: 'browser' },
    summary: "Tell the caller's notifications to a browser; it leaves with the session",
    body: NewNotifiedBrowser,
    reply: NotifiedBrowser,
    errors: ['forbidden', 'not_found', 'conflict'],
  },
  removeNotifiedBrowser: {
    ...own,
    method: 'POST',
    path: '/me/browsers/{browserId}/remove',
    audit: { action: 'browser.remove', target: 'browser' },
    summary: "Stop the caller's notifications in a browser",
    params: NotifiedBrowserParams,
    reply: NotifiedBrowser,
    errors: ['forbidden', 'not_found'],
  },
  readNotification: {
    ...own,
    method: 'GET',
    access: 'viewer',
    path: '/environments/{environmentId}/notifications/{event}/{subjectId}',
    summary: 'Read what a notification says',
    params: NotificationParams,
    reply: NotificationText,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
