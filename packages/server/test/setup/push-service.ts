/**
 * A push service with browsers of its own. It decrypts what arrives (RFC 8291, aes128gcm of RFC 8188) and checks who sent it
 * (VAPID, RFC 8292), with code that shares nothing with the library that encrypts.
 */
import assert from 'node:assert/strict'
import { createDecipheriv, createECDH, createPublicKey, hkdfSync, randomBytes, verify, type ECDH } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { NewNotifiedBrowser, PushedNotification } from '@tacho/contract/messages/notification.ts'

export interface Push {
  pushed: PushedNotification
  at: number
  ttl: number
  urgency: string | undefined
  topic: string | undefined
}

export interface PushBrowser {
  /** The result of the browser's `PushSubscription.toJSON()`. */
  subscription: Pick<NewNotifiedBrowser, 'endpoint' | 'keys'>
  pushes: Push[]
  /** The attempts, also those that were refused. */
  attempts: number
}

export interface PushService {
  newBrowser(): PushBrowser
  /** Answers with this status from now on; 201: accepts messages. */
  answerWith(browser: PushBrowser, status: number): void
  close(): Promise<void>
}

/** `publicKey`: the key of the server whose messages are accepted. */
export async function startPushService(publicKey: () => string): Promise<PushService> {
  const browsers = new Map<string, PushBrowser & { pair: ECDH; secret: Buffer; status: number }>()
  const server = createServer((request, response) => {
    void buffer(request).then(async (body) => {
      const browser = browsers.get(request.url ?? '')
      if (!browser) return response.writeHead(404).end()
      browser.attempts++
      if (browser.status !== 201) return response.writeHead(browser.status).end()
      try {
        checkSender(request, origin, publicKey())
        const text = decryptPush(body, browser.pair, browser.secret)
        browser.pushes.push({
          pushed: JSON.parse(text) as PushedNotification,
          at: Date.now(),
          ttl: Number(request.headers.ttl),
          urgency: request.headers.urgency as string | undefined,
          topic: request.headers.topic as string | undefined,
        })
        return response.writeHead(201).end()
      } catch (error) {
        // The test that waits for this message then fails.
        console.error(error)
        return response.writeHead(403).end()
      }
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  return {
    newBrowser() {
      const pair = createECDH('prime256v1')
      const secret = randomBytes(16)
      const path = `/push/${randomBytes(12).toString('hex')}`
      const keys = { p256dh: pair.generateKeys('base64url'), auth: secret.toString('base64url') }
      const subscription = { endpoint: origin + path, keys }
      const browser = { subscription, pushes: [], attempts: 0, pair, secret, status: 201 }
      browsers.set(path, browser)
      return browser
    },
    answerWith({ subscription }, status) {
      const browser = browsers.get(new URL(subscription.endpoint).pathname)
      assert.ok(browser)
      browser.status = status
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function checkSender({ headers }: IncomingMessage, origin: string, publicKey: string): void {
  assert.equal(headers['content-encoding'], 'aes128gcm')
  const [, token = '', key = ''] = /^vapid t=([\w.-]+), ?k=([\w-]+)$/.exec(headers.authorization ?? '') ?? []
  assert.equal(key, publicKey)
  const point = Buffer.from(key, 'base64url')
  const jwk = { kty: 'EC', crv: 'P-256', x: half(point, 1), y: half(point, 33) }
  const [head = '', claims = '', signature = ''] = token.split('.')
  const isSigned = verify(
    'sha256',
    Buffer.from(`${head}.${claims}`),
    { key: createPublicKey({ key: jwk, format: 'jwk' }), dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature, 'base64url'),
  )
  assert.ok(isSigned, 'the token has a valid signature')
  const { alg } = jsonOf(head) as { alg: string }
  assert.equal(alg, 'ES256')
  const { aud, exp, sub } = jsonOf(claims) as { aud: string; exp: number; sub: string }
  const now = Date.now() / 1_000
  assert.equal(aud, origin)
  assert.ok(exp > now && exp <= now + 24 * 60 * 60, 'the token expires within a day')
  assert.match(sub, /^(mailto:.+@|https:\/\/)/)
}

const half = (point: Buffer, at: number) => point.subarray(at, at + 32).toString('base64url')
const jsonOf = (part: string): unknown => JSON.parse(Buffer.from(part, 'base64url').toString())

export function decryptPush(body: Buffer, pair: ECDH, secret: Buffer): string {
  const salt = body.subarray(0, 16)
  const keyLength = body.readUInt8(20)
  const senderKey = body.subarray(21, 21 + keyLength)
  const record = body.subarray(21 + keyLength)
  assert.ok(record.length <= body.readUInt32BE(16), 'one record')
  const info = Buffer.concat([Buffer.from('WebPush: info\0'), pair.getPublicKey(), senderKey])
  const input = hkdfSync('sha256', pair.computeSecret(senderKey), secret, info, 32)
  const derive = (name: string, length: number) =>
    Buffer.from(hkdfSync('sha256', Buffer.from(input), salt, `Content-Encoding: ${name}\0`, length))
  const decipher = createDecipheriv('aes-128-gcm', derive('aes128gcm', 16), derive('nonce', 12))
  decipher.setAuthTag(record.subarray(-16))
  const padded = Buffer.concat([decipher.update(record.subarray(0, -16)), decipher.final()])
  const end = padded.lastIndexOf(2)
  assert.ok(end >= 0 && padded.subarray(end + 1).every((byte) => byte === 0), 'the last record is delimited by 2')
  return padded.subarray(0, end).toString()
}
