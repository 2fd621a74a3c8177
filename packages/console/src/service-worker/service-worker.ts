/**
 * Shows notifications, and opens their pages. A message contains only ids: the text is read with the person's session.
 * Nothing is cached for offline use, so the console is never older than its server.
 */
import type { NotificationText, PushedNotification } from '@tacho/contract/messages/notification.ts'

declare const self: ServiceWorkerGlobalScope

const TEXT_MS = 8_000
/** The console's address, which may have a path. */
const HOME = new URL(self.registration.scope)

/** Texts without content, because anybody who sees the screen can read them. */
const GENERAL: Record<PushedNotification['event'], { title: string; page: string }> = {
  'approval.requested': { title: 'An approval is waiting', page: 'approvals' },
  'alert.firing': { title: 'An alert fires', page: 'alerts' },
  'budget.reached': { title: 'A step of a budget is reached', page: 'alerts' },
  'issue.opened': { title: 'There is a new issue', page: 'issues' },
  'issue.regressed': { title: 'An issue came back', page: 'issues' },
}

self.addEventListener('install', () => void self.skipWaiting())
self.addEventListener('push', (event) => event.waitUntil(show(event.data)))
self.addEventListener('notificationclick', (event) => {
  event.notification.close()
  event.waitUntil(openPage(String(event.notification.data)))
})

async function show(data: PushMessageData | null): Promise<void> {
  const pushed = pushedOf(data)
  const { title, body, path } = (pushed && (await read(pushed))) ?? general(pushed)
  const tag = pushed ? `${pushed.environmentId} ${pushed.event}` : 'tacho'
  // With the same tag, a newer notification replaces the previous one.
  const options = {
    body,
    tag,
    renotify: true,
    icon: new URL('icons/app-192.png', HOME).href,
    badge: new URL('icons/badge-96.png', HOME).href,
    data: path,
  }
  await self.registration.showNotification(title, options)
}

function pushedOf(data: PushMessageData | null): PushedNotification | null {
  try {
    const pushed = data?.json() as PushedNotification
    return Object.hasOwn(GENERAL, pushed.event) ? pushed : null
  } catch {
    return null
  }
}

async function read({ environmentId, event, id }: PushedNotification): Promise<NotificationText | null> {
  const ids = [environmentId, 'notifications', event, id].map(encodeURIComponent)
  try {
    const reply = await fetch(new URL(`operator/v1/environments/${ids.join('/')}`, HOME), {
      signal: AbortSignal.timeout(TEXT_MS),
    })
    return reply.ok ? ((await reply.json()) as NotificationText) : null
  } catch {
    return null
  }
}

function general(pushed: PushedNotification | null): NotificationText {
  if (pushed === null) return { title: 'Tacho needs you', body: '', path: '/' }
  const { title, page } = GENERAL[pushed.event]
  const ids = [pushed.workspaceId, pushed.environmentId].map(encodeURIComponent)
  const one = page === 'alerts' ? '' : `/${encodeURIComponent(pushed.id)}`
  return { title, body: 'Open Tacho to see it.', path: `/w/${ids.join('/')}/${page}${one}` }
}

async function openPage(path: string): Promise<void> {
  const url = new URL(`.${path}`, HOME)
  if (url.origin !== HOME.origin) return
  const windows = await self.clients.matchAll({ type: 'window', includeUncontrolled: true })
  const shown = windows.find((window) => window.url === url.href)
  await (shown ? shown.focus() : self.clients.openWindow(url.href))
}
