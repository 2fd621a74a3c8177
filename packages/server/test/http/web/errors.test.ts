import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import net from 'node:net'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { ERRORS, Problem, REJECTIONS, WARNINGS } from '@tacho/contract/web/errors.ts'
import { Compile } from 'typebox/compile'
import { event, startService, type Service } from '../../setup/service.ts'

const problem = Compile(Problem)
let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

/** Sends raw bytes and reads the whole answer. */
function raw(text: string, to = service): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(Number(new URL(to.url).port), '127.0.0.1', () => socket.write(text))
    let answer = ''
    socket.setEncoding('utf8')
    socket.on('data', (chunk: string) => (answer += chunk))
    socket.on('end', () => resolve(answer))
    socket.on('error', reject)
  })
}

const head = (path: string) =>
  `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-API-Key: ${service.apiKey}\r\n\r\n`

test('every error is a problem document, whatever its source', async () => {
  const answers = await Promise.all([
    service.call('/nowhere'),
    service.call('/openapi/v1/nowhere'),
    service.call('/openapi/v1/runs'),
    service.api('/runs?limit=0'),
    service.api('/runs?cursor=x'),
    service.api('/runs/unknown'),
    service.api('/events/batch', { method: 'DELETE' }),
    service.api('/events/batch', { body: 'x', headers: { 'content-type': 'text/plain' } }),
    service.api('/events/batch', { body: 'x', headers: { 'content-type': 'no type at all' } }),
    service.api('/events/batch', { body: 'x'.repeat(1_048_577) }),
  ])
  for (const { status, headers, body } of answers) {
    assert.match(headers.get('content-type') ?? '', /^application\/problem\+json/)
    assert.ok(problem.Check(body), JSON.stringify(body))
    assert.equal(ERRORS[body.code].status, status)
    assert.equal(headers.get('x-request-id'), body.requestId)
  }
})

test('another method on a known address is answered 405 with the methods that it takes', async () => {
  const cases: [string, string, string][] = [
    ['DELETE', '/openapi/v1/events/batch', 'POST'],
    ['POST', '/openapi/v1/runs/x%2Fy/events', 'GET, HEAD'],
    ['OPTIONS', '/openapi/v1/runs?limit=1', 'GET, HEAD'],
    ['PUT', '/operator/v1/workspaces', 'GET, HEAD, POST'],
    ['POST', '/healthz', 'GET, HEAD'],
    // No route has the method QUERY. The framework itself would refuse such a request for its missing content type.
    ['QUERY', '/openapi/v1/runs', 'GET, HEAD'],
  ]
  for (const [method, path, allow] of cases) {
    const answer = await raw(head(path).replace('GET', method))
    assert.match(answer, /^HTTP\/1\.1 405 Method Not Allowed\r\n/, `${method} ${path}: ${answer.slice(0, 80)}`)
    assert.equal(/^allow: (.*)\r$/im.exec(answer)?.[1], allow, path)
    assert.ok(answer.includes('"code":"method_not_allowed"'), path)
  }
  for (const path of [
    '/openapi/v1/runs/',
    '/openapi/v1/runs//events',
    '/openapi/v1/constructor',
    '/assets/nothing.js',
  ]) {
    assert.match(await raw(head(path).replace('GET', 'PUT')), /^HTTP\/1\.1 404 /, path)
  }
})

test('bad percent-encoding, an over-long path and broken HTTP are problem documents too', async () => {
  const cases: [string, number][] = [
    [head('/openapi/v1/runs/%zz'), 400],
    [head('/openapi/v1/runs/%ff'), 400],
    [head(`/openapi/v1/runs/${'x'.repeat(5000)}`), 414],
    [head(`/openapi/v1/runs?x=${'x'.repeat(20_000)}`), 431],
    ['NONSENSE\r\n\r\n', 400],
    [`GET /openapi/v1/runs HTTP/1.1\r\nConnection: close\r\n\r\n`, 400],
    [head('/openapi/v1/runs/unknown').replace('\r\n', '\r\nExpect: the unexpected\r\n'), 404],
  ]
  for (const [request, status] of cases) {
    const answer = await raw(request)
    assert.ok(answer.startsWith(`HTTP/1.1 ${status} `), `${request.slice(0, 40)} -> ${answer.slice(0, 60)}`)
    const body: unknown = JSON.parse(answer.slice(answer.indexOf('{'), answer.lastIndexOf('}') + 1))
    assert.ok(problem.Check(body))
    assert.equal(body.status, status)
    assert.equal(/^x-request-id: (\S+)\r$/im.exec(answer)?.[1], body.requestId)
  }
})

test('an invalid cursor is named like any other field', async () => {
  const { body } = await service.api<Problem>('/runs?cursor=x')
  assert.deepEqual(body.errors, [{ path: '/cursor', message: 'is damaged or belongs to another list' }])
  assert.equal(body.detail, 'Start again without cursor')
})

