/** A person with a browser: keeps cookies, and sends the page's origin. */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import type { Role } from '@tacho/contract/web/route.ts'
import { OPERATOR_PREFIX } from '@tacho/contract/web/operator-routes.ts'
import type { Answer, Service } from '../../setup/service.ts'
import { replyOf } from '../web/contract.ts'

export const PASSWORD = 'correct horse battery staple'

export interface Browser {
  cookies: Map<string, string>
  get<Body = unknown>(path: string): Promise<Answer<Body>>
  post<Body = unknown>(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer<Body>>
  /** Requests a full address. Redirects are not followed. */
  open(address: string, init?: RequestInit): Promise<Response>
}

export function openBrowser(service: Service): Browser {
  const cookies = new Map<string, string>()

  async function open(address: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers)
    const sent = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    if (sent !== '' && address.startsWith(service.url)) headers.set('cookie', sent)
    const response = await fetch(address, { ...init, headers, redirect: 'manual' })
    for (const line of response.headers.getSetCookie()) {
      const [pair = ''] = line.split(';', 1)
      const at = pair.indexOf('=')
      if (/max-age=0/i.test(line)) cookies.delete(pair.slice(0, at))
      else cookies.set(pair.slice(0, at), pair.slice(at + 1))
    }
    return response
  }

  async function call<Body>(path: string, init: RequestInit): Promise<Answer<Body>> {
    const response = await open(service.url + OPERATOR_PREFIX + path, init)
    const text = await response.text()
    const body = (text === '' ? null : JSON.parse(text)) as Body
    return { status: response.status, headers: response.headers, text, body }
  }

  return {
    cookies,
    open,
    get: (path) => call(path, {}),
    post: (path, body, headers = { origin: service.url }) =>
      call(path, {
        method: 'POST',
        headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
  }
}

/** The secret part of the one-time link of a new invitation. */
export async function invite(service: Service, email: string, role: Role, workspaceId: string | null): Promise<string> {
  const path = workspaceId === null ? '/invitations' : `/workspaces/${workspaceId}/invitations`
  const answer = await service.operator<{ link: string }>(path, { body: { email, role } })
  assert.equal(answer.status, 201, answer.text)
  return answer.body.link.split('#')[1] ?? ''
}

/** A person who was invited, has accepted and signed in. */
export async function newPerson(
  service: Service,
  email: string,
  role: Role,
  workspaceId: string | null,
): Promise<Browser> {
  const browser = openBrowser(service)
  const token = await invite(service, email, role, workspaceId)
  replyOf('acceptInvitation', await browser.post('/invitations/accept', { token, password: PASSWORD }))
  await signIn(browser, email)
  return browser
}

export async function signIn(browser: Browser, email: string, password = PASSWORD): Promise<void> {
  assert.deepEqual(replyOf('signIn', await browser.post('/sign-in', { email, password })), { status: 'signed_in' })
}

/** The code that an authenticator shows at `at` for an otpauth address (RFC 6238). */
export function codeOf(uri: string, at = Date.now()): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
  const bits = Array.from(new URL(uri).searchParams.get('secret') ?? '')
    .map((letter) => alphabet.indexOf(letter).toString(2).padStart(5, '0'))
    .join('')
  const key = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)))
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(Math.floor(at / 30_000)))
  const digest = createHmac('sha1', key).update(counter).digest()
  const offset = (digest.at(-1) ?? 0) & 0xf
  return String((digest.readUInt32BE(offset) & 0x7fffffff) % 1_000_000).padStart(6, '0')
}
