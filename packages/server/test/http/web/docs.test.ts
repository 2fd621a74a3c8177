import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { OPERATOR_ROUTES } from '@tacho/contract/web/operator-routes.ts'
import { ROUTES } from '@tacho/contract/web/routes.ts'
import { startService, type Service } from '../../setup/service.ts'

let service: Service
before(async () => {
  // With a console, the root address shows the console.
  service = await startService({ console: 'off' })
})
after(() => service.close())

interface Document {
  openapi: string
  paths: Record<string, Record<string, { operationId: string; responses: Record<string, unknown> }>>
  components: { schemas: Record<string, unknown> }
}

test('the documents are served without a key and have every row of their table', async () => {
  for (const [prefix, routes] of [
    ['/openapi/v1', ROUTES],
    ['/operator/v1', OPERATOR_ROUTES],
  ] as const) {
    const { status, body, text } = await service.call<Document>(`${prefix}/openapi.json`)
    assert.deepEqual([status, body.openapi], [200, '3.1.0'])
    const operations = Object.values(body.paths).flatMap((path) =>
      Object.values(path).map(({ operationId }) => operationId),
    )
    assert.deepEqual(operations.sort(), Object.keys(routes).sort())
    for (const [, name = ''] of text.matchAll(/#\/components\/schemas\/(\w+)/g)) {
      assert.ok(body.components.schemas[name], name)
    }
  }
})

test('the example of a batch can be sent as it is', async () => {
  const { body } = await service.call<Document>('/openapi/v1/openapi.json')
  const { EventBatch } = body.components.schemas as { EventBatch: { examples: unknown[] } }
  const reply = await service.api<{ success: boolean }>('/events/batch', { body: EventBatch.examples[0] })
  assert.deepEqual([reply.status, reply.body.success], [200, true])
})

test('every row of the tables is served', async () => {
  for (const { method, path } of Object.values(ROUTES)) {
    const answer = await service.call(`/openapi/v1${path.replaceAll(/\{\w+\}/g, 'x')}`, { method })
    assert.equal(answer.status, 401, path)
  }
  for (const { method, path, access } of Object.values(OPERATOR_ROUTES)) {
    const answer = await service.call(`/operator/v1${path.replaceAll(/\{\w+\}/g, 'x')}`, { method })
    if (access !== 'anyone') assert.equal(answer.status, 401, path)
    else assert.ok(!answer.text.includes(`There is no ${method}`), path)
  }
})

test('the page to browse the documents loads everything from our own origin', async () => {
  const page = await service.call('/docs')
  assert.equal(page.status, 200)
  assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'self'/)
  const sources = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, source]) => source ?? '')
  assert.ok(sources.includes('./docs/icon.svg'))
  for (const source of sources) assert.equal((await fetch(new URL(source, `${service.url}/docs`))).status, 200, source)
})

test('an address of the docs with a closing slash leads to its page, also below a path', async () => {
  for (const address of ['/docs', '/docs/guide', '/docs/guide/erasure', '/docs/guide?q=erasure']) {
    const { status, headers } = await fetch(service.url + address.replace(/(?=\?|$)/, '/'), { redirect: 'manual' })
    assert.equal(status, 302, address)
    const from = new URL(address.replace(/(?=\?|$)/, '/').slice(1), 'http://proxy/below/')
    assert.equal(new URL(headers.get('location') ?? '', from).href, `http://proxy/below${address}`)
  }
  for (const address of ['/docs/guide//', '/docs/guide/none/']) assert.equal((await service.call(address)).status, 404)
})

test('the guide has every page of the docs, and each link in it leads somewhere', async () => {
  const docs = fileURLToPath(new URL('../../../../../docs', import.meta.url))
  const addresses = globSync('**/*.md', { cwd: docs }).map((file) => {
    const name = file.replace(/(^|\/)README\.md$/, '').replace(/\.md$/, '')
    return name === '' ? '/docs/guide' : `/docs/guide/${name}`
  })
  const pages = new Map<string, string>()
  for (const address of [...addresses, '/docs/guide/policy-language']) {
    const { status, text, headers } = await service.call(address)
    assert.equal(status, 200, address)
    assert.match(headers.get('content-security-policy') ?? '', /^default-src 'none'; style-src 'self'/)
    pages.set(address, text)
  }
  const known = new Set([...pages.keys(), '/docs', '/', '/docs/icon.svg', '/docs/look.css', '/docs/guide.css'])
  for (const [address, text] of pages) {
    for (const [, link = ''] of text.matchAll(/(?:href|src)="([^"]+)"/g)) {
      const { origin, pathname, hash } = new URL(link, `http://guide${address}`)
      if (origin !== 'http://guide') continue
      if (pathname.startsWith('/docs/guide/pictures/')) assert.equal((await service.call(pathname)).status, 200, link)
      else assert.ok(known.has(pathname), `${address}: ${link}`)
      const target = decodeURIComponent(hash.slice(1))
      if (target !== '') assert.ok(pages.get(pathname)?.includes(`id="${target}"`), `${address}: ${link}`)
    }
  }
  const front = pages.get('/docs/guide') ?? ''
  for (const address of addresses) {
    if (!/\/decisions\/\d/.test(address))
      assert.ok(front.includes(`href="../${address.slice(1)}"`), `docs/README.md lacks ${address}`)
  }
})

test('a page that is not part of the docs is not found', async () => {
  for (const path of [
    'nothing',
    '../../../package.json',
    'decisions/../../README',
    '%2e%2e/SECURITY',
    'pictures/../README.md',
  ]) {
    assert.equal((await service.call(`/docs/guide/${path}`)).status, 404, path)
  }
})

test('the guide finds pages by words, in any case, and shows what was typed as text', async () => {
  const search = async (query: string) => (await service.call(`/docs/guide?q=${encodeURIComponent(query)}`)).text
  const found = await search('PREFORK celery')
  assert.match(found, /<li><a href="\.\.\/docs\/guide\/sdk\/programs">/)
  assert.match(await search('zzz nothing zzz'), /No page has all these words/)
  const odd = await search('<script>"&')
  assert.ok(!odd.includes('<script>') && odd.includes('&lt;script&gt;&quot;&amp;'))
  assert.equal((await service.call(`/docs/guide?q=${'a'.repeat(5_000)}`)).status, 200)
  assert.equal((await service.call('/docs/guide?q=a&q=b')).status, 200)
})

test('the list of pages has each page once', async () => {
  const { text } = await service.call('/docs/guide')
  const list = /<details>.*<\/details>/s.exec(text)?.[0] ?? ''
  const links = [...list.matchAll(/href="([^"#]+)/g)].map(([, link]) => link)
  assert.deepEqual(links, [...new Set(links)])
})

test('the front address answers everyone: a browser with a page, others with a few lines', async () => {
  const plain = await service.call('/', { headers: { accept: '*/*' } })
  assert.deepEqual([plain.status, plain.headers.get('content-type')], [200, 'text/plain; charset=utf-8'])
  assert.match(plain.text, /^Tacho \d+\.\d+\.\d+\S*\n/)
  for (const place of ['/docs/guide', '/docs', '/healthz', '/readyz']) {
    assert.ok(plain.text.includes(place), place)
    assert.equal((await service.call(place)).status, 200, place)
  }
  assert.equal((await service.call('/', { method: 'HEAD' })).status, 200)
  const browser = await service.call('/', { headers: { accept: 'text/html' } })
  assert.ok(browser.status === 200 || browser.headers.get('location') === './docs')
})
