/** Next.js 14 and newest with the packed SDK, built and started as users do. Needs TACHO_TEST_FRAMEWORKS=1. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { test, type TestContext } from 'node:test'
import { packagesOf, startPlace, type Server } from './place.ts'
import { outcomeOf, startService, type ArrivedEvent, type Service } from './service.ts'

const NEXT_16 = packagesOf([
  'next@16.4.6',
  'react@19.3.1',
  'react-dom@19.3.1',
  'typescript@5.9.3',
  '@types/node@26.6.6',
  '@types/react@19.3.0',
])
const NEXT_14 = packagesOf([
  'next@14.2.35',
  'react@18.3.1',
  'react-dom@18.3.1',
  'typescript@5.4.5',
  '@types/node@20.19.43',
  '@types/react@18.3.8',
])

const WAYS = [
  { title: 'Next.js 16, built by Turbopack', ...NEXT_16, build: ['next', 'build', '--turbopack'], major: '16' },
  { title: 'Next.js 16, built by webpack', ...NEXT_16, build: ['next', 'build', '--webpack'], major: '16' },
  { title: 'Next.js 14', ...NEXT_14, build: ['next', 'build'], major: '14' },
]

const ADDRESS = /(http:\/\/localhost:\d+)/

const isEnded = (events: readonly ArrivedEvent[]) => outcomeOf(events) !== undefined
const textOf = async (url: string, init?: RequestInit) => (await fetch(url, init)).text()

for (const { title, skip, packages, build, major } of WAYS) {
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
  // Through several refreshes: an answer from a cache would bring the old policies back.
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

for (const build of ['--turbopack', '--webpack']) {
  test(`Next.js 16 with cacheComponents, built with ${build}`, { skip: NEXT_16.skip }, async (t: TestContext) => {
    const service = await startService(t)
    const place = await startPlace(t, 'next-cache-components', NEXT_16.packages)
    await place.run(['next', 'build', build], service.env)
    assert.equal(outcomeOf(await service.until('prerendered', isEnded)), 'COMPLETED')
    const { url } = await place.serve(['next', 'start', '-p', '0'], ADDRESS, service.env)
    assert.match(await textOf(url), /<p>Hello<\/p>/)
    assert.match(await textOf(`${url}/later`), /Later/)
    assert.equal(outcomeOf(await service.until('later', isEnded)), 'COMPLETED')
  })
}

test('the guide, as a newcomer follows it', { skip: NEXT_16.skip }, async (t) => {
  const service = await startService(t)
  const place = await startPlace(t, 'next-guide', NEXT_16.packages)
  const guide = readFileSync(new URL('../../../docs/sdk/nextjs.md', import.meta.url), 'utf8')
  const files = [...guide.matchAll(/^```ts\n\/\/ (\S+)\n(.*?)^```$/gms)]
  assert.equal(files.length, 2)
  for (const [, name = '', text = ''] of files) {
    const file = path.join(place.folder, name)
    mkdirSync(path.dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  const { url } = await place.serve(['next', 'dev', '-p', '0'], ADDRESS, service.env)
  const ask = () => textOf(`${url}/api/agent?amount=20`)
  assert.equal(await ask(), 'Let me see. Refunded 20.\n')
  const events = await service.until('shop', isEnded)
  assert.deepEqual(
    events.map(({ label }) => label),
    ['user input', 'refund', 'refund', 'completed'],
  )
  service.block('refund')
  while (!(await ask()).includes('refund was not run')) await sleep(1_000)
})
