/** The subscription of this browser at its push service. */
import type { NewNotifiedBrowser, NotifiedBrowser } from '@tacho/contract/messages/notification.ts'
import { api, BASE, operator } from '../web/api.ts'

const WORKER = `${BASE}/service-worker.js`

/** Why this browser cannot show notifications, as a sentence; null if it can. */
export function whyNot(): string | null {
  if (!window.isSecureContext) return 'Browsers show notifications only of pages that are opened by https.'
  const isThere = 'serviceWorker' in navigator && 'PushManager' in window && 'Notification' in window
  if (!isThere && /iPhone|iPad/.test(navigator.userAgent)) {
    return 'On an iPhone or iPad, add Tacho to the Home Screen (Share, then Add to Home Screen), and open it there.'
  }
  if (!isThere) return 'This browser cannot show notifications.'
  if (Notification.permission !== 'denied') return null
  return 'This browser refuses notifications of this page. Allow them in the settings of the browser for this page.'
}

/** The entry of this browser, found by its address at the push service. */
export async function ownRow(browsers: readonly NotifiedBrowser[]): Promise<NotifiedBrowser | null> {
  const subscription = await current()
  if (!subscription) return null
  const bytes = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(subscription.endpoint))
  const hash = Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('')
  return browsers.find(({ endpoint }) => endpoint === hash) ?? null
}

/** Switches notifications on. Call it only after a click, because it asks for permission. */
export async function switchOn(publicKey: string): Promise<void> {
  if ((await Notification.requestPermission()) !== 'granted') throw new NotAllowed()
  await navigator.serviceWorker.register(WORKER)
  const { pushManager } = await navigator.serviceWorker.ready
  // An existing subscription may belong to another server's key or to another person.
  await (await pushManager.getSubscription())?.unsubscribe()
  const subscription = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytesOf(publicKey) })
  await api.addNotifiedBrowser({ body: bodyOf(subscription) })
}

export class NotAllowed extends Error {}

export async function switchOff(row: NotifiedBrowser): Promise<void> {
  await api.removeNotifiedBrowser({ params: { browserId: row.id } })
  await (await current())?.unsubscribe()
}

/** Renews the subscription. Does nothing if the person did not switch notifications on in this browser. */
export async function renew(): Promise<void> {
  const subscription = await current()
  if (subscription) await operator.addNotifiedBrowser({ body: { ...bodyOf(subscription), renew: true } })
}

async function current(): Promise<PushSubscription | null> {
  if (whyNot() !== null) return null
  const registration = await navigator.serviceWorker.getRegistration(WORKER)
  return (await registration?.pushManager.getSubscription()) ?? null
}

function bodyOf(subscription: PushSubscription): NewNotifiedBrowser {
  const { endpoint, keys } = subscription.toJSON()
  return { endpoint: endpoint ?? '', keys: { p256dh: keys?.['p256dh'] ?? '', auth: keys?.['auth'] ?? '' } }
}

/** Decodes the key to bytes, because some browsers do not accept it as text. */
function bytesOf(base64url: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64url.replaceAll('-', '+').replaceAll('_', '/'))
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0))
}
