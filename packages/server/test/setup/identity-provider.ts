/** A small OpenID Connect provider on loopback: codes with PKCE, signed id tokens, and the claims that a test sets. */
import { createHash, createHmac, createSign, generateKeyPairSync, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export interface IdentityProvider {
  issuer: string
  clientId: string
  clientSecret: string
  /** The person who signs in next. */
  person: Record<string, unknown>
  /** The fault in the next answers. */
  fault: Fault
  close(): Promise<void>
}

export const TOKEN_FAULTS = [
  'nonce',
  'no nonce',
  'audience',
  'no audience',
  'several audiences',
  'another party',
  'issuer',
  'no issuer',
  'signature',
  'unknown key',
  'no signature',
  'signed with the client secret',
  'expired',
  'no expiry',
  'no issue time',
  'not yet valid',
  'issued in the future',
  'no subject',
  'empty subject',
  'no id token',
  'opaque id token',
  'userinfo of another person',
] as const
export type Fault =
  | 'none'
  | 'groups only in userinfo'
  | 'discovery of another issuer'
  | 'answer of another issuer'
  | (typeof TOKEN_FAULTS)[number]

interface Grant {
  claims: Record<string, unknown>
  nonce: string | null
  challenge: string
  redirectUri: string
}

const base64url = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

export async function startIdentityProvider(): Promise<IdentityProvider> {
  const keys = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const strangers = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const grants = new Map<string, Grant>()
  const server = createServer((request, response) => void answer(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const provider: IdentityProvider = {
    issuer,
    clientId: 'tacho',
    clientSecret: 'a secret & more',
    person: {},
    fault: 'none',
    async close() {
      server.close()
      server.closeAllConnections()
    },
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', issuer)
    const send = (status: number, body: object) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }
    if (url.pathname === '/.well-known/openid-configuration') {
      return send(200, {
        issuer: provider.fault === 'discovery of another issuer' ? 'https://id.example.com' : issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        userinfo_endpoint: `${issuer}/userinfo`,
        jwks_uri: `${issuer}/jwks`,
        id_token_signing_alg_values_supported: ['RS256'],
      })
    }
    if (url.pathname === '/jwks') {
      return send(200, {
        keys: [{ ...keys.publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'RS256', use: 'sig' }],
      })
    }
    if (url.pathname === '/authorize') {
      const query = url.searchParams
      const code = randomUUID()
      const redirectUri = query.get('redirect_uri') ?? ''
      const challenge = query.get('code_challenge') ?? ''
      grants.set(code, { claims: { ...provider.person }, nonce: query.get('nonce'), challenge, redirectUri })
      const back = new URL(redirectUri)
      back.searchParams.set('code', code)
      back.searchParams.set('state', query.get('state') ?? '')
      if (provider.fault === 'answer of another issuer') back.searchParams.set('iss', 'https://id.example.com')
      response.writeHead(302, { location: back.href }).end()
      return
    }
    if (url.pathname === '/token') return exchange(request, send)
    if (url.pathname === '/userinfo') {
      const isOther = provider.fault === 'userinfo of another person'
      return send(200, { ...provider.person, ...(isOther && { sub: 'another person' }) })
    }
    send(404, {})
  }

  async function exchange(request: IncomingMessage, send: (status: number, body: object) => void): Promise<void> {
    const form = new URLSearchParams(await text(request))
    const code = form.get('code') ?? ''
    const grant = grants.get(code)
    grants.delete(code)
    const verified = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    const basic = Buffer.from(request.headers.authorization?.replace('Basic ', '') ?? '', 'base64').toString()
    const [, basicSecret] = basic.split(':').map((part) => decodeURIComponent(part))
    const secret = form.get('client_secret') ?? basicSecret
    if (!grant || secret !== provider.clientSecret || verified !== grant.challenge) {
      return send(400, { error: 'invalid_grant' })
    }
    if (form.get('redirect_uri') !== grant.redirectUri) return send(400, { error: 'invalid_grant' })
    const token = { 'no id token': undefined, 'opaque id token': randomUUID() } as Record<string, string | undefined>
    const id_token = Object.hasOwn(token, provider.fault) ? token[provider.fault] : idToken(grant)
    send(200, { access_token: randomUUID(), token_type: 'Bearer', expires_in: 300, id_token })
  }

  function idToken({ claims, nonce }: Grant): string {
    const { fault, clientId } = provider
    const now = Math.floor(Date.now() / 1000)
    const right = { iss: issuer, aud: clientId, iat: now - 60, exp: now + 300, nonce, ...claims }
    const lies: Partial<Record<Fault, object>> = {
      nonce: { nonce: 'another' },
      'no nonce': { nonce: undefined },
      audience: { aud: 'somebody else' },
      'no audience': { aud: undefined },
      'several audiences': { aud: [clientId, 'somebody else'] },
      'another party': { azp: 'somebody else' },
      issuer: { iss: 'http://elsewhere' },
      'no issuer': { iss: undefined },
      expired: { exp: now - 31 },
      'no expiry': { exp: undefined },
      'no issue time': { iat: undefined },
      'issued in the future': { iat: now + 90, exp: now + 300 },
      'not yet valid': { nbf: now + 60 },
      'no subject': { sub: undefined },
      'empty subject': { sub: '' },
      'groups only in userinfo': { groups: undefined },
      // Without the claim in the id token, the server asks the userinfo endpoint.
      'userinfo of another person': { email: undefined },
    }
    const body = base64url({ ...right, ...lies[fault] })
    const signed = (header: object, sign: (text: string) => Buffer) => {
      const text = `${base64url({ typ: 'JWT', ...header })}.${body}`
      return `${text}.${sign(text).toString('base64url')}`
    }
    if (fault === 'no signature') return signed({ alg: 'none' }, () => Buffer.alloc(0))
    if (fault === 'signed with the client secret') {
      const { clientSecret } = provider
      return signed({ alg: 'HS256' }, (text) => createHmac('sha256', clientSecret).update(text).digest())
    }
    const isForged = fault === 'signature' || fault === 'unknown key'
    const { privateKey } = isForged ? strangers : keys
    const kid = fault === 'unknown key' ? 'two' : 'one'
    return signed({ alg: 'RS256', kid }, (text) => createSign('RSA-SHA256').update(text).sign(privateKey))
  }

  return provider
}
