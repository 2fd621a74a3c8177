import assert from 'node:assert/strict'
import { freePort } from '../../setup/free-port.ts'
import type { IdentityProvider } from '../../setup/identity-provider.ts'
import { startService, type Service } from '../../setup/service.ts'
import type { Browser } from './browser.ts'
import { replyOf } from '../web/contract.ts'

/** With an identity provider. */
export async function startAt(
  { issuer, clientId, clientSecret }: IdentityProvider,
  more: object = {},
  variables: Record<string, string> = {},
  start?: Parameters<typeof startService>[4],
): Promise<Service> {
  const port = String(await freePort())
  const flags = { port, host: '127.0.0.1', publicUrl: `http://127.0.0.1:${port}`, oidcIssuer: issuer }
  const oidc = { oidcClientId: clientId, oidcName: 'Acme ID', oidcDomain: 'example.org', oidcDomainRole: 'approver' }
  const secrets = { TACHO_OIDC_CLIENT_SECRET: clientSecret, ...variables }
  return startService({ ...flags, ...oidc, ...more }, Date.now, secrets, {}, start)
}

/** Goes to the identity provider and returns; resolves with the final page. */
export async function goThrough(browser: Browser): Promise<string> {
  const { url } = replyOf('startOidc', await browser.post('/sign-in/oidc'))
  const there = await browser.open(url)
  const back = await browser.open(there.headers.get('location') ?? '')
  assert.equal(back.status, 303)
  return back.headers.get('location') ?? ''
}

export const personAt = (sub: string, email: string, more: object = {}) => ({
  sub,
  email,
  email_verified: true,
  ...more,
})
