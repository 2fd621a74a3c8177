/** Encrypts messages for browsers and sends them to their push services, as webhooks are sent: to public addresses only. */
import { hash } from 'node:crypto'
import type { PushedNotification } from '@tacho/contract/messages/notification.ts'
import type { RequestDetails } from 'web-push'
import type { PushKeys } from '../../domain/messages/notification.ts'
import type { ToldBrowser } from '../../storage/messages/notifications.ts'
import type { Sent, WebhookSender } from './webhook-sender.ts'

export type PushSender = (
  browser: Pick<ToldBrowser, 'endpoint' | 'publicKey' | 'authSecret'>,
  pushed: PushedNotification,
  how: { seconds: number; isUrgent: boolean },
) => Promise<Sent>

export interface PushOptions {
  keys: PushKeys
  contact: () => string
  send: WebhookSender['send']
}

/** Most that push services take. */
const TOPIC_CHARS = 32

export function createPushSender({ keys, contact, send }: PushOptions): PushSender {
  return async ({ endpoint, publicKey: p256dh, authSecret: auth }, pushed, { seconds, isUrgent }) => {
    const { default: webPush } = await import('web-push')
    const { environmentId, event } = pushed
    let request: RequestDetails
    try {
      request = webPush.generateRequestDetails({ endpoint, keys: { p256dh, auth } }, JSON.stringify(pushed), {
        vapidDetails: { subject: contact(), ...keys },
        TTL: seconds,
        urgency: isUrgent ? 'high' : 'normal',
        contentEncoding: 'aes128gcm',
        // A newer message replaces one that a browser, which is off, has not got yet.
        topic: hash('sha256', `${environmentId} ${event}`).slice(0, TOPIC_CHARS),
      })
    } catch {
      // One browser must not hold back the others.
      return { ok: false, status: null, error: 'Nothing can be encrypted for this browser', isFinal: true }
    }
    const { 'Content-Length': _length, ...headers } = request.headers
    const texts = Object.entries(headers).map(([name, value]): [string, string] => [name.toLowerCase(), String(value)])
    return send({ url: endpoint, headers: Object.fromEntries(texts), body: request.body ?? Buffer.alloc(0) })
  }
}

export function contactOf(publicUrl: string, mailFrom: string | null): string {
  if (mailFrom !== null) return `mailto:${mailFrom}`
  return publicUrl.startsWith('https://') ? new URL(publicUrl).origin : 'mailto:operator@localhost'
}
