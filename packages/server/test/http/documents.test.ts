import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import { ROUTES } from '@tacho/contract/routes.ts'
import { startService, type Service } from '../setup/service.ts'

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
  assert.equal((await service.call('/')).text, page.text)
  assert.equal(page.status, 200)
  assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'self'/)
  const sources = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, source]) => source ?? '')
  assert.ok(sources.length >= 4)
  for (const source of sources) assert.equal((await service.call(source)).status, 200, source)
})