test('the detail names every invalid parameter with its limits, and calls a header a header', async () => {
  const detailOf = async (path: string) => (await service.api<Problem>(path)).body.detail
  const limit = 'limit must be a whole number between 1 and 100'
  for (const value of ['0', '101', '99999', 'text', '1.5']) assert.equal(await detailOf(`/runs?limit=${value}`), limit)
  assert.equal(await detailOf('/runs?limit=0&cursor='), `${limit}; cursor is empty`)
  const id = '00000000-0000-4000-8000-000000000000'
  assert.equal(await detailOf(`/firewall-approvals/${id}`), 'The header X-Service-Client-ID is missing')
})

test('the error of a body that is not JSON gives line and column', async () => {
  const { body } = await service.api<Problem>('/issue-records', { body: '{\n  "secret": nope\n}' })
  assert.deepEqual([body.code, body.detail], ['invalid_json', 'The body is not valid JSON at line 2, column 13'])
})

test('a request that arrives too slowly is rejected soon after the limit, with any timing', async (t) => {
  const hasty = await startService({ requestTimeout: '1s' })
  t.after(() => hasty.close())
  const start = Date.now()
  const late = `POST /openapi/v1/events/batch HTTP/1.1\r\nHost: x\r\nX-API-Key: ${hasty.apiKey}\r\n`
  const answers = await Promise.all([
    raw(late, hasty),
    raw(`${late}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n[`, hasty),
  ])
  for (const answer of answers) {
    assert.ok(answer.startsWith('HTTP/1.1 408 '), answer)
    assert.match(answer, /^retry-after: 1\r$/im)
  }
  assert.ok(Date.now() - start < 15_000)
})

test('no error shows a stack, a statement, a key or the body', async () => {
  const secret = 'SECRET-IN-THE-BODY'
  const answers = await Promise.all([
    service.record(`[{"a":"${secret}"`),
    service.record(`{"a":"${secret}"}`),
    service.api(`/runs?cursor=${secret}`),
    service.call('/openapi/v1/runs', { headers: { 'x-api-key': `${service.apiKey}x` } }),
  ])
  for (const { text } of answers) {
    for (const leak of [secret, service.apiKey, '    at ', 'SELECT', 'node_modules'])
      assert.ok(!text.includes(leak), leak)
  }
})

test('a body must be JSON in UTF-8, in one known encoding', async () => {
  const body = JSON.stringify([event()])
  const status = async (sent: unknown, headers: Record<string, string>) =>
    (await service.api('/events/batch', { body: sent, headers })).status
  assert.equal(await status(body, { 'content-type': 'application/json; charset=UTF-8' }), 200)
  assert.equal(await status(body, { 'content-type': 'APPLICATION/JSON' }), 200)
  assert.equal(await status(body, { 'content-type': 'application/json; charset=latin1' }), 415)
  assert.equal(await status(body, { 'content-type': 'application/jsonx' }), 415)
  assert.equal(await status(Buffer.from([0x5b, 0xff, 0x5d]), {}), 400)
  assert.equal(await status(Buffer.from(`\ufeff${body}`), {}), 200)
  assert.equal(await status(gzipSync(body), { 'content-encoding': 'GZIP' }), 200)
  assert.equal(await status(gzipSync(body), { 'content-encoding': 'gzip, gzip' }), 415)
  assert.equal(await status(body, { 'content-encoding': 'compress' }), 415)
  assert.equal(await status(body, { 'content-encoding': 'gzip' }), 400)
  assert.equal(await status(gzipSync(body).subarray(0, -4), { 'content-encoding': 'gzip' }), 400)
})

test('an encoding named like a member of Object.prototype is unknown, with or without a key', async () => {
  for (const name of Object.getOwnPropertyNames(Object.prototype)) {
    const headers = { 'content-encoding': name }
    assert.equal((await service.api('/events/batch', { body: [event()], headers })).status, 415, name)
    assert.equal((await service.call('/operator/v1/sign-in', { body: {}, headers })).status, 415, name)
  }
  assert.equal((await service.call('/healthz')).status, 200)
})

test('a decompression bomb is stopped at the limit', async () => {
  const bomb = gzipSync(Buffer.alloc(300 * 1_048_576, 0x20))
  const answer = await service.api('/events/batch', { body: bomb, headers: { 'content-encoding': 'gzip' } })
  assert.equal(answer.status, 413)
})

test('a body of unknown length is bounded as it arrives', async () => {
  const chunk = 'x'.repeat(65_536)
  const chunks = `10000\r\n${chunk}\r\n`.repeat(20)
  const request =
    `POST /openapi/v1/events/batch HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-API-Key: ${service.apiKey}\r\n` +
    `Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`
  assert.ok((await raw(request)).startsWith('HTTP/1.1 413 '))
})

test('the page about errors lists every code, and no other', () => {
  const page = readFileSync(new URL('../../../../../docs/errors.md', import.meta.url), 'utf8')
  const listed = [...page.matchAll(/^\| `(\w+)` \|/gm)].map(([, code = '']) => code).sort()
  assert.deepEqual(listed, [ERRORS, REJECTIONS, WARNINGS].flatMap(Object.keys).sort())
})
