import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { text as readText } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { OPERATOR_PREFIX, OPERATOR_ROUTES } from '@tacho/contract/web/operator-routes.ts'
import type { Route } from '@tacho/contract/web/route.ts'
import { PUBLIC_PREFIX, ROUTES } from '@tacho/contract/web/routes.ts'
import { startService, type Service } from '../../setup/service.ts'
import { UNKNOWN_ID } from './contract.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

const cachingOf = (headers: Headers) => [headers.get('cache-control'), headers.get('x-content-type-options')]
const KEPT_NOWHERE = ['no-store', 'nosniff']

test('every reply of both APIs forbids caching and type sniffing, with a credential or without', async () => {
  const tables: [string, Record<string, Route>][] = [
    [PUBLIC_PREFIX, ROUTES],
    [OPERATOR_PREFIX, OPERATOR_ROUTES],
  ]
  const credentials = { 'x-api-key': service.apiKey, authorization: `Bearer ${service.operatorToken}` }
  for (const [prefix, table] of tables) {
    for (const [name, { method, path, tagged }] of Object.entries(table)) {
      const address = path.replaceAll(/\{(\w+)\}/g, (_, param: string) =>
        param === 'environmentId' ? service.environmentId : UNKNOWN_ID,
      )
      for (const headers of [{}, credentials]) {
        const reply = await fetch(service.url + prefix + address, { method, headers })
        await reply.body?.cancel()
        const wanted = tagged && reply.ok ? ['private, no-cache', 'nosniff'] : KEPT_NOWHERE
        assert.deepEqual(cachingOf(reply.headers), wanted, `${name} ${reply.status}`)
      }
    }
  }
})

test('an unchanged configuration is answered 304 with the same headers', async () => {
  const first = await service.api('/runtime-config')
  const headers = { 'if-none-match': first.headers.get('etag') ?? '' }
  const second = await service.api('/runtime-config', { headers })
  assert.equal(second.status, 304)
  assert.deepEqual(cachingOf(second.headers), ['private, no-cache', 'nosniff'])
  assert.deepEqual(cachingOf(second.headers), cachingOf(first.headers))
})

test('other pages have the headers too; only files that are the same for all users may be cached', async () => {
  for (const path of ['/healthz', '/readyz', '/metrics', '/docs', '/nowhere', '/openapi/v1/runs/%zz']) {
    assert.deepEqual(cachingOf((await service.call(path)).headers), KEPT_NOWHERE, path)
  }
  const [caching, sniffing] = cachingOf((await service.call('/docs/assets/swagger-ui.css')).headers)
  assert.match(caching ?? '', /public, max-age=\d+/)
  assert.equal(sniffing, 'nosniff')
})

/** Sends raw bytes and reads the whole answer. */
async function raw(request: string): Promise<string> {
  const socket = net.connect(Number(new URL(service.url).port), '127.0.0.1')
  await once(socket, 'connect')
  socket.write(request)
  return readText(socket)
}

test('an answer to broken HTTP has the headers too', async () => {
  const answer = await raw('NONSENSE\r\n\r\n')
  assert.match(answer, /^cache-control: no-store\r$/m)
  assert.match(answer, /^x-content-type-options: nosniff\r$/m)
})

test('a request may have one Authorization header', async () => {
  for (const path of ['/operator/v1/me', '/openapi/v1/runs', '/healthz']) {
    const get = (authorizations: string) =>
      raw(
        `GET ${path} HTTP/1.1\r\nHost: a\r\nX-API-Key: ${service.apiKey}\r\n${authorizations}Connection: close\r\n\r\n`,
      )
    const good = `Authorization: Bearer ${service.operatorToken}\r\n`
    assert.match(await get(good), /^HTTP\/1\.1 200 /, path)
    for (const second of [good, 'aUTHORIZATION: Bearer x\r\n']) {
      assert.match(await get(good + second), /^HTTP\/1\.1 400 /, path)
      assert.match(await get(second + good), /^HTTP\/1\.1 400 /, path)
    }
  }
})

test('a request must have one Host header', async () => {
  const get = (hosts: string) => raw(`GET /healthz HTTP/1.1\r\n${hosts}Connection: close\r\n\r\n`)
  assert.match(await get('Host: a\r\n'), /^HTTP\/1\.1 200 /)
  for (const hosts of ['', 'Host: a\r\nHost: b\r\n', 'Host: a\r\nhOST: a\r\n']) {
    assert.match(await get(hosts), /^HTTP\/1\.1 400 /, hosts)
  }
})
