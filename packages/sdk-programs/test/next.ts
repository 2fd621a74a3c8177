/** Shared by the tests of Next.js: the packages, and one program for each version and bundler. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { packagesOf, startPlace, type Server } from './place.ts'
import { outcomeOf, startService, type ArrivedEvent, type Service } from './service.ts'

export const NEXT_16 = packagesOf([
  'next@16.4.6',
  'react@19.3.1',
  'react-dom@19.3.1',
  'typescript@5.9.3',
  '@types/node@26.6.6',
  '@types/react@19.3.0',
])

export const ADDRESS = /(http:\/\/localhost:\d+)/

export const isEnded = (events: readonly ArrivedEvent[]) => outcomeOf(events) !== undefined
export const textOf = async (url: string, init?: RequestInit) => (await fetch(url, init)).text()

interface Way extends ReturnType<typeof packagesOf> {
  readonly title: string
  readonly build: readonly string[]
  readonly major: string
}

/** Routes, pages, an edge route, the middleware and streams, built and started as users do. */
export function testNext({ title, skip, packages, build, major }: Way): void {
  test(title, { skip }, async (t) => {
    const service = await startService(t)
    const place = await startPlace(t, 'next', packages)
    const env = { ...service.env, NEXT_MAJOR: major }
    await place.run(build, env)
    const server = await place.serve(['next', 'start', '-p', '0'], ADDRESS, env)
    await t.test('a policy that is deployed while it runs blocks, and stays', () => checkBlock(service, server))
    await t.test('a server action and a page', () => checkAction(service, server))
    await t.test('an edge route and the middleware', () => checkEdge(service, server))
    await t.test('a revalidated page asks for the configuration anew', () => checkRevalidated(service, server))
    for (const how of ['ends', 'breaks', 'left'] as const)
      await t.test(`a streamed Response that ${how}`, () => checkStream(service, server, how))
    assert.doesNotMatch(server.output(), /^tacho /m)
  })
}

async function checkBlock(service: Service, { url }: Server): Promise<void> {
  const ask = () => textOf(`${url}/api/refund`)
  assert.equal(await ask(), 'paid 100')
  service.block('refund')
  while ((await ask()) !== 'ToolBlockedError') continue
  const requests = service.requests()
  // Over several refreshes: a cached answer would restore the old policies.
  while (service.requests() < requests + 3) assert.equal(await ask(), 'ToolBlockedError')
  service.block()
  while ((await ask()) !== 'paid 100') continue
  const events = service.events('route')
  assert.ok(events.some(({ label }) => label === 'BLOCK refund'))
}

async function checkAction(service: Service, { url }: Server): Promise<void> {
  const html = await textOf(url)
  assert.match(html, /<button>paid 2<\/button>/)
  const [, id = ''] = /name="(\$ACTION_ID_\w+)"/.exec(html) ?? []
  const body = new FormData()
  body.set(id, '')
  assert.equal((await fetch(url, { method: 'POST', body })).status, 200)
  const events = await service.until('action', isEnded)
  assert.deepEqual(
    events.map(({ label }) => label),
    ['gift', 'gift', 'gift: paid 1', 'completed'],
  )
}

/** The edge route and the middleware, as `next dev` runs them. */
export function testEdgeInDevelopment(bundler: string): void {
  test(`an edge route in next dev ${bundler}`, { skip: NEXT_16.skip }, async (t) => {
    const service = await startService(t)
    const place = await startPlace(t, 'next', NEXT_16.packages)
    const env = { ...service.env, NEXT_MAJOR: '16' }
    const server = await place.serve(['next', 'dev', bundler, '-p', '0'], ADDRESS, env)
    await checkEdge(service, server)
    assert.doesNotMatch(server.output(), /^tacho /m)
  })
}

async function checkEdge(service: Service, { url }: Server): Promise<void> {
  const reply = await fetch(`${url}/api/edge`)
  assert.equal(await reply.text(), 'paid 100')
  assert.match(reply.headers.get('set-cookie') ?? '', /seen=yes/)
  assert.equal(outcomeOf(await service.until('edge', isEnded)), 'COMPLETED')
  const [saw] = await service.until('middleware', isEnded)
  assert.equal(saw?.payload['path'], '/api/edge')
  service.block('refund')
  while ((await textOf(`${url}/api/edge`)) !== 'ToolBlockedError') continue
  service.block()
}

async function checkRevalidated(service: Service, { url }: Server): Promise<void> {
  const ask = () => textOf(`${url}/revalidated`)
  assert.match(await ask(), /<p>(paid 3|ToolBlockedError)<\/p>/)
  service.block('refund')
  while (!(await ask()).includes('<p>ToolBlockedError</p>')) continue
  service.block()
  while (!(await ask()).includes('<p>paid 3</p>')) continue
}

async function checkStream(service: Service, { url }: Server, how: 'ends' | 'breaks' | 'left'): Promise<void> {
  const reply = await fetch(`${url}/api/stream?how=${how}`)
  assert.equal(reply.headers.get('x-program'), 'stream')
  if (how === 'ends') assert.equal(await reply.text(), '.paid 2.')
  if (how === 'breaks') await assert.rejects(reply.text())
  if (how === 'left') {
    const reader = reply.body?.getReader()
    await reader?.read()
    await reader?.cancel()
  }
  const events = await service.until(`stream ${how}`, isEnded)
  const [status] = { ends: ['COMPLETED'], breaks: ['FAILED'], left: ['CANCELLED'] }[how]
  assert.equal(outcomeOf(events), status)
  // The tool ran after the Response was returned.
  if (how !== 'left')
    assert.deepEqual(
      events.map(({ eventType }) => eventType),
      ['TOOL_START', 'TOOL_CALL', 'SESSION_OUTCOME'],
    )
  if (how === 'breaks') assert.match(String(events.at(-1)?.payload['error']), /the model broke/)
}
