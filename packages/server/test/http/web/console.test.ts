/** How the console's files are served, from a folder of the test, so that the real console need not be built. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { fastify, type FastifyInstance } from 'fastify'
import { consoleRoutes, hasConsole, isNavigation, sendConsolePage } from '../../../src/http/web/console.ts'
import { everyReplyHooks } from '../../../src/http/web/every-reply.ts'
import { errorHandlers } from '../../../src/http/web/reply-error.ts'

const dist = mkdtempSync(path.join(os.tmpdir(), 'tacho-console-'))
const SCRIPT = 'console.log(1)'
let app: FastifyInstance

before(async () => {
  mkdirSync(path.join(dist, 'assets'))
  writeFileSync(path.join(dist, 'assets/index-1.js'), SCRIPT)
  writeFileSync(path.join(dist, 'assets/index-1.js.gz'), gzipSync(SCRIPT))
  writeFileSync(path.join(dist, 'index.html'), '<!doctype html><base href="/" /><title>Tacho</title>')
  app = fastify()
  everyReplyHooks(app, { draining: () => false })
  errorHandlers(app, (request, reply) => (isNavigation(request) ? sendConsolePage(request, reply, dist) : null))
  consoleRoutes(app, dist)
  app.get('/healthz', () => ({ status: 'ok' }))
  app.get('/operator/v1/me', () => ({ name: 'Ada' }))
  await app.ready()
})
after(async () => {
  await app.close()
  rmSync(dist, { recursive: true })
})

const navigation = { accept: 'text/html,*/*;q=0.8', 'sec-fetch-mode': 'navigate' }
const open = (url: string, headers: Record<string, string> = navigation) => app.inject({ url, headers })

test('every address that a person opens returns the page, which is never cached', async () => {
  for (const url of ['/', '/sign-in', '/invitation', '/w/default/production/runs/r%2F1?view=table', '/index.html']) {
    const { statusCode, headers, body } = await open(url)
    assert.deepEqual(
      [statusCode, headers['content-type'], headers['cache-control']],
      [200, 'text/html; charset=utf-8', 'no-cache'],
      url,
    )
    assert.match(body, /<title>Tacho/)
  }
})

test('the page finds its files from every address, also below a path that a proxy removes', async () => {
  for (const [url, base] of [
    ['/', './'],
    ['/sign-in?back=/w/a', './'],
    ['/w/default/production', './../../'],
    ['/w//', './../../'],
    ['/w/default/production/runs/r%2F1?view=a/b', './../../../../'],
  ] as const) {
    const { body } = await open(url)
    assert.ok(body.includes(`<base href="${base}" />`), `${url}: ${body}`)
    for (const before of ['', '/tacho', '/a/b']) {
      assert.equal(new URL(base, `https://host${before}${url}`).pathname, `${before}/`)
    }
  }
})

test('the page may load scripts and styles only from its own origin, and none inline', async () => {
  const policy = String((await open('/')).headers['content-security-policy'])
  const directives = new Map(policy.split('; ').map((text) => [text.split(' ')[0], text.split(' ').slice(1)]))
  assert.deepEqual(directives.get('default-src'), ["'none'"])
  for (const name of ['script-src', 'style-src', 'connect-src']) assert.deepEqual(directives.get(name), ["'self'"])
  for (const name of ['frame-ancestors', 'form-action']) assert.deepEqual(directives.get(name), ["'none'"])
  assert.doesNotMatch(policy, /unsafe|\*/)
})

test('assets are cached forever, and sent compressed', async () => {
  const plain = await open('/assets/index-1.js', {})
  assert.deepEqual([plain.statusCode, plain.body], [200, SCRIPT])
  assert.equal(plain.headers['cache-control'], 'public, max-age=31536000, immutable')
  const packed = await open('/assets/index-1.js', { 'accept-encoding': 'gzip' })
  assert.equal(packed.headers['content-encoding'], 'gzip')
})

test('a build that replaces the files is served at once, and files of the former one are not found', async () => {
  const other = mkdtempSync(path.join(os.tmpdir(), 'tacho-console-'))
  const write = (version: string) => {
    const made = path.join(other, 'new')
    mkdirSync(path.join(made, 'assets'), { recursive: true })
    for (const name of [`index-${version}.js`, `page-${version}.js`])
      writeFileSync(path.join(made, 'assets', name), name)
    writeFileSync(path.join(made, 'index.html'), `<!doctype html><base href="/" /><title>${version}</title>`)
    writeFileSync(path.join(made, 'service-worker.js'), version)
    rmSync(path.join(other, 'dist'), { recursive: true, force: true })
    renameSync(made, path.join(other, 'dist'))
  }
  write('one')
  const rebuilt = fastify()
  errorHandlers(rebuilt, (request, reply) =>
    isNavigation(request) ? sendConsolePage(request, reply, path.join(other, 'dist')) : null,
  )
  consoleRoutes(rebuilt, path.join(other, 'dist'))
  const read = async (url: string, headers = {}) => {
    const { statusCode, body } = await rebuilt.inject({ url, headers })
    return statusCode === 200 ? body : statusCode
  }
  assert.match(String(await read('/', navigation)), /one/)
  assert.equal(await read('/assets/index-one.js'), 'index-one.js')
  assert.equal(await read('/service-worker.js'), 'one')
  write('two')
  assert.equal(await read('/assets/page-one.js'), 404)
  assert.match(String(await read('/', navigation)), /two/)
  assert.equal(await read('/assets/page-two.js'), 'page-two.js')
  assert.equal(await read('/service-worker.js'), 'two')
  await rebuilt.close()
  rmSync(other, { recursive: true })
})

test('a request that is not a navigation, or names an API path, gets the error of the API', async () => {
  const asked: [string, Record<string, string>][] = [
    ['/nothing', { accept: 'application/json' }],
    ['/nothing', { ...navigation, 'sec-fetch-mode': 'cors' }],
    ['/operator/v1/nothing', navigation],
    ['/openapi/v1/nothing', navigation],
    ['/assets/old-1.js', navigation],
    ['/assets/../index.html', {}],
  ]
  for (const [url, headers] of asked) {
    const answer = await open(url, headers)
    assert.equal(answer.statusCode, 404, url)
    assert.match(String(answer.headers['content-type']), /^application\/problem\+json/, url)
    assert.equal(answer.headers['cache-control'], 'no-store', url)
  }
  const posted = await app.inject({ method: 'POST', url: '/w/default/production', headers: navigation })
  assert.equal(posted.statusCode, 404)
})

test('routes of the server take precedence', async () => {
  assert.deepEqual((await open('/healthz')).json(), { status: 'ok' })
  assert.deepEqual((await open('/operator/v1/me')).json(), { name: 'Ada' })
})

test('without a built console none is served', () => {
  assert.equal(hasConsole(dist), true)
  assert.equal(hasConsole(path.join(dist, 'nothing')), false)
})
