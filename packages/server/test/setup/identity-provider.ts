/** A small OpenID Connect provider on loopback: codes with PKCE, signed id tokens, and the claims that a test sets. */
import { createHash, createSign, generateKeyPairSync, randomUUID } from 'node:crypto'
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
  /** The fault of the next id tokens. */
  fault: 'none' | 'nonce' | 'audience' | 'issuer' | 'signature' | 'expired'
  close(): Promise<void>
}

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
        issuer,
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
      response.writeHead(302, { location: back.href }).end()
      return
    }
    if (url.pathname === '/token') return exchange(request, send)
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
    send(200, { access_token: randomUUID(), token_type: 'Bearer', expires_in: 300, id_token: idToken(grant) })
  }

  function idToken({ claims, nonce }: Grant): string {
    const { fault } = provider
    const now = Math.floor(Date.now() / 1000)
    const body = {
      iss: fault === 'issuer' ? 'http://elsewhere' : issuer,
      aud: fault === 'audience' ? 'somebody else' : provider.clientId,
      iat: now - 60,
      exp: fault === 'expired' ? now - 30 : now + 300,
      nonce: fault === 'nonce' ? 'another' : nonce,
      ...claims,
    }
    const head = `${base64url({ alg: 'RS256', kid: 'one', typ: 'JWT' })}.${base64url(body)}`
    const { privateKey } = fault === 'signature' ? strangers : keys
    return `${head}.${createSign('RSA-SHA256').update(head).sign(privateKey).toString('base64url')}`
  }

  return provider
}
